// What is read in a registry may be on one of its copies only, for want of whose acknowledgement
// the write was taken for lost. So a right comes from a write of the call that gives it.

#include "registry/row_registry.h"

#include <gtest/gtest.h>

#include <map>

namespace leaf {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000, kLease = 600'000;

/// Rows in memory; the answer to a write can be lost.
class Rows final : public RowRegistry {
 public:
  Result<void> Open(Instant, std::vector<std::string>&) override { return {}; }
  bool connected() const noexcept override { return true; }
  void Close() noexcept override {}
  void Interrupt() noexcept override {}

  int writes = 0;     ///< answered
  bool lose = false;  ///< the next answer
  std::map<std::int64_t, WorkerRow> rows;

 protected:
  Result<Snapshot> Read(std::optional<std::int64_t> worker, Instant) override {
    Snapshot seen;
    seen.registry_ms = kNow;
    for (const auto& [number, row] : rows) {
      if (!worker || *worker == number) seen.rows.push_back(row);
    }
    return seen;
  }
  Result<bool> Insert(const WorkerRow& row, Instant) override {
    return Answer(rows.emplace(row.record.worker, row).second);
  }
  Result<bool> Replace(const WorkerRecord& from, const WorkerRow& to, Instant) override {
    const WorkerRecord& old = rows.at(from.worker).record;
    EXPECT_TRUE(old.generation != to.record.generation || old.limit_ms != to.record.limit_ms)
        << "SQL calls that no change, and writes nothing";
    const bool same = old.owner == from.owner && old.generation == from.generation &&
                      old.limit_ms == from.limit_ms;
    if (same) rows.at(from.worker) = to;
    return Answer(same);
  }
  std::string Where() const override { return "here"; }

 private:
  Result<bool> Answer(bool done) {
    if (std::exchange(lose, false)) return Error{Code::kUnavailable, "the answer was lost"};
    ++writes;
    return done;
  }
};

class RowRegistryTest : public testing::Test {
 protected:
  static Instant Soon() { return SystemClock().Now() + std::chrono::seconds(10); }
  static ClaimAsk Ask() {
    ClaimAsk ask;
    ask.owner = std::string(32, 'a');
    ask.identity = "h:1";
    ask.workers = 4;
    ask.layout = "41/10/12@1288834974657";
    ask.now_ms = kNow;
    ask.lease_ms = kLease;
    ask.deadline = Soon();
    return ask;
  }
  Rows registry_;
};

TEST_F(RowRegistryTest, AClaimWhoseAnswerWasLostIsWrittenAgain) {
  registry_.lose = true;
  EXPECT_FALSE(registry_.Claim(Ask()).ok());
  ASSERT_EQ(registry_.rows.size(), 1U) << "it had happened";
  const auto right = registry_.Claim(Ask());
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right->worker, 0);
  EXPECT_EQ(registry_.writes, 1);
  EXPECT_EQ(registry_.rows.at(0).record.generation, right->generation);
  EXPECT_EQ(registry_.rows.at(0).record.limit_ms, right->limit_ms);
}

TEST_F(RowRegistryTest, AnExtensionWhoseAnswerWasLostIsWrittenAgain) {
  const WorkerRight right = *registry_.Claim(Ask());
  const std::int64_t limit = right.limit_ms + 1000;
  registry_.lose = true;
  EXPECT_FALSE(registry_.Extend(right, limit, kLease, Soon()).ok());
  ASSERT_EQ(registry_.rows.at(0).record.limit_ms, limit) << "it had happened";
  const auto extended = registry_.Extend(right, limit, kLease, Soon());
  ASSERT_TRUE(extended.ok());
  EXPECT_EQ(registry_.writes, 2);
  EXPECT_GE(extended->limit_ms, limit);
  EXPECT_EQ(registry_.rows.at(0).record.limit_ms, extended->limit_ms);
}

TEST_F(RowRegistryTest, AnExtensionToWhatIsHeldAlreadyWritesNothing) {
  const WorkerRight right = *registry_.Claim(Ask());
  const auto extended = registry_.Extend(right, right.limit_ms, kLease, Soon());
  ASSERT_TRUE(extended.ok());
  EXPECT_EQ(extended->limit_ms, right.limit_ms);
  EXPECT_EQ(registry_.writes, 1);
}

}  // namespace
}  // namespace leaf
