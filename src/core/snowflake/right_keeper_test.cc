// The keeper of the right, seen through the engine: a registry and a journal that say what the
// test wants, and clocks that stand.

#include "core/snowflake/right_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/snowflake/snowflake_test_support.h"

namespace leaf::test {
namespace {

using testing::HasSubstr;

class RightKeeperTest : public SnowflakeRig {};

TEST_F(RightKeeperTest, ClaimsWithWhatTheRegistryHasToKnow) {
  Start();
  const Call call = Take(Kind::kClaim);
  EXPECT_THAT(call.ask.owner, testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(call.ask.owner.size(), 32U);
  EXPECT_EQ(call.ask.identity, "10.0.0.1:8080");
  EXPECT_EQ(call.ask.workers, 1024);
  EXPECT_EQ(call.ask.layout, "41/10/12@1288834974657");
  EXPECT_EQ(call.ask.now_ms, kStart);
  EXPECT_EQ(call.ask.lease_ms, 600'000);
  EXPECT_EQ(call.ask.deadline, clock.now + seconds(1));
  EXPECT_FALSE(Mints());
  EXPECT_EQ(engine->View().reason, "no worker was claimed yet");
  call.done(Granted(call, 17, 3));
  EXPECT_GT(wakes, 0);
  const auto parts = MintOne();
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->worker, 17);
  EXPECT_EQ(parts->time_ms, kStart);
  const SnowflakeView view = engine->View();
  EXPECT_TRUE(view.serving);
  EXPECT_EQ(view.worker, 17);
  EXPECT_EQ(view.generation, 3);
  EXPECT_EQ(view.limit_ms, kStart + 600'000);
  EXPECT_EQ(view.claims, 1U);
}

TEST_F(RightKeeperTest, BeginsAtTheLimitOfTheOwnerBefore) {
  Start();
  const Call call = Take(Kind::kClaim);
  WorkerRight right = Granted(call, 1);
  right.floor_ms = kStart + 1500;
  call.done(right);
  const auto parts = MintOne();
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->time_ms, kStart + 1500);
}

TEST_F(RightKeeperTest, ExtendsAtHalfOfTheLeaseOneCallAtATime) {
  Start();
  GrantClaim(1, 5);
  Pass(milliseconds(299'999));
  EXPECT_TRUE(registry.calls.empty());
  Pass(milliseconds(1));
  Pass(milliseconds(100));
  ASSERT_EQ(registry.calls.size(), 1U);
  const Call call = Take(Kind::kExtend);
  EXPECT_EQ(call.limit_ms, kStart + 900'000);
  EXPECT_EQ(call.lease_ms, 600'000);
  EXPECT_EQ(call.right.worker, 1);
  EXPECT_EQ(call.right.generation, 5);
  EXPECT_TRUE(Mints()) << "the old limit holds meanwhile";
  call.done(Extended(call));
  Pass(milliseconds(100));
  EXPECT_TRUE(registry.calls.empty());
  EXPECT_EQ(engine->View().limit_ms, kStart + 900'000);
  EXPECT_EQ(engine->View().extensions, 1U);
  Pass(seconds(599));
  EXPECT_TRUE(Mints()) << "beyond the first limit";
}

TEST_F(RightKeeperTest, ReportsAsOftenAsTheRegistryWants) {
  registry.its_traits.renew = seconds(3);
  Start();
  GrantClaim(1);
  Pass(milliseconds(2999));
  EXPECT_TRUE(registry.calls.empty());
  Pass(milliseconds(1));
  EXPECT_EQ(Take(Kind::kExtend).limit_ms, kStart + 603'000);
}

TEST_F(RightKeeperTest, ARegistryThatGivesLessThanAskedForIsNotAskedAtOnceAgain) {
  Start();
  GrantClaim(1);
  Pass(seconds(300));
  const Call call = Take(Kind::kExtend);
  call.done(call.right);
  Tick();
  Pass(milliseconds(99));
  EXPECT_TRUE(registry.calls.empty());
}

TEST_F(RightKeeperTest, AClockTooFarAheadForAnExtensionIsSaid) {
  options.lease = seconds(4);
  Start();
  GrantClaim(1);
  Pass(seconds(2));
  const Call call = Take(Kind::kExtend);
  WorkerRight same = call.right;
  same.registry_ms = clock.wall_ms - 64'000;
  call.done(same);
  Tick();
  Pass(seconds(3));
  EXPECT_FALSE(Mints());
  EXPECT_THAT(engine->View().reason,
              HasSubstr("was not extended: clock_ahead: this host's clock is 64 s ahead"));
}

TEST_F(RightKeeperTest, AWorkerOfOnesOwnThatWasUsedUnderAWrongClockIsSaid) {
  registry.its_traits.bound = true;
  Start();
  const Call call = Take(Kind::kClaim);
  WorkerRight right = Granted(call, 3);
  right.floor_ms = kStart + 86'400'000;
  right.limit_ms = right.floor_ms + 600'000;
  call.done(right);
  Tick();
  Saved();
  EXPECT_THAT(engine->View().reason, HasSubstr("Worker 3 may be used up to 2027-01-16T08:00:00"));
  EXPECT_THAT(engine->View().reason, HasSubstr("give this server another one"));
}

TEST_F(RightKeeperTest, MintedTimeAheadOfTheClockAsksNotInALoop) {
  options.lease = seconds(4);
  Start();
  GrantClaim(1);
  clock.now += seconds(2);
  clock.wall_ms += 2000;
  ASSERT_TRUE(Mints());
  Step(-4000);
  const Call call = Take(Kind::kExtend);
  EXPECT_EQ(call.limit_ms, kStart + 6000) << "by what is minted";
  call.done(call.right);
  Tick();
  Pass(milliseconds(99));
  EXPECT_TRUE(registry.calls.empty());
  Pass(milliseconds(1));
  EXPECT_EQ(registry.calls.size(), 1U);
}

TEST_F(RightKeeperTest, ARegistryThatIsAwayCostsNothingUpToTheLimit) {
  Start();
  GrantClaim(1);
  Pass(seconds(300));
  for (int failures = 0; clock.wall_ms < kStart + 599'000; ++failures) {
    Fail(Kind::kExtend, Code::kUnavailable, "nobody answers");
    for (int tries = 0; registry.calls.empty() && tries < 20; ++tries) Pass(milliseconds(100));
    ASSERT_TRUE(Mints()) << "after " << failures << " failures";
  }
  EXPECT_EQ(engine->View().reason, "nobody answers");
  EXPECT_TRUE(engine->View().serving);
  clock.now += milliseconds(kStart + 599'999 - clock.wall_ms);
  clock.wall_ms = kStart + 599'999;
  EXPECT_TRUE(Mints());
  clock.now += milliseconds(1);
  EXPECT_FALSE(Mints());
  const SnowflakeView view = engine->View();
  EXPECT_FALSE(view.serving);
  EXPECT_THAT(view.reason, HasSubstr("was not extended: nobody answers"));
}

TEST_F(RightKeeperTest, AfterALossTheOldLimitHoldsAndAnotherWorkerIsClaimed) {
  Start();
  GrantClaim(1);
  Pass(seconds(300));
  Fail(Kind::kExtend, Code::kConflict, "worker 1 is another's");
  EXPECT_EQ(engine->View().losses, 1U);
  ASSERT_EQ(registry.calls.size(), 1U) << "it claims at once";
  EXPECT_EQ(WorkerOfNext(), 1);
  Pass(milliseconds(500));
  EXPECT_EQ(WorkerOfNext(), 1);
  GrantClaim(2);
  EXPECT_EQ(WorkerOfNext(), 2);
  EXPECT_EQ(host.held, std::set<std::int64_t>{2});
}

TEST_F(RightKeeperTest, AfterALossNothingIsMintedBeyondTheOldLimit) {
  Start();
  GrantClaim(1);
  Pass(seconds(300));
  Fail(Kind::kExtend, Code::kConflict, "worker 1 is another's");
  clock.now += milliseconds(299'999);
  EXPECT_EQ(WorkerOfNext(), 1);
  clock.now += milliseconds(1);
  EXPECT_FALSE(Mints());
}

TEST_F(RightKeeperTest, WhereOthersWriteTooALossStopsAtOnce) {
  registry.its_traits.foreign_writers = true;
  StartBound(1);
  ASSERT_TRUE(Mints());
  Pass(seconds(1));  // the journal's next word
  if (!journal.writes.empty()) Saved();
  Pass(seconds(299));
  while (!journal.writes.empty()) Saved();
  Fail(Kind::kExtend, Code::kConflict, "another wrote the node");
  EXPECT_FALSE(Mints());
  EXPECT_FALSE(engine->View().serving);
  EXPECT_EQ(engine->View().reason, "another wrote the node");
  EXPECT_EQ(engine->View().worker, -1);
  ASSERT_EQ(journal.writes.size(), 1U);
  EXPECT_EQ(journal.writes.front().record.limit_ms, 0) << "it proves nothing any more";
  Take(Kind::kClaim);
}

TEST_F(RightKeeperTest, ALateAnswerIsDropped) {
  Start();
  const Call late = Take(Kind::kClaim);
  Pass(milliseconds(1201));
  EXPECT_EQ(engine->View().failures, 1U);
  EXPECT_THAT(engine->View().reason, HasSubstr("did not answer in time"));
  Pass(milliseconds(100));
  ASSERT_EQ(registry.calls.size(), 1U);
  late.done(Granted(late, 9));
  EXPECT_FALSE(Mints());
  EXPECT_EQ(engine->View().worker, -1);
  GrantClaim(1);
  EXPECT_EQ(WorkerOfNext(), 1);
  late.done(Granted(late, 9));
  EXPECT_EQ(WorkerOfNext(), 1);
}

TEST_F(RightKeeperTest, AnAnswerThatSleptThroughItsDeadlineIsDroppedBeforeAnyTick) {
  Start();
  const Call late = Take(Kind::kClaim);
  clock.now += seconds(2);
  late.done(Granted(late, 9));
  EXPECT_FALSE(Mints());
  EXPECT_EQ(engine->View().worker, -1);
}

TEST_F(RightKeeperTest, ARepeatedClaimBeginsNotBelowTheTimeOfTheFirst) {
  Start();
  Take(Kind::kClaim);  // it happened, and the answer is lost
  Pass(milliseconds(1201));
  Step(-4000);
  Pass(milliseconds(100));
  GrantClaim(1);
  const auto parts = MintOne();
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->time_ms, kStart) << "the owner before may have had a limit up to here";
}

TEST_F(RightKeeperTest, AWorkerOfAnotherProcessOfThisHostIsGivenBackAndExcluded) {
  host.others = {3};
  Start();
  const Call claim = Take(Kind::kClaim);
  claim.done(Granted(claim, 3));
  const Call lower = Take(Kind::kLower);
  EXPECT_EQ(lower.right.worker, 3);
  EXPECT_EQ(lower.limit_ms, 0);
  EXPECT_FALSE(Mints());
  Tick();
  ASSERT_EQ(registry.calls.size(), 1U);
  EXPECT_EQ(registry.calls.front().ask.excluded, std::vector<std::int64_t>{3});
  GrantClaim(4);
  EXPECT_EQ(WorkerOfNext(), 4);
}

TEST_F(RightKeeperTest, ARightThatWasGivenBackIsNotAdopted) {
  host.others = {3};
  Start();
  const Call claim = Take(Kind::kClaim);
  claim.done(Granted(claim, 3, 7));
  Take(Kind::kLower);  // it may still happen
  host.others.clear();
  Tick();
  GrantClaim(3, 7);
  EXPECT_FALSE(Mints());
  EXPECT_THAT(engine->View().reason, HasSubstr("worker 3 was given back"));
  ASSERT_EQ(registry.calls.size(), 1U) << "another is claimed at once";
  GrantClaim(3, 8);
  EXPECT_EQ(WorkerOfNext(), 3) << "taken anew";
}

TEST_F(RightKeeperTest, AWorkerThatTheLayoutCannotHoldIsRefused) {
  Start();
  GrantClaim(1024);
  EXPECT_FALSE(Mints());
  EXPECT_THAT(engine->View().reason, HasSubstr("worker 1024"));
}

TEST_F(RightKeeperTest, AClockBeforeTheEpochClaimsNothing) {
  clock.wall_ms = 0;
  Start();
  EXPECT_TRUE(registry.calls.empty());
  EXPECT_THAT(engine->View().reason, HasSubstr("before the layout's epoch"));
}

TEST_F(RightKeeperTest, AClaimThatFailsIsRepeatedAfterAWhileAndSaysWhy) {
  Start();
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  EXPECT_TRUE(registry.calls.empty());
  EXPECT_EQ(engine->View().reason, "nobody answers");
  Pass(milliseconds(100));
  GrantClaim(1);
  EXPECT_EQ(engine->View().reason, "");
}

TEST_F(RightKeeperTest, AStepOfTheClockIsPutToTheRegistryAtOnce) {
  Start();
  const Call claim = Take(Kind::kClaim);
  WorkerRight right = Granted(claim, 1);
  right.registry_ms = kStart;
  claim.done(right);
  Step(3'600'000);
  const Call extend = Take(Kind::kExtend);
  EXPECT_EQ(extend.limit_ms, kStart + 600'000) << "by the believed time";
  right = Extended(extend);
  right.registry_ms = kStart;
  extend.done(right);
  const auto parts = MintOne();
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->time_ms, kStart);
  EXPECT_THAT(engine->View().reason, HasSubstr("the registry's clock contradicts it"));
  EXPECT_EQ(engine->View().wall_offset_ms, 3'600'000);
  EXPECT_EQ(engine->View().registry_offset_ms, 0);
}

TEST_F(RightKeeperTest, BoundItIsNotOpenedBeforeTheJournalHoldsTheRight) {
  registry.its_traits.bound = true;
  Start();
  GrantClaim(5, 2);
  EXPECT_FALSE(Mints());
  EXPECT_EQ(engine->View().reason, "the journal of the worker's right is being written");
  ASSERT_EQ(journal.writes.size(), 1U);
  const RightRecord record = journal.writes.front().record;
  EXPECT_EQ(record.worker, 5);
  EXPECT_EQ(record.generation, 2);
  EXPECT_EQ(record.owner, engine->View().owner);
  EXPECT_EQ(record.limit_ms, kStart + 600'000);
  EXPECT_EQ(record.short_ms, kStart + 3000);
  Saved();
  EXPECT_EQ(WorkerOfNext(), 5);
}

TEST_F(RightKeeperTest, AJournalThatCannotBeWrittenOpensNothing) {
  registry.its_traits.bound = true;
  Start();
  GrantClaim(5);
  Saved(Error{Code::kUnavailable, "the disk is full"});
  EXPECT_FALSE(Mints());
  EXPECT_EQ(engine->View().reason, "the disk is full");
  Pass(milliseconds(100));
  Saved();
  EXPECT_TRUE(Mints());
}

TEST_F(RightKeeperTest, TheShortLimitFollowsCloseBehindAndIsNeverPassed) {
  StartBound(5);
  Pass(milliseconds(999));
  EXPECT_TRUE(journal.writes.empty());
  Pass(milliseconds(1));
  ASSERT_EQ(journal.writes.size(), 1U);
  EXPECT_EQ(journal.writes.front().record.short_ms, kStart + 4000);
  Pass(milliseconds(1999));
  EXPECT_EQ(journal.writes.size(), 1U) << "one write at a time";
  EXPECT_TRUE(Mints());
  Pass(milliseconds(1));
  EXPECT_FALSE(Mints()) << "the journal holds no more";
  Saved();
  EXPECT_TRUE(Mints());
}

TEST_F(RightKeeperTest, ManyRestartsInARowDoNotPushTheTimeAwayFromTheClock) {
  registry.its_traits.bound = true;
  std::int64_t floor = kStart;
  for (int i = 0; i < 50; ++i) {
    journal.found = RightJournal::Found{{3, 7, std::string(32, 'a'), kStart + 600'000, floor},
                                        /*same_place=*/true};
    Start();
    Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
    if (journal.writes.empty()) return;  // nothing can be minted, so nothing has to be written
    floor = journal.writes.front().record.short_ms;
    while (!journal.writes.empty()) Saved();
    ASSERT_LE(floor, engine->View().now_ms + 5300) << "after " << i << " restarts";
  }
}

TEST_F(RightKeeperTest, ALongerRightIsInTheJournalBeforeItCounts) {
  registry.its_traits.bound = true;
  options.lease = seconds(4);
  Start();
  GrantClaim(5);
  Saved();
  Pass(seconds(2));
  while (!journal.writes.empty()) Saved();
  const Call extend = Take(Kind::kExtend);
  extend.done(Extended(extend));
  clock.now += milliseconds(2000);
  EXPECT_FALSE(Mints()) << "the first limit";
  Tick();
  while (!journal.writes.empty()) Saved();
  EXPECT_TRUE(Mints());
}

TEST_F(RightKeeperTest, ACleanStopLowersTheLimitToTheFirstTimeNotMinted) {
  Start();
  GrantClaim(1, 4);
  Pass(seconds(10));
  ASSERT_TRUE(Mints());
  Pass(seconds(10));
  int done = 0;
  engine->Close([&] { ++done; });
  Tick();
  const Call lower = Take(Kind::kLower);
  EXPECT_EQ(lower.limit_ms, kStart + 10'001);
  EXPECT_EQ(lower.right.generation, 4);
  EXPECT_EQ(done, 0);
  WorkerRight right = lower.right;
  right.limit_ms = lower.limit_ms;
  lower.done(right);
  EXPECT_EQ(done, 1);
  Pass(seconds(9));
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(registry.calls.empty());
}

TEST_F(RightKeeperTest, ACleanStopThatMintedNothingLowersToItsFloor) {
  Start();
  const Call claim = Take(Kind::kClaim);
  WorkerRight right = Granted(claim, 1);
  right.floor_ms = kStart + 700;
  claim.done(right);
  engine->Close([] {});
  Tick();
  EXPECT_EQ(Take(Kind::kLower).limit_ms, kStart + 700);
}

TEST_F(RightKeeperTest, ACleanStopWaitsForASilentRegistryAsLongAsACallOnly) {
  Start();
  GrantClaim(1);
  int done = 0;
  engine->Close([&] { ++done; });
  Tick();
  Pass(milliseconds(1200));
  EXPECT_EQ(done, 0);
  Pass(milliseconds(1));
  EXPECT_EQ(done, 1);
}

TEST_F(RightKeeperTest, AClaimThatComesAfterTheStopIsGivenBack) {
  Start();
  const Call claim = Take(Kind::kClaim);
  int done = 0;
  engine->Close([&] { ++done; });
  Tick();
  EXPECT_EQ(done, 0) << "a call is under way";
  WorkerRight right = Granted(claim, 1);
  right.floor_ms = kStart - 5;
  claim.done(right);
  EXPECT_EQ(Take(Kind::kLower).limit_ms, kStart - 5);
  Tick();
  EXPECT_EQ(done, 1);
}

TEST_F(RightKeeperTest, AWorkerThatWasLostAndComesAfterTheStopIsGivenBackAboveWhatWasMinted) {
  Start();
  GrantClaim(1);
  Pass(seconds(300));
  Fail(Kind::kExtend, Code::kConflict, "the record is another's");
  const Call claim = Take(Kind::kClaim);
  Minted minted;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(engine->TryMint(10'000, clock.now, minted));
  const std::int64_t last =
      Decode(options.layout, minted.At(options.layout, minted.count - 1)).time_ms;
  engine->Close([] {});
  Tick();
  WorkerRight right = Granted(claim, 1, 2);
  right.floor_ms = claim.ask.now_ms;
  claim.done(right);
  EXPECT_EQ(Take(Kind::kLower).limit_ms, last + 1);
}

TEST_F(RightKeeperTest, BoundTheJournalsWorkerThatComesAfterTheStopLikewise) {
  registry.its_traits.bound = true;
  journal.found = RightJournal::Found{{3, 7, std::string(32, 'a'), kStart + 600'000, kStart}, true};
  Start();
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  Saved();
  Pass(milliseconds(1100));
  const Call claim = Take(Kind::kClaim);
  Pass(milliseconds(1100));
  while (!journal.writes.empty()) Saved();
  Minted minted;
  std::int64_t last = 0;
  while (engine->TryMint(4000, clock.now, minted))
    last = Decode(options.layout, minted.At(options.layout, minted.count - 1)).time_ms;
  engine->Close([] {});
  Tick();
  WorkerRight right = Granted(claim, 3, 8);
  right.floor_ms = claim.ask.journal->short_ms;
  ASSERT_GT(last, right.floor_ms) << "the journal went on while the registry was asked";
  claim.done(right);
  EXPECT_EQ(Take(Kind::kLower).limit_ms, last + 1);
}

TEST_F(RightKeeperTest, BoundACleanStopWritesTheLoweredLimitDown) {
  StartBound(5);
  ASSERT_TRUE(Mints());
  int done = 0;
  engine->Close([&] { ++done; });
  Tick();
  ASSERT_EQ(journal.writes.size(), 1U);
  EXPECT_TRUE(journal.writes.front().record.spent)
      << "nothing is left to carry on with, before the registry is told";
  EXPECT_EQ(journal.writes.front().record.short_ms, kStart + 3000)
      << "and a restart that finds its own record begins there";
  EXPECT_TRUE(registry.calls.empty());
  Saved();
  const Call lower = Take(Kind::kLower);
  EXPECT_EQ(lower.limit_ms, kStart + 1);
  WorkerRight right = lower.right;
  right.limit_ms = lower.limit_ms;
  lower.done(right);
  EXPECT_EQ(done, 0);
  ASSERT_EQ(journal.writes.size(), 1U);
  EXPECT_EQ(journal.writes.front().record.limit_ms, kStart + 1);
  EXPECT_EQ(journal.writes.front().record.short_ms, kStart + 1);
  Saved();
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace leaf::test
