// What the store makes of lost answers, killed sessions, locks, frozen servers and
// idle connections. Every outcome must be honest: what was granted and what is unknown explain the
// row's whole movement.

#include <signal.h>

#include <atomic>
#include <future>
#include <optional>
#include <vector>

#include "base/random.h"
#include "store/blocking_store.h"
#include "store/postgres/postgres_testing.h"
#include "tests/harness/tcp_relay.h"

namespace leaf {
namespace {

using harness::TcpRelay;
using std::chrono::milliseconds;
using testing::AnyOf;
using testing::HasSubstr;

/// Reservations of one tag by one session at a time, each of `count` ids, in the order they were
/// made.
class History {
 public:
  explicit History(std::int64_t count) : count_(count) {}
  void Add(const Grant& grant) {
    if (grant.outcome == Outcome::kGranted) {
      Explain(grant.range.first);
      end_ = grant.range.last;
      ++granted;
    } else {
      ++(grant.outcome == Outcome::kUnknown ? burnt_ : refused);
    }
  }
  /// The row stands at `next`: what lies between are some of the unknown ones since the last grant.
  void Explain(std::int64_t next) {
    const std::int64_t gap = next - end_;
    EXPECT_GE(gap, 0) << "ids twice";
    EXPECT_EQ(gap % count_, 0);
    EXPECT_LE(gap / count_, burnt_) << "a refused one has moved the row";
    happened += gap / count_;
    unknown += burnt_;
    burnt_ = 0;
    end_ = next;
  }
  std::int64_t granted = 0, unknown = 0, refused = 0, happened = 0;

 private:
  const std::int64_t count_;
  std::int64_t end_ = 1, burnt_ = 0;
};

class PostgresFaultsTest : public PostgresTest {
 protected:
  static void SignalSessions(int number) {
    for (const auto& row : Server().Exec("SELECT pid FROM pg_stat_activity WHERE usename = 'leaf'"))
      kill(std::stoi(row[0].value_or("0")), number);
  }
};

// --- Lost answers.

TEST_F(PostgresFaultsTest, ALostAcknowledgementIsAGapAndNeverADuplicate) {
  Put("order", 1, 10);
  TcpRelay relay(Server().port());
  const auto driver = Open(Through(relay.port()));
  std::int64_t end = 1;
  constexpr int kLosses = 25;
  for (int i = 0; i < kLosses; ++i) {
    relay.DropAnswers(true);
    Grant grant = Meanwhile(
        *driver, [&] { return MaxId("order") == end + 10; }, [&] { relay.Reset(); });
    EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
    EXPECT_FALSE(driver->connected());
    relay.DropAnswers(false);
    ASSERT_TRUE(driver->Open(In(kPatience)).ok());
    grant = Reserve(*driver, "order", 10);
    ASSERT_EQ(grant.range, (Range{end + 10, end + 20})) << Describe(grant);
    end += 20;
  }
  EXPECT_EQ(relay.accepted(), kLosses + 1) << "nothing was repeated behind our back";
}

TEST_F(PostgresFaultsTest, OfAPipelineWhoseAnswersAreLostAllIsUnknown) {
  const std::vector<std::string> tags = {"a", "b", "c"};
  for (const std::string& tag : tags) Put(tag, 1, 10);
  TcpRelay relay(Server().port());
  const auto driver = Open(Through(relay.port()));
  relay.DropAnswers(true);
  std::vector<Ask> asks;
  for (const std::string& tag : tags) asks.push_back({7, tag, 10, In(kPatience)});
  std::vector<Grant> grants(asks.size());
  auto call = std::async(std::launch::async, [&] { driver->Reserve(asks, grants); });
  ASSERT_TRUE(Eventually([] { return MaxId("c") == 11; }));
  relay.Reset();
  call.wait();
  for (const Grant& grant : grants) EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
}

TEST_F(PostgresFaultsTest, AServerThatDripsBytesIsCutOffAtTheDeadline) {
  Put("order", 1, 10);
  TcpRelay relay(Server().port());
  const auto driver = Open(Through(relay.port()));
  relay.Drip(milliseconds(20));
  const Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 10, milliseconds(300));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(600));
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(Refusal(Through(relay.port()), milliseconds(300)), HasSubstr("no answer in time"));
}

