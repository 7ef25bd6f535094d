#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "core/segment/segment_store.h"
#include "store/driver.h"

namespace leaf::contract {

/// A row as it lies in the store, read and written past the driver.
struct RawRow {
  std::int64_t max_id = 0;
  std::int64_t step = 0;
  std::string description;
};

/// What the suite needs to know of a store. A capability that a store lacks is said here, so that
/// no test is left out by accident.
struct Traits {
  Durability durability = Durability::kPower;  ///< what Open must tell of the store under test
  bool survives_restart = true;
  bool can_be_read_only = true;
  bool has_locks = true;          ///< LockRow works
  bool row_can_be_odd = true;     ///< PutOdd works
  bool knows_row_step = true;     ///< Grant::row_step is filled in
  bool keeps_description = true;  ///< there is one beside the numbers, and no call changes it
  bool keeps_time = true;         ///< Row::updated tells when the row was changed last
  Duration timeout =
      std::chrono::milliseconds(300);  ///< of the suite's calls; the driver's own timeout
  /// How long after its deadline a statement that waits for a lock may still commit (MySQL 8: 1 s).
  Duration late_commit = std::chrono::milliseconds(0);
};

/// One store with an empty table of its own, alive as long as this. Each adapter writes one.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;

  virtual Traits traits() const { return {}; }

  /// Makes a session of node 0 or 1: two servers that share the table.
  virtual std::unique_ptr<SegmentDriver> MakeDriver(int node) = 0;

  /// Writes a row by hand; it may exist. Any values that the columns take.
  virtual void Put(std::string_view tag, const RawRow& row) = 0;
  virtual std::optional<RawRow> Get(std::string_view tag) = 0;
  /// Writes a row whose step is NULL, or whatever else is no number there. traits().row_can_be_odd.
  virtual void PutOdd(std::string_view /*tag*/) {}

  /// Ends the backing store as a crash would and starts it again; sessions are lost.
  /// traits().survives_restart.
  virtual void Restart() {}
  /// From now on (not) writable, for sessions opened before as well or by cutting them.
  /// traits().can_be_read_only.
  virtual void SetReadOnly(bool /*on*/) {}
  /// Holds the lock that a reservation of `tag` needs until the result is destroyed.
  /// traits().has_locks.
  virtual std::shared_ptr<void> LockRow(std::string_view /*tag*/) { return nullptr; }
};

struct Param {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;

  friend void PrintTo(const Param& param, std::ostream* out) { *out << param.name; }
};

/// The suite: INSTANTIATE_TEST_SUITE_P(Name, StoreContract, testing::Values(Param{...})) in a file
/// that is linked with the object library store_contract.
class StoreContract : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    store_ = GetParam().make();
    ASSERT_NE(store_, nullptr);
  }

  Traits traits() const { return store_->traits(); }
  /// An opened session.
  std::unique_ptr<SegmentDriver> Open(int node = 0);
  /// A deadline of one timeout from now.
  Instant Soon() const;
  /// One reservation.
  Grant Reserve(SegmentDriver& driver, std::string_view tag, std::int64_t count);
  Grant Reserve(SegmentDriver& driver, std::string_view tag, std::int64_t count, Instant deadline);

  std::unique_ptr<StoreUnderTest> store_;
};

}  // namespace leaf::contract
