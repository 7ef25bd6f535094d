#include "store/blocking_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "store/blocking_store_testing.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(BlockingStoreTest, ConnectsWithoutACall) {
  StartUp();
  const StoreStatus status = store_->Status();
  EXPECT_EQ(status.kind, "scripted");
  EXPECT_EQ(status.identity, "scripted:1");
  EXPECT_EQ(status.durability, Durability::kPower);
  EXPECT_EQ(status.sessions, 1);
  EXPECT_EQ(status.calls, 0U);
}

TEST_F(BlockingStoreTest, AnswersEveryAskOnce) {
  Start();
  for (Flight flight = 1; flight <= 500; ++flight) Reserve(flight, "a");
  std::set<std::int64_t> firsts;
  for (Flight flight = 1; flight <= 500; ++flight) {
    const Grant grant = answers_.Await(flight);
    EXPECT_EQ(grant.outcome, Outcome::kGranted) << grant.error.message;
    EXPECT_EQ(grant.range.size(), 10);
    EXPECT_EQ(grant.store_id, IdentityHash("scripted:1"));
    firsts.insert(grant.range.first);
  }
  EXPECT_EQ(firsts.size(), 500U);
}

TEST_F(BlockingStoreTest, HandsCallsAndTheirResultsThrough) {
  StartUp();
  std::promise<Result<Row>> made;
  store_->Create("t", 7, 5, kNever, [&](Result<Row> row) { made.set_value(std::move(row)); });
  EXPECT_EQ(made.get_future().get()->max_id, 5);
  std::promise<Result<std::optional<Row>>> found;
  store_->Find("t", kNever,
               [&](Result<std::optional<Row>> row) { found.set_value(std::move(row)); });
  EXPECT_EQ((**found.get_future().get()).max_id, 5);
  std::promise<Result<Row>> deleted;
  store_->Delete("t", kNever, [&](Result<Row> row) { deleted.set_value(std::move(row)); });
  EXPECT_THAT(deleted.get_future().get().error().message, HasSubstr("connection lost"));
}

TEST_F(BlockingStoreTest, RefusesWhileTheStoreIsAwayAndComesBackByItself) {
  script_->fail_opens = -1;
  Start();
  ASSERT_TRUE(script_->Await([](Script& s) { return s.failed_opens >= 4; }));
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return !s.last_error.empty(); }));
  EXPECT_FALSE(store_->Status().up);
  Reserve(1, "a");
  const Grant grant = answers_.Await(1);
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_EQ(grant.error.code, Code::kUnavailable);
  EXPECT_THAT(grant.error.message, HasSubstr("connection refused"));
  script_->With([](Script& s) { s.fail_opens = 0; });
  const Instant healed = SystemClock().Now();
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
  EXPECT_LT(SystemClock().Now() - healed, seconds(1));
  Reserve(2, "a");
  EXPECT_EQ(answers_.Await(2).outcome, Outcome::kGranted);
}

TEST_F(BlockingStoreTest, TriesAnAbsentStoreWithBackOff) {
  script_->fail_opens = -1;
  options_.retry_max = seconds(1);
  const Instant begin = SystemClock().Now();
  Start();
  ASSERT_TRUE(script_->Await([](Script& s) { return s.failed_opens >= 5; }));
  // The pauses before the 2nd to 5th try are at least half of 50, 100, 200, 400 ms.
  EXPECT_GE(SystemClock().Now() - begin, milliseconds(375));
}

TEST_F(BlockingStoreTest, CallsWaitForTheFirstConnect) {
  script_->hang_open = true;
  Start();
  Reserve(1, "a");
  ASSERT_TRUE(AwaitBlocked(1));
  EXPECT_FALSE(answers_.Has(1));
  script_->With([](Script& s) { s.hang_open = false; });
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kGranted);
}

TEST_F(BlockingStoreTest, NeverBeginsACallAfterItsDeadline) {
  options_.max_sessions = 1;
  StartUp();
  Hang("slow");
  Reserve(1, "slow");
  ASSERT_TRUE(AwaitBlocked(1));
  Reserve(2, "late", In(milliseconds(30)));
  Reserve(3, "past", SystemClock().Now());
  const Grant grant = answers_.Await(2);
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_EQ(answers_.Await(3).outcome, Outcome::kRefused);
  Free("slow");
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kGranted);
  Reserve(4, "next");
  EXPECT_EQ(answers_.Await(4).outcome, Outcome::kGranted);
  EXPECT_FALSE(Saw("reserve late"));
  EXPECT_FALSE(Saw("reserve past"));
}

