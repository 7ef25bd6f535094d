#include "core/snowflake/snowflake_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/snowflake/snowflake_test_support.h"

namespace leaf::test {
namespace {

using testing::HasSubstr;

class SnowflakeEngineTest : public SnowflakeRig {
 protected:
  void StartWithWorker(std::int64_t worker = 1) {
    Start();
    GrantClaim(worker);
  }
};

TEST_F(SnowflakeEngineTest, ARequestBeforeTheFirstWorkerWaitsForIt) {
  Start();
  TestWaiter waiter(tasks, 3, false);
  EXPECT_FALSE(Ask(waiter)) << "parked";
  EXPECT_EQ(engine->View().parked, 1);
  GrantClaim(6);
  tasks.RunAll();
  ASSERT_EQ(waiter.runs, 1);
  ASSERT_TRUE(waiter.result.ok());
  EXPECT_EQ(waiter.minted.count, 3);
  EXPECT_EQ(waiter.minted.worker, 6);
  EXPECT_EQ(engine->View().parked, 0);
  EXPECT_EQ(engine->View().waits, 1U);
  EXPECT_EQ(engine->View().issued, 3U);
}

TEST_F(SnowflakeEngineTest, AWaitIsBounded) {
  Start();
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  TestWaiter waiter(tasks, 1, false);
  EXPECT_FALSE(Ask(waiter));
  clock.now += milliseconds(2999);
  Tick();
  tasks.RunAll();
  EXPECT_EQ(waiter.runs, 0);
  clock.now += milliseconds(1);
  Tick();
  tasks.RunAll();
  ASSERT_EQ(waiter.runs, 1);
  ASSERT_FALSE(waiter.result.ok());
  EXPECT_EQ(waiter.result.error().code, Code::kUnavailable);
  EXPECT_EQ(waiter.result.error().message, engine->View().reason);
  EXPECT_FALSE(engine->Cancel(waiter));
}

TEST_F(SnowflakeEngineTest, MoreIdsThanALeaseHasTimeForAreRefusedAtOnce) {
  options.layout = *CustomLayout("41/1/1", kLeafLayout.epoch_ms, 1);
  options.lease = seconds(2);
  StartWithWorker();
  TestWaiter waiter(tasks, 10'000, false);
  const auto out = Ask(waiter);
  ASSERT_TRUE(out && !out->ok()) << "five seconds of them, and a right lasts for two";
  EXPECT_EQ(out->error().code, Code::kInvalidArgument);
  EXPECT_NE(out->error().message.find("snowflake.lease"), std::string::npos);
}

TEST_F(SnowflakeEngineTest, AClockBackWithinTheDriftCostsNothing) {
  StartWithWorker();
  ASSERT_TRUE(Mints());
  Step(-4000);
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(Mints()) << i;
  EXPECT_EQ(engine->View().steps_back, 1U);
  EXPECT_TRUE(engine->View().serving);
}

TEST_F(SnowflakeEngineTest, AClockBackBeyondTheDriftIsWaitedFor) {
  StartWithWorker();
  ASSERT_TRUE(Mints());
  Step(-6000);
  EXPECT_FALSE(Mints());
  TestWaiter waiter(tasks, 1, false);
  EXPECT_FALSE(Ask(waiter)) << "a second is worth waiting for";
  EXPECT_THAT(engine->View().reason, HasSubstr("the clock is behind"));
  Pass(milliseconds(999));
  tasks.RunAll();
  EXPECT_EQ(waiter.runs, 0);
  EXPECT_LE(due, clock.now + milliseconds(2));
  Pass(milliseconds(1));
  tasks.RunAll();
  ASSERT_EQ(waiter.runs, 1);
  ASSERT_TRUE(waiter.result.ok());
  EXPECT_GT(waiter.minted.At(options.layout, 0), last_id);
}

TEST_F(SnowflakeEngineTest, AClockTooFarBackIsAnErrorAtOnce) {
  StartWithWorker();
  ASSERT_TRUE(Mints());
  Step(-60'000);
  const Error error = Refusal();
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("the clock is behind"));
  EXPECT_EQ(engine->View().parked, 0);
}

TEST_F(SnowflakeEngineTest, ABatchUsesHalfOfTheDriftOnly) {
  StartWithWorker();
  ASSERT_TRUE(Mints());
  Step(-4000);
  Minted minted;
  EXPECT_FALSE(engine->TryMint(17, clock.now, minted));
  EXPECT_TRUE(engine->TryMint(16, clock.now, minted));
  TestWaiter batch(tasks, 17, false);
  EXPECT_FALSE(Ask(batch));
  EXPECT_TRUE(engine->TryMint(1, clock.now, minted)) << "a batch that waits stops no single id";
  Pass(milliseconds(1501));
  tasks.RunAll();
  ASSERT_EQ(batch.runs, 1);
  ASSERT_TRUE(batch.result.ok());
  EXPECT_EQ(batch.minted.count, 17);
}

TEST_F(SnowflakeEngineTest, BatchesWaitBehindSinglesAndNewcomersBehindThoseWhoWait) {
  Start();
  TestWaiter batch(tasks, 5000, false), single(tasks, 1, false), second(tasks, 1, false);
  EXPECT_FALSE(Ask(batch));
  EXPECT_FALSE(Ask(single));
  const Call claim = Take(Kind::kClaim);
  claim.done(Granted(claim, 1));
  Minted minted;
  EXPECT_FALSE(engine->TryMint(1, clock.now, minted)) << "somebody waits";
  EXPECT_FALSE(engine->TryMint(17, clock.now, minted));
  EXPECT_FALSE(Ask(second));
  Tick();
  tasks.RunAll();
  ASSERT_TRUE(single.result.ok() && second.result.ok() && batch.result.ok());
  EXPECT_EQ(single.runs + second.runs + batch.runs, 3);
  EXPECT_LT(single.minted.first, second.minted.first);
  EXPECT_LT(second.minted.first, batch.minted.first) << "the batch came first, and is served last";
  EXPECT_TRUE(engine->TryMint(1, clock.now, minted));
}

TEST_F(SnowflakeEngineTest, ABatchThatCouldBeServedWaitsForTheSingleBeforeIt) {
  options.drift = Duration::zero();
  StartWithWorker();
  Minted minted;
  ASSERT_TRUE(engine->TryMint(4000, clock.now, minted));
  ASSERT_TRUE(engine->TryMint(4000, clock.now, minted));
  TestWaiter single(tasks, 1, false), batch(tasks, 4100, false);
  EXPECT_FALSE(Ask(single));
  EXPECT_FALSE(Ask(batch));
  Tick();
  tasks.RunAll();
  EXPECT_EQ(batch.runs, 0) << "a batch has room for itself, also without drift";
  Pass(milliseconds(1));
  tasks.RunAll();
  ASSERT_EQ(single.runs + batch.runs, 2);
  EXPECT_LT(single.minted.first, batch.minted.first);
}

TEST_F(SnowflakeEngineTest, ACancelledRequestIsNotPosted) {
  Start();
  TestWaiter one(tasks, 1, false), two(tasks, 1, false);
  EXPECT_FALSE(Ask(one));
  EXPECT_FALSE(Ask(two));
  EXPECT_TRUE(engine->Cancel(one));
  EXPECT_FALSE(engine->Cancel(one)) << "once";
  EXPECT_EQ(engine->View().parked, 1);
  GrantClaim(1);
  EXPECT_FALSE(engine->Cancel(two)) << "it is on its way";
  tasks.RunAll();
  EXPECT_EQ(one.runs, 0);
  EXPECT_EQ(two.runs, 1);
  EXPECT_TRUE(Mints());
}

TEST_F(SnowflakeEngineTest, TooManyThatWaitAreOverload) {
  options.max_waiters = 2;
  Start();
  TestWaiter one(tasks, 1, false), batch(tasks, 100, false);
  EXPECT_FALSE(Ask(one));
  EXPECT_FALSE(Ask(batch));
  const Error error = Refusal();
  EXPECT_EQ(error.code, Code::kOverloaded);
  EXPECT_THAT(error.message, HasSubstr("2 requests wait already: no worker was claimed yet"));
  EXPECT_TRUE(engine->Cancel(batch));
  EXPECT_EQ(Refusal().message, "parked");
  EXPECT_TRUE(engine->Cancel(one));
}

TEST_F(SnowflakeEngineTest, TheEndOfTheLayoutIsExhaustion) {
  options.layout = Layout{"custom", kStart - 1000, 10, 10, 12};
  StartWithWorker();
  ASSERT_TRUE(Mints());
  Minted minted;
  clock.now += milliseconds(23);
  ASSERT_TRUE(engine->TryMint(3900, clock.now, minted));
  EXPECT_LT(minted.At(options.layout, 3899), std::int64_t{1} << 32);
  EXPECT_EQ(Refusal(1000).code, Code::kExhausted) << "the last tick has not so many left";
  clock.now += milliseconds(1);
  clock.wall_ms += 24;
  const Error error = Refusal();
  EXPECT_EQ(error.code, Code::kExhausted);
  EXPECT_THAT(error.message, HasSubstr("10/10/12@1799999999000 has ended"));
  EXPECT_FALSE(engine->View().serving);
  EXPECT_THAT(engine->View().reason, HasSubstr("the layout ended at"));
}

TEST_F(SnowflakeEngineTest, PeopleAreToldTenYearsBeforeTheEnd) {
  options.layout = Layout{"custom", kStart - 1000, 30, 10, 12};
  StartWithWorker();
  EXPECT_TRUE(engine->View().serving);
  EXPECT_THAT(engine->View().reason, HasSubstr("ends within ten years"));
}

TEST_F(SnowflakeEngineTest, BeginsAboveWhatTheProcessBeforeMinted) {
  order.last = kStart + 2000;
  StartWithWorker();
  const auto parts = MintOne();
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->time_ms, kStart + 2001);
}

TEST_F(SnowflakeEngineTest, AnOrderWordFarAheadIsNoIdAndAnAdvice) {
  order.last = kStart + 86'400'000;
  options.lease = std::chrono::hours(48);
  StartWithWorker();
  const Error error = Refusal();
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("removing the file snowflake-order"));
}

TEST_F(SnowflakeEngineTest, TheOrderWordIsRaisedBeforeAnIdLeavesAndNeverLowered) {
  StartWithWorker();
  ASSERT_TRUE(Mints());
  EXPECT_EQ(order.its_word.load(), kStart);
  Pass(milliseconds(50));
  Minted minted;
  ASSERT_TRUE(engine->TryMint(5000, clock.now, minted));
  EXPECT_EQ(order.its_word.load(), kStart + 51) << "the last of the batch";
  Step(-3000);
  ASSERT_TRUE(Mints());
  EXPECT_EQ(order.its_word.load(), kStart + 51);
  order.its_word = kStart + 900;
  ASSERT_TRUE(engine->TryMint(1, clock.now, minted));
  EXPECT_EQ(order.its_word.load(), kStart + 900);
}

TEST_F(SnowflakeEngineTest, TheOrderWordCoversAWholeTick) {
  options.layout = Layout{"custom", kStart - 1000, 30, 10, 12, 10};
  StartWithWorker();
  ASSERT_TRUE(Mints());
  EXPECT_EQ(order.its_word.load(), kStart + 9);
}

TEST_F(SnowflakeEngineTest, AStopEndsThoseWhoWaitAndTakesNobodyMore) {
  Start();
  TestWaiter one(tasks, 1, false), batch(tasks, 100, false);
  EXPECT_FALSE(Ask(one));
  EXPECT_FALSE(Ask(batch));
  engine->Close([] {});
  tasks.RunAll();
  for (const TestWaiter* waiter : {&one, &batch}) {
    ASSERT_EQ(waiter->runs, 1);
    ASSERT_FALSE(waiter->result.ok());
    EXPECT_EQ(waiter->result.error().code, Code::kUnavailable);
    EXPECT_THAT(waiter->result.error().message, HasSubstr("stopping"));
  }
  EXPECT_EQ(Refusal().message, "this server is stopping");
  EXPECT_FALSE(Mints());
  EXPECT_EQ(engine->View().parked, 0);
}

TEST_F(SnowflakeEngineTest, WorkersAreTheRegistrys) {
  Start();
  std::vector<WorkerRecord> workers;
  engine->Workers([&](Result<std::vector<WorkerRecord>> result) {
    ASSERT_TRUE(result.ok());
    workers = *result;
  });
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].worker, 4);
  std::int64_t retired = -1;
  engine->Retire(12, [&](Result<WorkerRecord> result) {
    ASSERT_TRUE(result.ok());
    retired = result->worker;
  });
  EXPECT_EQ(retired, 12);
}

}  // namespace
}  // namespace leaf::test