// --- Killed sessions.

TEST_F(PostgresFaultsTest, KilledSessionsLeaveHonestOutcomes) {
  Put("order", 1, 10);
  const std::uint64_t seed = SystemRandom().Next();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto driver = Open();
  const auto killing = Server().Connect();
  std::atomic<int> killed{0};
  std::jthread killer([&](const std::stop_token& stop) {
    std::uint64_t draw = seed;
    while (!stop.stop_requested()) {
      killed += std::stoi(killing->Value(
          "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'leaf'"));
      draw = draw * 6364136223846793005U + 1442695040888963407U;
      std::this_thread::sleep_for(std::chrono::microseconds(draw >> 48));  // up to 65 ms
    }
  });
  History history(10);
  const Instant until = In(std::chrono::seconds(2));
  while (SystemClock().Now() < until && !testing::Test::HasFailure())
    history.Add(ReserveWithReopen(*driver, "order", 10));
  killer.request_stop();
  killer.join();
  history.Explain(MaxId("order"));
  EXPECT_GT(history.granted, 0);
  EXPECT_GT(killed, 20);
  EXPECT_GT(history.unknown, 0) << "the killer never struck in the middle";
  std::printf("granted %ld, unknown %ld (of which happened %ld), refused %ld, killed %d\n",
              history.granted, history.unknown, history.happened, history.refused, killed.load());
}

TEST_F(PostgresFaultsTest, ASessionKilledBehindALockIsUnknownAndDidNotHappen) {
  Put("order", 1, 10);
  const auto driver = Open();
  auto lock = Lock("order");
  const Grant grant =
      Meanwhile(*driver, OneThat(kWaitsForLock), [&] { Each("pg_terminate_backend"); });
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("57P01"));
  EXPECT_FALSE(driver->connected());
  lock.reset();
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{1, 11}));
}

TEST_F(PostgresFaultsTest, AStatementThatAHandCancelledIsRefusedAndTheSessionGoesOn) {
  Put("order", 1, 10);
  StoreOptions options = Quick(kPatience);
  const auto driver = Open(options);
  auto lock = Lock("order");
  const Grant grant =
      Meanwhile(*driver, OneThat(kWaitsForLock), [&] { Each("pg_cancel_backend", kWaitsForLock); });
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_TRUE(driver->connected());
  lock.reset();
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
}

TEST_F(PostgresFaultsTest, TheServersDeathInTheMiddleIsUnknown) {
  Put("order", 1, 10);
  const auto driver = Open();
  auto lock = Lock("order");
  const Grant grant = Meanwhile(*driver, OneThat(kWaitsForLock), [&] { Server().Kill9(); });
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  lock.reset();
  Server().Start();
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10, kPatience).range, (Range{1, 11}));
}

TEST_F(PostgresFaultsTest, WhatWasGrantedSurvivesTheDeathOfTheServer) {
  // The weakest that a role can be given: without the statement's own setting a kill -9 loses ids.
  Server().Exec("ALTER ROLE leaf SET synchronous_commit = off");
  Put("order", 1, 10);
  std::atomic<std::int64_t> granted{1};
  const auto driver = Open();
  std::jthread node([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const Grant grant = Reserve(*driver, "order", 10);
      if (grant.outcome != Outcome::kGranted) return;
      granted = grant.range.last;
    }
  });
  ASSERT_TRUE(Eventually([&] { return granted > 2000; }));
  Server().Kill9();
  node.join();
  Server().Start();
  EXPECT_GE(MaxId("order"), granted);
  Server().Exec("ALTER ROLE leaf RESET synchronous_commit");
}