TEST_F(BlockingStoreTest, InterruptsACallAtItsDeadlineAndReconnects) {
  StartUp();
  Hang("slow");
  Reserve(1, "slow", In(milliseconds(50)));
  const Grant grant = answers_.Await(1);
  EXPECT_EQ(grant.outcome, Outcome::kUnknown);
  Free("slow");
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
  Reserve(2, "slow");
  EXPECT_EQ(answers_.Await(2).outcome, Outcome::kGranted);
  EXPECT_GE(script_->With([](Script& s) { return s.interrupts; }), 1);
}

TEST_F(BlockingStoreTest, ReplacesAThreadThatStaysStuck) {
  StartUp();
  Hang("stuck", true);
  const Instant deadline = In(milliseconds(50));
  Reserve(1, "stuck", deadline);
  const Grant grant = answers_.Await(1);
  EXPECT_EQ(grant.outcome, Outcome::kUnknown);
  EXPECT_LT(SystemClock().Now(), deadline + seconds(2));
  Reserve(2, "fine");
  EXPECT_EQ(answers_.Await(2).outcome, Outcome::kGranted);
  Free("stuck");  // the late result is dropped: Answers would fail on a second one
  EXPECT_TRUE(script_->Await([](Script& s) { return s.drivers == 1; }));
}

TEST_F(BlockingStoreTest, RefusesWhenTooManyThreadsAreStuckAndRecovers) {
  options_.max_stuck = 2;
  options_.max_sessions = 1;
  StartUp();
  Hang("stuck", true);
  Reserve(1, "stuck", In(milliseconds(20)));
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kUnknown);
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
  Reserve(2, "stuck", In(milliseconds(20)));
  EXPECT_EQ(answers_.Await(2).outcome, Outcome::kUnknown);
  Reserve(3, "fine");
  const Grant grant = answers_.Await(3);
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_THAT(grant.error.message, HasSubstr("2 calls do not return"));
  EXPECT_EQ(script_->With([](Script& s) { return s.drivers; }), 2) << "no thread beyond the bound";
  Free("stuck");
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
  Reserve(4, "fine");
  EXPECT_EQ(answers_.Await(4).outcome, Outcome::kGranted);
}

TEST_F(BlockingStoreTest, AConnectThatHangsIsGivenUp) {
  script_->hang_open = true;
  script_->deaf = true;
  options_.timeout = milliseconds(40);
  Start();
  ASSERT_TRUE(script_->Await([](Script& s) { return s.blocked >= 2; })) << "a second try";
  EXPECT_THAT(store_->Status().last_error, HasSubstr("no answer within"));
  script_->With([](Script& s) { s.hang_open = false; });
  EXPECT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
}

TEST_F(BlockingStoreTest, ASlowRowDelaysNoOther) {
  StartUp();
  Hang("slow");
  Reserve(1, "slow");
  ASSERT_TRUE(AwaitBlocked(1));
  for (Flight flight = 2; flight < 100; ++flight) Reserve(flight, "fine");
  for (Flight flight = 2; flight < 100; ++flight) {
    EXPECT_EQ(answers_.Await(flight).outcome, Outcome::kGranted);
  }
  EXPECT_FALSE(answers_.Has(1));
}

TEST_F(BlockingStoreTest, OpensNoMoreThanItsSessions) {
  options_.max_sessions = 3;
  StartUp();
  Hang("slow");
  for (Flight flight = 1; flight <= 20; ++flight) Reserve(flight, "slow");
  ASSERT_TRUE(AwaitBlocked(3));
  EXPECT_EQ(script_->With([](Script& s) { return s.drivers; }), 3);
  Free("slow");
  for (Flight flight = 1; flight <= 20; ++flight) answers_.Await(flight);
  EXPECT_EQ(script_->With([](Script& s) { return s.opens; }), 3);
}

TEST_F(BlockingStoreTest, KeepsOneSessionAndClosesTheSurplus) {
  options_.idle = milliseconds(20);
  StartUp();
  Hang("slow");
  for (Flight flight = 1; flight <= 4; ++flight) Reserve(flight, "slow");
  ASSERT_TRUE(AwaitBlocked(4));
  Free("slow");
  EXPECT_TRUE(script_->Await([](Script& s) { return s.drivers == 1; }));
  EXPECT_EQ(store_->Status().sessions, 1);
  EXPECT_TRUE(store_->Status().up);
}

