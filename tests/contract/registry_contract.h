#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "registry/registry_driver.h"

namespace leaf::contract {

/// A registry as the suite needs it: empty at first, and gone with this object.
class RegistryUnderTest {
 public:
  virtual ~RegistryUnderTest() = default;

  struct Traits {
    bool has_clock = false;   ///< answers carry registry_ms
    bool bound = false;       ///< a worker belongs to a node: one server, one worker
    std::int64_t worker = 0;  ///< bound: the one that it gives
    bool restarts = false;    ///< Restart does something
    bool lists = true;        ///< List and Retire as for rows that anyone may take
  };
  virtual Traits traits() const = 0;
  /// A session of server number `server` (0, 1, ...), not yet opened. Called from one thread.
  virtual std::unique_ptr<RegistryDriver> MakeSession(int server) = 0;
  /// What keeps the rows ends without warning and comes back.
  virtual void Restart() {}
};

struct RegistryParam {
  std::string name;
  std::function<std::unique_ptr<RegistryUnderTest>()> make;
};

/// What every registry of workers promises. Instantiate it for a new one:
///   INSTANTIATE_TEST_SUITE_P(X, RegistryContract, testing::Values(RegistryParam{"x", MakeX}));
/// Tests that a bound registry answers otherwise look at the traits.
class RegistryContract : public testing::TestWithParam<RegistryParam> {
 protected:
  static constexpr std::int64_t kLease = 600'000;

  RegistryContract() : registry_(GetParam().make()) {}

  RegistryUnderTest::Traits traits() const { return registry_->traits(); }
  std::unique_ptr<RegistryDriver> Open(int server);
  /// The ask of a new process of `server`; each call draws another owner.
  ClaimAsk Ask(int server);
  static Instant Soon();

  std::unique_ptr<RegistryUnderTest> registry_;
};

}  // namespace leaf::contract