// --- Failures at the commit.

TEST_F(PostgresFaultsTest, ADeferredTriggerThatFailsAtTheCommitIsARefusal) {
  Put("order", 1, 10);
  Put("other", 1, 10);
  Server().Exec(
      "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
      "EXCEPTION 'not this one'; END $$; CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON leaf_alloc "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.biz_tag = 'order') EXECUTE FUNCTION "
      "fail()");
  const auto driver = Open();
  const std::vector<Ask> asks = {{1, "order", 10, In(kPatience)}, {2, "other", 10, In(kPatience)}};
  std::vector<Grant> grants(2);
  driver->Reserve(asks, grants);
  EXPECT_EQ(grants[0].outcome, Outcome::kRefused) << Describe(grants[0]);
  EXPECT_THAT(grants[0].error.message, HasSubstr("not this one"));
  EXPECT_EQ(grants[1].range, (Range{1, 11})) << Describe(grants[1]);
  EXPECT_EQ(MaxId("order"), 1);
  EXPECT_TRUE(driver->connected());
}

TEST_F(PostgresFaultsTest, AWarningOfATriggerOrACollationIsNoDoubt) {
  Put("order", 1, 10);
  Server().Exec(
      "CREATE OR REPLACE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
      "WARNING 'mind'; RETURN NEW; END $$; CREATE TRIGGER early BEFORE UPDATE ON leaf_alloc FOR "
      "EACH ROW EXECUTE FUNCTION warn()");
  Server().Exec("ALTER TABLE leaf_alloc ALTER biz_tag TYPE varchar(128) COLLATE \"en-x-icu\"");
  Server().Exec("UPDATE pg_collation SET collversion = '0' WHERE collname = 'en-x-icu'");
  const Grant grant = Reserve(*Open(), "order", 10);
  EXPECT_EQ(grant.range, (Range{1, 11})) << Describe(grant);
  Server().Exec("ALTER COLLATION \"en-x-icu\" REFRESH VERSION");
}

// --- Locks.

TEST_F(PostgresFaultsTest, ALockHeldForLongIsARefusalThatSaysSo) {
  Put("order", 1, 10);
  Put("other", 1, 10);
  const auto driver = Open();
  const auto lock = Lock("order");
  const Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_LT(SystemClock().Now() - before, milliseconds(1000)) << "the server gives up before we do";
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("lock"));
  EXPECT_TRUE(driver->connected()) << "a definite answer costs no session";
  EXPECT_EQ(Reserve(*driver, "other", 10).outcome, Outcome::kGranted);
}

TEST_F(PostgresFaultsTest, ALockOnTheTableIsBoundedToo) {
  Put("order", 1, 10);
  const auto driver = Open(Quick(milliseconds(400)));
  {
    const auto session = Server().Connect();
    session->Exec("BEGIN; LOCK TABLE leaf_alloc IN ACCESS EXCLUSIVE MODE");
    const Instant before = SystemClock().Now();
    EXPECT_NE(Reserve(*driver, "order", 10, milliseconds(400)).outcome, Outcome::kGranted);
    EXPECT_LT(SystemClock().Now() - before, milliseconds(600));
    EXPECT_TRUE(Eventually([] { return Sessions(kBusy) == 0; }));
  }
  EXPECT_EQ(MaxId("order"), 1);
}

TEST_F(PostgresFaultsTest, WhatWasAbandonedBehindALockNeverCommits) {
  Put("order", 1, 10);
  const auto driver = Open(Quick(milliseconds(400)));
  auto lock = Lock("order");
  for (const Duration within : {milliseconds(400), milliseconds(400), milliseconds(150)}) {
    const Grant grant = ReserveWithReopen(*driver, "order", 10, within);
    EXPECT_NE(grant.outcome, Outcome::kGranted) << Describe(grant);
  }
  // The server's clockwork may be late on a loaded machine, but not as late as the longer limit.
  const Instant soon = In(milliseconds(150));
  while (Sessions(kBusy) != 0 && SystemClock().Now() < soon) std::this_thread::yield();
  EXPECT_EQ(Sessions(kBusy), 0) << "the server gave up hardly later than we did";
  lock.reset();
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{1, 11}));
}

