// Leases: how many ids, when, and what becomes of a flight that fails.

#include "core/segment/backoff.h"
#include "core/segment/engine_test_support.h"

namespace leaf::test {
namespace {

class RefillTest : public EngineTest {
 protected:
  /// Uses up what is held, and one id more, so that a lease happens. The ids asked for by it.
  std::int64_t DrainInto(const std::string& tag) {
    const std::size_t asks = store.asked.size();
    while (store.asked.size() == asks) {
      (void)Ask(tag, std::max<std::int64_t>(View(tag).remaining, 1));
    }
    return store.asked[asks].count;
  }
};

TEST_F(RefillTest, LeafPolicyDoublesWithinAQuarterOfAnHourUpToAMillion) {
  store.AddRow("order", 1, 300'000);
  Start();
  std::vector<std::int64_t> counts;
  for (int i = 0; i < 5; ++i) counts.push_back(DrainInto("order"));
  EXPECT_EQ(counts, (std::vector<std::int64_t>{300'000, 300'000, 600'000, 600'000, 600'000}))
      << "1,200,000 would be above the largest step";
}

TEST_F(RefillTest, LeafPolicyKeepsAndHalvesByTime) {
  const auto leaf = MakeLeafPolicy();
  Demand demand;
  demand.row_step = 1000;
  demand.leases = 5;
  demand.last_count = 8000;
  demand.last_lease = clock.now;
  EXPECT_EQ(leaf->NextCount(demand, clock.now + minutes(15) - milliseconds(1)), 16000);
  EXPECT_EQ(leaf->NextCount(demand, clock.now + minutes(15)), 8000);
  EXPECT_EQ(leaf->NextCount(demand, clock.now + minutes(30) - milliseconds(1)), 8000);
  EXPECT_EQ(leaf->NextCount(demand, clock.now + minutes(30)), 4000);
  demand.last_count = 1500;
  EXPECT_EQ(leaf->NextCount(demand, clock.now + minutes(30)), 1500) << "not below the row's step";
  demand.last_count = 500'000;
  EXPECT_EQ(leaf->NextCount(demand, clock.now), 1'000'000);
  demand.last_count = 500'001;
  EXPECT_EQ(leaf->NextCount(demand, clock.now), 500'001);
}

TEST_F(RefillTest, FixedPolicyKeepsToTheStep) {
  policy = MakeFixedPolicy();
  store.AddRow("order", 1, 50);
  Start();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(DrainInto("order"), 50);
}

TEST_F(RefillTest, BigStepsNeitherOverflowNorRefillTooOften) {
  for (const std::int64_t step : {200'000'000LL, 1'500'000'000LL, 2'147'483'647LL}) {
    const std::string tag = "step" + std::to_string(step);
    store.AddRow(tag, 1, step);
    Start();
    const std::size_t before = store.asked.size();
    for (int i = 0; i < 10'000; ++i) TakeOne(tag);
    EXPECT_EQ(store.asked.size() - before, 1U);
    std::int64_t row = store.rows[tag].max_id;
    for (int i = 0; i < 4; ++i) {
      DrainInto(tag);
      EXPECT_GT(store.rows[tag].max_id, row);
      row = store.rows[tag].max_id;
    }
  }
}

TEST_F(RefillTest, HeldIdsStayWithinWasteOrTwoSteps) {
  options.waste = 5000;
  store.AddRow("order", 1, 1000);
  Start();
  for (int i = 0; i < 50'000; ++i) {
    TakeOne("order");
    ASSERT_LE(View("order").remaining, 5000);
  }
}

TEST_F(RefillTest, ABatchIsAddedOnceAndIsNoDemand) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  Take("order", 1'000'000);
  EXPECT_EQ(store.asked.back().count, 200) << "look-ahead doubles the step and not the batch";
}

TEST_F(RefillTest, AStepChangedByHandActsByTheGrant) {
  policy = MakeFixedPolicy();
  store.AddRow("order", 1, 10);
  Start();
  EXPECT_EQ(DrainInto("order"), 10);
  store.rows["order"].step = 70;
  DrainInto("order");
  EXPECT_EQ(DrainInto("order"), 70);
}

TEST_F(RefillTest, AStepChangedByHandActsByTheListToo) {
  policy = MakeFixedPolicy();
  store.AddRow("order", 1, 10);
  Start();
  store.rows["order"].step = 70;
  Advance(options.refresh);
  EXPECT_EQ(View("order").step, 70);
  EXPECT_EQ(DrainInto("order"), 70);
}

TEST_F(RefillTest, AStepThatIsNotAboveZeroIsReportedAndRefused) {
  for (const std::int64_t step : {0LL, -1LL, -2'147'483'648LL}) {
    store.AddRow("bad", 77, step);
    Start();
    EXPECT_EQ(View("bad").step, step);
    Request request = Ask("bad");
    Advance(options.wait);
    ASSERT_TRUE(request.done());
    EXPECT_EQ(request.result().error().code, Code::kUnavailable);
    EXPECT_NE(request.result().error().message.find("step"), std::string::npos);
    EXPECT_EQ(store.rows["bad"].max_id, 77);
  }
}

TEST_F(RefillTest, AFlightPastItsDeadlineIsBurntAndItsLateGrantDropped) {
  store.AddRow("order", 1, 100);
  store.grant_at_once = false;
  Start();
  Request request = Ask("order");
  const Grant late = store.Carry(store.Pop());  // committed, but the answer does not come
  store.grant_at_once = true;
  Advance(options.store_timeout + options.backoff_max);
  ASSERT_TRUE(request.done());
  EXPECT_EQ(Ids(*request.result()), (std::vector<std::int64_t>{101}));
  EXPECT_EQ(Discarded("order", Discard::kBurnt), 100U);
  store.Answer(late);
  EXPECT_EQ(engine->Sum().stale_grants, 1U);
  EXPECT_EQ(TakeOne("order"), 102) << "none of the burnt ids is ever given";
  EXPECT_EQ(View("order").issued, 2U);
}

TEST_F(RefillTest, AGrantIsTakenOnce) {
  store.AddRow("order", 1, 10);
  store.grant_at_once = false;
  Start();
  Request request = Ask("order");
  const Grant grant = store.Carry(store.Pop());
  store.Answer(grant);
  store.Answer(grant);
  EXPECT_EQ(engine->Sum().stale_grants, 1U);
  EXPECT_EQ(View("order").remaining, 9);
  tasks.RunAll();
}

TEST_F(RefillTest, AfterAnUnknownOutcomeOnlyOneStepIsAskedFor) {
  store.AddRow("order", 1, 100);
  Start();
  for (int i = 0; i < 5; ++i) DrainInto("order");
  EXPECT_GT(store.asked.back().count, 100);
  store.grant_at_once = false;
  DrainInto("order");
  Grant unknown;
  unknown.flight = store.Pop().flight;
  unknown.outcome = Outcome::kUnknown;
  unknown.error = {Code::kUnavailable, "connection lost"};
  store.Answer(unknown);
  EXPECT_TRUE(store.pending.empty()) << "not tried again at once";
  EXPECT_EQ(View("order").last_error, "connection lost");
  Advance(options.backoff_max);
  ASSERT_EQ(store.pending.size(), 1U);
  EXPECT_EQ(store.pending.front().count, 100);
  store.GrantAll();
  store.grant_at_once = true;
  DrainInto("order");
  EXPECT_LE(store.asked.back().count, 400) << "and it grows anew from there";
}

TEST_F(RefillTest, BurnsNeverStopATag) {
  options.waste = 1000;
  store.AddRow("order", 1, 100);
  store.grant_at_once = false;
  Start();
  Request request = Ask("order");
  for (int i = 0; i < 100; ++i) {
    Advance(options.store_timeout + options.backoff_max);
    ASSERT_TRUE(request.done() || !store.pending.empty()) << "try " << i;
    if (request.done()) request = Ask("order");
    while (store.pending.size() > 1) store.pending.pop_front();
  }
  Advance(options.store_timeout + options.backoff_max);
  EXPECT_EQ(store.pending.back().count, 100);
  tasks.RunAll();
  if (!request.done()) {
    ASSERT_TRUE(engine->Cancel(*request.waiter));
  }
}

TEST_F(RefillTest, WhatIsNotAGrantOfTheIdsAskedForIsNotUsed) {
  const std::vector<Range> lies = {
      {1, 12}, {1, 1}, {1, 5}, {-5, 5}, {5, -5}, {0, 0}, {kMaxEnd, -kMaxEnd - 1}};
  for (const Range& lie : lies) {
    store.rows.clear();
    journal.marks.clear();
    store.AddRow("order", 1000, 10);
    store.grant_at_once = false;
    Start();
    Request request = Ask("order");
    Grant grant;
    grant.flight = store.Pop().flight;
    grant.outcome = Outcome::kGranted;
    grant.range = lie;
    grant.store_id = store.store_id;
    store.Answer(grant);
    tasks.RunAll();
    EXPECT_FALSE(request.done());
    EXPECT_EQ(View("order").remaining, 0);
    EXPECT_EQ(Discarded("order", Discard::kBurnt), 10U);
    store.grant_at_once = true;
    Advance(options.backoff_max);
    ASSERT_TRUE(request.done());
    EXPECT_EQ(Ids(*request.result()), (std::vector<std::int64_t>{1000}));
  }
}

TEST_F(RefillTest, AFailingStoreSeesBackOffWhateverIsAsked) {
  store.AddRow("order", 1, 10);
  Start();
  store.fault = Error{Code::kUnavailable, "down"};
  const std::size_t before = store.asked.size();
  std::vector<Request> requests;
  for (int i = 0; i < 3000; ++i) {
    requests.push_back(Ask("order"));
    Advance(milliseconds(1));
  }
  const std::size_t tries = store.asked.size() - before;
  EXPECT_GE(tries, 3U);
  EXPECT_LE(tries, 15U);
  store.fault.reset();
  Advance(options.backoff_max);
  EXPECT_TRUE(requests.back().done() && requests.back().result().ok());
}

TEST_F(RefillTest, BackOffStaysWithinItsBoundsAndVaries) {
  const Duration min = milliseconds(20);
  const Duration max = seconds(1);
  std::map<Duration, int> seen;
  for (int failures = 1; failures < 100; ++failures) {
    const Duration pause = Backoff(failures, min, max, random);
    EXPECT_GE(pause, min);
    EXPECT_LE(pause, max);
    EXPECT_TRUE(failures <= 10 || pause >= max / 2);
    ++seen[pause];
  }
  EXPECT_GT(seen.size(), 50U);
}

TEST_F(RefillTest, ASlowTagDelaysNoOther) {
  store.AddRow("slow", 1, 10);
  store.AddRow("quick", 1, 10);
  store.grant_at_once = false;
  Start();
  Request slow = Ask("slow");
  const leaf::Ask held = store.Pop();
  store.grant_at_once = true;
  EXPECT_EQ(TakeOne("quick"), 1);
  store.Answer(store.Carry(held));
  tasks.RunAll();
  EXPECT_TRUE(slow.done());
}

TEST_F(RefillTest, TagsWithWaitersFlyBeforeLookAhead) {
  options.max_flights = 1;
  for (const char* tag : {"a", "b", "c"}) store.AddRow(tag, 1, 10);
  Start();
  TakeOne("a");
  TakeOne("b");
  store.grant_at_once = false;
  Request blocker = Ask("c");
  for (int i = 0; i < 3; ++i) TakeOne("a");  // a is due for look-ahead
  Request waits = Ask("b", 20);
  store.GrantNext();
  ASSERT_EQ(store.pending.size(), 1U);
  EXPECT_EQ(store.pending.front().tag, "b");
  store.GrantAll();
  tasks.RunAll();
  EXPECT_TRUE(waits.done());
}

TEST_F(RefillTest, WhatIsDueAtOneTimeGoesInOneCall) {
  options.backoff_min = options.backoff_max = milliseconds(50);
  for (int i = 0; i < 20; ++i) store.AddRow("t" + std::to_string(i), 1, 10);
  Start();
  store.fault = Error{Code::kUnavailable, "down"};
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(Ask("t" + std::to_string(i)));
  store.fault.reset();
  store.batches.clear();
  Advance(milliseconds(50));
  EXPECT_EQ(store.batches, (std::vector<std::size_t>{20}));
  for (const Request& request : requests) EXPECT_TRUE(request.done());
}

TEST_F(RefillTest, ATagThatCannotBeLeasedIsLoggedOnceItIsMoreThanAHiccup) {
  options.wait = minutes(10);
  store.AddRow("order", 1, 0);
  store.AddRow("pay", 1, 0);
  Start();
  testing::internal::CaptureStderr();
  const Request order = Ask("order");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  const Request pay = Ask("pay");
  Advance(seconds(2));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("could not be leased 3 times in a row: the row's step is not above 0"),
            std::string::npos)
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << "for all tags together:\n" << text;
  testing::internal::CaptureStderr();
  Advance(minutes(2));
  EXPECT_NE(testing::internal::GetCapturedStderr().find(" 64 times in a row"), std::string::npos)
      << "a reminder";
}

}  // namespace
}  // namespace leaf::test