TEST_F(BlockingStoreTest, ServesOnWhenOneMoreSessionIsRefused) {
  script_->opens_allowed = 1;
  StartUp();
  Hang("slow");
  Reserve(1, "slow");
  ASSERT_TRUE(AwaitBlocked(1));
  Reserve(2, "fine");
  ASSERT_TRUE(script_->Await([](Script& s) { return s.failed_opens >= 1; }));
  EXPECT_TRUE(store_->Status().up);
  Free("slow");
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kGranted);
  EXPECT_EQ(answers_.Await(2).outcome, Outcome::kGranted);
}

TEST_F(BlockingStoreTest, PutsWaitingAsksIntoOneCallUpToTheBatchLimit) {
  options_.max_sessions = 1;
  script_->batch_limit = 3;
  StartUp();
  Hang("slow");
  Reserve(1, "slow");
  ASSERT_TRUE(AwaitBlocked(1));
  for (Flight flight = 2; flight <= 6; ++flight) Reserve(flight, "t" + std::to_string(flight));
  Free("slow");
  for (Flight flight = 1; flight <= 6; ++flight) {
    EXPECT_EQ(answers_.Await(flight).outcome, Outcome::kGranted);
  }
  EXPECT_THAT(script_->With([](Script& s) { return s.log; }),
              ElementsAre("reserve slow", "reserve t2 t3 t4", "reserve t5 t6"));
}

TEST_F(BlockingStoreTest, ReservationsAndOtherCallsTakeTurns) {
  options_.max_sessions = 1;
  StartUp();
  Hang("slow");
  Reserve(1, "slow");
  ASSERT_TRUE(AwaitBlocked(1));
  std::atomic<int> found{0};
  for (Flight flight = 2; flight < 5000; ++flight) Reserve(flight, "r");
  for (int i = 0; i < 100; ++i)
    store_->Find("f", kNever, [&](Result<std::optional<Row>>) { ++found; });
  Free("slow");
  answers_.Await(4999);
  EXPECT_EQ(found, 100);
  const auto log = script_->With([](Script& s) { return s.log; });
  EXPECT_EQ(std::count(log.begin(), log.begin() + 201, "find f"), 100);
}

TEST_F(BlockingStoreTest, ACutSessionCostsNoRequest) {
  StartUp();
  script_->With([](Script& s) { s.cut_reserves = 1; });
  Reserve(1, "a");
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kGranted);
  EXPECT_THAT(script_->With([](Script& s) { return s.log; }),
              ElementsAre("reserve a", "reserve a"));
}

TEST_F(BlockingStoreTest, ACutSessionThatCannotReopenLeavesNoCallWaiting) {
  StartTwoSessions();
  script_->With([](Script& s) {
    s.fail_opens = -1;
    s.cut_reserves = 1;
  });
  const Instant before = SystemClock().Now();
  Reserve(3, "a");
  EXPECT_EQ(answers_.Await(3).outcome, Outcome::kRefused);
  EXPECT_LT(SystemClock().Now() - before, options_.timeout / 2);
  EXPECT_TRUE(AwaitStatus([](const StoreStatus& s) { return !s.up; }));
}

TEST_F(BlockingStoreTest, ASilentSessionMakesTheIdleOnesReconnect) {
  StartTwoSessions();
  Hang("silent");
  Reserve(3, "silent", In(milliseconds(20)));
  EXPECT_EQ(answers_.Await(3).outcome, Outcome::kUnknown);
  EXPECT_TRUE(script_->Await([](Script& s) { return s.opens == 4; }));
}

TEST_F(BlockingStoreTest, AReservationIsRepeatedOnceAtMost) {
  StartUp();
  script_->With([](Script& s) { s.cut_reserves = 5; });
  Reserve(1, "a");
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kRefused);
  EXPECT_EQ(script_->With([](Script& s) { return s.cut_reserves; }), 3);
}

TEST_F(BlockingStoreTest, NeverRepeatsWhatMayHaveHappened) {
  StartUp();
  Hang("a");
  Reserve(1, "a", In(milliseconds(20)));
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kUnknown);
  std::promise<Result<Row>> made;
  store_->Create("a", 1, 1, In(milliseconds(500)),
                 [&](Result<Row> row) { made.set_value(std::move(row)); });
  EXPECT_FALSE(made.get_future().get().ok());
  Free("a");
  EXPECT_THAT(script_->With([](Script& s) { return s.log; }), ElementsAre("reserve a", "create a"));
}