/// Asks for 10 ids of each of the tags t0, t1, ... at once.
std::vector<Grant> ReserveMany(SegmentDriver& driver, std::size_t count, Instant deadline) {
  std::vector<std::string> tags;
  for (std::size_t i = 0; i < count; ++i) tags.push_back("t" + std::to_string(i));
  std::vector<Ask> asks;
  for (const std::string& tag : tags) asks.push_back({7, tag, 10, deadline});
  std::vector<Grant> grants(count);
  driver.Reserve(asks, grants);
  return grants;
}

TEST_F(PostgresFaultsTest, ALockedRowHoldsTheRestOfAPipelineBackByItsShareOnly) {
  constexpr std::size_t kMany = 32;
  for (std::size_t i = 0; i < kMany; ++i) Put("t" + std::to_string(i), 1, 10);
  const auto driver = Open();
  ASSERT_EQ(driver->batch_limit(), static_cast<int>(kMany));
  const auto lock = Lock("t3");
  const Instant before = SystemClock().Now();
  const auto grants = ReserveMany(*driver, kMany, In(std::chrono::seconds(1)));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(500));
  for (std::size_t i = 0; i < kMany; ++i)
    EXPECT_EQ(grants[i].outcome, i == 3 ? Outcome::kRefused : Outcome::kGranted)
        << i << ": " << Describe(grants[i]);
  EXPECT_TRUE(driver->connected());
}

TEST_F(PostgresFaultsTest, APipelineOfLockedRowsEndsByTheDeadlineAndNothingHappensLater) {
  constexpr std::size_t kMany = 32;
  for (std::size_t i = 0; i < kMany; ++i) Put("t" + std::to_string(i), 1, 10);
  const auto driver = Open();
  auto lock = Server().Connect();
  lock->Exec("BEGIN; SELECT * FROM leaf_alloc FOR UPDATE");
  const Instant before = SystemClock().Now();
  const auto grants = ReserveMany(*driver, kMany, In(std::chrono::seconds(1)));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(1200));
  for (const Grant& grant : grants) EXPECT_NE(grant.outcome, Outcome::kGranted) << Describe(grant);
  EXPECT_TRUE(Eventually([] { return Sessions(kBusy) == 0; }));
  lock.reset();
  EXPECT_EQ(Server().root().Value("SELECT max(max_id) FROM leaf_alloc"), "1");
}

// --- Interrupts.

TEST_F(PostgresFaultsTest, AnInterruptEndsAWaitingCallAtOnce) {
  Put("order", 1, 10);
  const auto driver = Open();
  auto lock = Lock("order");
  Instant before{};
  const Grant grant = Meanwhile(*driver, OneThat(kWaitsForLock), [&] {
    before = SystemClock().Now();
    driver->Interrupt();
  });
  EXPECT_LT(SystemClock().Now() - before, milliseconds(300));
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_TRUE(Eventually([] { return Sessions(kBusy) == 0; }))
      << "and the server gives it up by itself";
  lock.reset();
  EXPECT_EQ(MaxId("order"), 1);
}

TEST_F(PostgresFaultsTest, AnInterruptEndsAConnectAtOnce) {
  TcpRelay relay(Server().port());
  const auto hold = relay.Hold();
  const auto driver = Make(Through(relay.port()));
  auto call = std::async(std::launch::async, [&] { return driver->Open(In(kPatience)); });
  // An interrupt before the call is another's; it has begun some time.
  const Instant before = SystemClock().Now();
  while (call.wait_for(milliseconds(5)) != std::future_status::ready) driver->Interrupt();
  EXPECT_LT(SystemClock().Now() - before, milliseconds(1000));
  EXPECT_FALSE(call.get().ok());
}

