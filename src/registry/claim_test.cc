#include "registry/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leaf {
namespace {

using testing::HasSubstr;
using Kind = ClaimPlan::Kind;

constexpr std::int64_t kNow = 1'700'000'000'000;
constexpr std::int64_t kLease = 600'000;
const std::string kLayout = "41/10/12@1288834974657";

ClaimAsk Ask(std::int64_t workers = 8) {
  ClaimAsk ask;
  ask.owner = std::string(32, 'a');
  ask.identity = "10.0.0.1:8080";
  ask.workers = workers;
  ask.layout = kLayout;
  ask.now_ms = kNow;
  ask.lease_ms = kLease;
  return ask;
}

WorkerRow Row(std::int64_t worker, std::int64_t limit_ms, const std::string& identity = "other:1",
              char owner = 'b') {
  WorkerRow row;
  row.record = {worker, 5, std::string(32, owner), identity, limit_ms, ""};
  row.layout = kLayout;
  return row;
}

TEST(PlanClaim, AnEmptyRegistryGivesTheLowestWorker) {
  const auto plan = PlanClaim({}, Ask(), kNow);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->kind, Kind::kCreate);
  EXPECT_EQ(plan->worker, 0);
  EXPECT_EQ(plan->generation, 1);
  EXPECT_EQ(plan->floor_ms, 0);
  EXPECT_EQ(plan->limit_ms, kNow + kLease);
  EXPECT_EQ(plan->free_workers, 7);
}

TEST(PlanClaim, TakesTheRowThatIsFreeLongestAndBeginsAtItsLimit) {
  const auto plan = PlanClaim({Row(0, kNow - 1), Row(1, kNow - 9), Row(2, kNow + 1)}, Ask(), kNow);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->kind, Kind::kTake);
  EXPECT_EQ(plan->worker, 1);
  EXPECT_EQ(plan->expected, 5);
  EXPECT_EQ(plan->generation, 6);
  EXPECT_EQ(plan->floor_ms, kNow - 9);
}

TEST(PlanClaim, PrefersItsOwnIdentity) {
  const auto plan = PlanClaim({Row(0, kNow - 9), Row(3, kNow, "10.0.0.1:8080")}, Ask(), kNow);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->worker, 3);
}

TEST(PlanClaim, AdoptsTheRowOfAClaimWhoseAnswerWasLost) {
  const auto plan = PlanClaim({Row(0, 0), Row(4, kNow + kLease, "x:1", 'a')}, Ask(), kNow + 100);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->kind, Kind::kAdopt);
  EXPECT_EQ(plan->worker, 4);
  EXPECT_EQ(plan->expected, 5);
  EXPECT_EQ(plan->generation, 6) << "reading it does not make it durable";
  EXPECT_EQ(plan->limit_ms, kNow + kLease);
  EXPECT_EQ(plan->floor_ms, kNow);
}

TEST(PlanClaim, AnAdoptedRowBeginsNotBelowItsOldLimitThoughTheClockWentBack) {
  ClaimAsk ask = Ask();
  ask.now_ms = kNow - 5'000;
  const auto plan = PlanClaim({Row(4, kNow + kLease, "x:1", 'a')}, ask, std::nullopt);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->kind, Kind::kAdopt);
  EXPECT_GE(plan->floor_ms, kNow);
}

TEST(PlanClaim, ARowIsFreeOnlyByBothClocks) {
  ClaimAsk behind = Ask(1);
  behind.now_ms = kNow - 10;
  EXPECT_FALSE(PlanClaim({Row(0, kNow)}, behind, kNow + 10).ok());
  EXPECT_FALSE(PlanClaim({Row(0, kNow)}, Ask(1), kNow - 10).ok());
  EXPECT_TRUE(PlanClaim({Row(0, kNow)}, Ask(1), kNow).ok());
}

TEST(PlanClaim, AClockFarAheadIsRefusedAndOneABitAheadIsBounded) {
  const auto far = PlanClaim({}, Ask(), kNow - kLease - kClockToleranceMs);
  ASSERT_FALSE(far.ok());
  EXPECT_EQ(far.error().code, Code::kUnavailable);
  EXPECT_THAT(far.error().message, HasSubstr("clock_ahead"));
  const auto bounded = PlanClaim({}, Ask(), kNow - kClockToleranceMs - 1000);
  ASSERT_TRUE(bounded.ok());
  EXPECT_EQ(bounded->limit_ms, kNow + kLease - 1000);
}

TEST(PlanClaim, TheLeaseShrinksWhenFewWorkersAreFree) {
  const auto limit = [](int held) {
    std::vector<WorkerRow> rows;
    for (int i = 0; i < held; ++i) rows.push_back(Row(i, kNow + 1));
    const auto plan = PlanClaim(rows, Ask(100), kNow);
    return plan.ok() ? plan->limit_ms - kNow : -1;
  };
  EXPECT_EQ(limit(75), kLease);
  EXPECT_EQ(limit(76), kLease * 96 / 100);
  EXPECT_EQ(limit(95), kLease / 5);
  EXPECT_EQ(limit(99), kLease / 10);
}

TEST(PlanClaim, ExcludedAndTakenWorkersAreNotGiven) {
  ClaimAsk ask = Ask(4);
  ask.excluded = {0, 1};
  WorkerRow taken = Row(2, 0);
  taken.taken = true;
  const auto plan = PlanClaim({Row(0, 0), taken}, ask, kNow);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->worker, 3);
  EXPECT_EQ(plan->free_workers, 0);
}

TEST(PlanClaim, AllHeldSaysUntilWhen) {
  const auto plan =
      PlanClaim({Row(0, kNow + 5000), Row(1, kNow + 1000, "b:2"), Row(9, 0)}, Ask(2), kNow);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("2023-11-14T22:13:21.000Z (worker 1 of b:2)"));
  EXPECT_THAT(plan.error().message, HasSubstr("1 rows name a worker that the layout does not"));
}

TEST(PlanClaim, ALivingRowOfAnotherLayoutIsRefusedAndADeadOneIsNot) {
  WorkerRow row = Row(3, kNow + 1);
  row.layout = "41/5/7@1577836800000";
  const auto plan = PlanClaim({row}, Ask(), kNow);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("41/5/7@1577836800000"));
  row.record.limit_ms = kNow;
  EXPECT_TRUE(PlanClaim({row}, Ask(), kNow).ok());
}

TEST(IdentityText, KeepsTheLayoutWholeWithin255Bytes) {
  const std::string text = IdentityText(std::string(400, 'h'), kLayout);
  EXPECT_EQ(text.size(), 255U);
  EXPECT_EQ(ParseIdentity(text).layout, kLayout);
  const IdentityParts parts = ParseIdentity(IdentityText("h:1", kLayout));
  EXPECT_EQ(parts.identity, "h:1");
  EXPECT_EQ(parts.layout, kLayout);
  EXPECT_EQ(ParseIdentity("h:1").identity, "h:1");
  EXPECT_EQ(ParseIdentity("h:1").layout, "");
}

}  // namespace
}  // namespace leaf