TEST_F(BlockingStoreTest, RefusesReservationsFromAWeakStoreUntilItIsStronger) {
  script_->durability = Durability::kProcess;
  Start();
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return !s.last_error.empty(); }));
  const StoreStatus status = store_->Status();
  EXPECT_FALSE(status.up);
  EXPECT_EQ(status.durability, Durability::kProcess);
  Reserve(1, "a");
  const Grant grant = answers_.Await(1);
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_THAT(grant.error.message, HasSubstr("min_durability"));
  std::promise<bool> found;
  store_->Find("a", kNever, [&](Result<std::optional<Row>> row) { found.set_value(row.ok()); });
  EXPECT_TRUE(found.get_future().get()) << "reading needs no durability";
  script_->With([](Script& s) { s.durability = Durability::kPower; });
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
  Reserve(2, "a");
  EXPECT_EQ(answers_.Await(2).outcome, Outcome::kGranted);
  EXPECT_FALSE(Saw("reserve a reserve a"));
}

TEST_F(BlockingStoreTest, AWeakStoreThatIsLostStillHasAReason) {
  script_->durability = Durability::kProcess;
  options_.retry_max = milliseconds(200);
  Start();
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return !s.last_error.empty(); }));
  for (int i = 0; i < 5; ++i) {
    Hang("slow");
    std::promise<void> lost;
    store_->Create("slow", 10, 1, kNever, [&](const Result<Row>&) { lost.set_value(); });
    // It may have been refused at once, while the session of the turn before reopens.
    script_->Await([](Script& s) { return s.blocked == 1 || s.sessions == 0; });
    store_->Abort();
    lost.get_future().get();
    script_->With([](Script& s) { s.hang.clear(); });
    std::promise<std::string> told;
    store_->Find("a", kNever, [&](const Result<std::optional<Row>>& row) {
      told.set_value(row.ok() ? "found" : row.error().message);
    });
    EXPECT_NE(told.get_future().get(), "scripted: ");
  }
}

TEST_F(BlockingStoreTest, LogsWhatTheProbeWarnsOfOnceAsLongAsTheStoreAnswers) {
  script_->warnings = {"scripted: flushes now and then"};
  testing::internal::CaptureStderr();
  Start();
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
  Reserve(1, "a");
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kGranted);
  store_.reset();
  const std::string text = testing::internal::GetCapturedStderr();
  const std::size_t found = text.find("scripted: flushes now and then store=scripted");
  EXPECT_NE(found, std::string::npos) << text;
  EXPECT_EQ(text.find("flushes", found + 20), std::string::npos) << text;
}

TEST_F(BlockingStoreTest, LogsAReasonThatChangesWhileTheStoreIsAway) {
  options_.retry_max = milliseconds(2);
  script_->fail_opens = -1;
  script_->open_failure = "no host";
  testing::internal::CaptureStderr();
  Start();
  ASSERT_TRUE(script_->Await([](Script& s) { return s.opens > 20; }));
  script_->With([](Script& s) { s.open_failure = "no table"; });
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.last_error.ends_with("no table"); }));
  const int opens = script_->With([](Script& s) { return s.opens; });
  ASSERT_TRUE(script_->Await([&](Script& s) { return s.opens > opens + 20; }));
  store_.reset();
  const std::string text = testing::internal::GetCapturedStderr();
  for (const char* reason : {"no host", "no table"}) {
    const std::size_t found = text.find(reason);
    EXPECT_NE(found, std::string::npos) << text;
    EXPECT_EQ(text.find(reason, found + 1), std::string::npos) << "once:\n" << text;
  }
}

TEST_F(BlockingStoreTest, ForgetsWhatWasWrongOnceItIsMended) {
  script_->fail_opens = -1;
  Start();
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return !s.last_error.empty(); }));
  script_->With([](Script& s) { s.fail_opens = 0; });
  ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
  EXPECT_EQ(store_->Status().last_error, "");
}