TEST_F(PostgresFaultsTest, AnInterruptBetweenCallsCostsASessionButNoRequest) {
  Put("order", 1, 10);
  const auto driver = Open();
  driver->Interrupt();
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{1, 11}));
}

// --- Idle connections and silent servers.

TEST_F(PostgresFaultsTest, AnIdleConnectionThatTheServerClosedFailsNoRequest) {
  Put("order", 1, 1);
  const auto driver = Open();
  ASSERT_EQ(Reserve(*driver, "order", 1).outcome, Outcome::kGranted);
  Each("pg_terminate_backend");
  ASSERT_TRUE(Eventually([] { return Sessions() == 0; }));
  const Grant first = Reserve(*driver, "order", 1);
  EXPECT_EQ(first.outcome, Outcome::kRefused)
      << "known before anything was sent: " << Describe(first);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 1).range, (Range{2, 3}));
}

TEST_F(PostgresFaultsTest, BehindTheStoreAnIdleKillIsNotEvenSeen) {
  Put("order", 1, 1);
  BlockingStore::Options options;
  options.kind = "postgres";
  BlockingStore store(options, *MakePostgresFactory(Options()), SystemClock());
  const auto reserve = [&] {
    const Ask ask{1, "order", 1, In(std::chrono::seconds(1))};
    OneGrant sink;
    store.Reserve({&ask, 1}, sink);
    return sink.Get();
  };
  ASSERT_TRUE(Eventually([&] { return store.Status().up; }));
  EXPECT_EQ(reserve().range, (Range{1, 2}));
  Each("pg_terminate_backend");
  ASSERT_TRUE(Eventually([] { return Sessions() == 0; }));
  const Grant grant = reserve();
  EXPECT_EQ(grant.range, (Range{2, 3})) << Describe(grant);
}

TEST_F(PostgresFaultsTest, AReloadThatTheServerSpeaksOfIsNoEndOfTheSession) {
  Put("order", 1, 10);
  const auto driver = Open();
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  // The server reports this setting to its clients by itself.
  Server().Set("TimeZone", "Asia/Tokyo");
  ASSERT_TRUE(
      Eventually([] { return Server().Connect()->Value("SHOW TimeZone") == "Asia/Tokyo"; }));
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{11, 21}));
  Server().Set("TimeZone", "");
}

TEST_F(PostgresFaultsTest, ASilentlyDroppedConnectionIsNoticedBeforeItIsUsed) {
  Put("order", 1, 1);
  TcpRelay relay(Server().port());
  const auto driver = Open(Through(relay.port()));
  ASSERT_EQ(Reserve(*driver, "order", 1).outcome, Outcome::kGranted);
  std::this_thread::sleep_for(milliseconds(5100));  // idle time is what the driver measures
  const auto hold = relay.Hold();
  const Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 1);
  EXPECT_LT(SystemClock().Now() - before, milliseconds(600)) << "time is left for a new session";
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(MaxId("order"), 2);
}

TEST_F(PostgresFaultsTest, AFrozenServerHoldsNobodyBeyondTheDeadline) {
  Put("order", 1, 10);
  const auto driver = Open(Quick(milliseconds(300)));
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  SignalSessions(SIGSTOP);
  Server().Freeze();
  Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 10, milliseconds(300));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(500));
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("no answer in time"));
  before = SystemClock().Now();
  EXPECT_THAT(Refusal(Options(), milliseconds(300)), HasSubstr("no answer in time"));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(500));
  Server().Thaw();
  SignalSessions(SIGCONT);
  const Grant after = ReserveWithReopen(*driver, "order", 10, kPatience);
  EXPECT_EQ(after.outcome, Outcome::kGranted);
  EXPECT_THAT(after.range.first, AnyOf(11, 21)) << "the frozen one may have happened";
}

}  // namespace
}  // namespace leaf