TEST_F(BlockingStoreTest, BoundsItsQueue) {
  options_.max_sessions = 1;
  options_.max_queued = 5;
  StartUp();
  Hang("slow");
  Reserve(1, "slow");
  ASSERT_TRUE(AwaitBlocked(1));
  for (Flight flight = 2; flight <= 7; ++flight) Reserve(flight, "a");
  EXPECT_EQ(answers_.Await(7).outcome, Outcome::kRefused);
  Free("slow");
  for (Flight flight = 1; flight <= 6; ++flight) {
    EXPECT_EQ(answers_.Await(flight).outcome, Outcome::kGranted);
  }
}

TEST_F(BlockingStoreTest, AnAnswerMayAskAgain) {
  class Chain final : public GrantSink {
   public:
    explicit Chain(std::unique_ptr<BlockingStore>& store) : store_(store) {}
    void OnGrant(const Grant& grant) override {
      if (grant.flight == 50) {
        done.set_value();
        return;
      }
      // Every other one is refused: no answer may come from inside the call.
      const Ask ask{grant.flight + 1, "a", 1, grant.flight % 2 == 0 ? kNever : Instant{}};
      store_->Reserve({&ask, 1}, *this);
    }
    std::promise<void> done;

   private:
    std::unique_ptr<BlockingStore>& store_;
  };
  StartUp();
  Chain chain(store_);
  const Ask ask{1, "a", 1, kNever};
  store_->Reserve({&ask, 1}, chain);
  EXPECT_EQ(chain.done.get_future().wait_for(seconds(10)), std::future_status::ready);
}

TEST_F(BlockingStoreTest, AbortCutsCallsUnderWayAndServesOn) {
  StartUp();
  Hang("slow");
  Reserve(1, "slow");
  ASSERT_TRUE(AwaitBlocked(1));
  store_->Abort();
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kUnknown);
  Reserve(2, "fine");
  EXPECT_EQ(answers_.Await(2).outcome, Outcome::kGranted);
  EXPECT_GE(script_->With([](Script& s) { return s.opens; }), 2);
}

TEST_F(BlockingStoreTest, ItsEndAnswersEverythingInTimeThoughADriverHangsForEver) {
  options_.max_sessions = 2;
  StartUp();
  Hang("stuck", true);
  Reserve(1, "stuck");
  Reserve(2, "stuck");
  ASSERT_TRUE(AwaitBlocked(2));
  Reserve(3, "queued");
  auto captured = std::make_shared<int>(0);
  store_->Find("queued", kNever,
               [captured](Result<std::optional<Row>> row) { *captured = row.ok() ? 1 : 2; });
  const Instant begin = SystemClock().Now();
  store_.reset();
  EXPECT_LT(SystemClock().Now() - begin, seconds(2));
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kUnknown);
  EXPECT_EQ(answers_.Await(2).outcome, Outcome::kUnknown);
  EXPECT_EQ(answers_.Await(3).outcome, Outcome::kRefused);
  EXPECT_EQ(*captured, 2);
  EXPECT_EQ(captured.use_count(), 1) << "what an answer captured has ended with it";
  answers_.Shut();
  Free("stuck");
  EXPECT_TRUE(script_->Await([](Script& s) { return s.drivers == 0; }));
}

TEST_F(BlockingStoreTest, EndsAtOnceWhenIdle) {
  StartUp();
  const Instant begin = SystemClock().Now();
  store_.reset();
  EXPECT_LT(SystemClock().Now() - begin, milliseconds(400));
  EXPECT_EQ(script_->With([](Script& s) { return s.drivers; }), 0);
}

TEST_F(BlockingStoreTest, EndsWhileItConnects) {
  script_->hang_open = true;
  Start();
  ASSERT_TRUE(AwaitBlocked(1));
  Reserve(1, "a");
  store_.reset();
  EXPECT_EQ(answers_.Await(1).outcome, Outcome::kRefused);
}

TEST_F(BlockingStoreTest, AnswersAllUnderLoadWithFaults) {
  constexpr int kThreads = 4;
  constexpr Flight kEach = 300;
  options_.timeout = milliseconds(200);
  script_->batch_limit = 4;
  StartUp();
  Hang("slow");
  std::vector<std::thread> threads;
  for (Flight t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (Flight i = 1; i <= kEach; ++i) {
        Reserve(t * kEach + i, i % 100 == 0 ? "slow" : "fine");
        if (i % 50 == 0) store_->Abort();
        if (i % 70 == 0) script_->With([](Script& s) { s.fail_opens = 1; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Flight flight = 1; flight <= kThreads * kEach; ++flight) answers_.Await(flight);
}

}  // namespace
}  // namespace leaf
