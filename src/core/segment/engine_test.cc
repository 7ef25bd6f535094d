// The life of a request: served from memory, parked, served by a grant, ended.

#include "core/segment/engine_test_support.h"

namespace leaf::test {
namespace {

TEST_F(EngineTest, HandsOutTheRowsIdsInOrder) {
  store.AddRow("order", 1, 100);
  Start();
  for (std::int64_t id = 1; id <= 1000; ++id) ASSERT_EQ(TakeOne("order"), id);
}

TEST_F(EngineTest, BeginsAtZeroWhereTheRowDoes) {
  store.AddRow("zero", 0, 10);
  Start();
  EXPECT_EQ(TakeOne("zero"), 0);
  EXPECT_EQ(store.rows["zero"].max_id, 10);
}

TEST_F(EngineTest, LeasesNothingBeforeTheFirstRequest) {
  store.AddRow("order", 1, 100);
  Start();
  Advance(minutes(5));
  EXPECT_TRUE(store.asked.empty());
  EXPECT_EQ(View("order").state, TagState::kIdle);
}

TEST_F(EngineTest, LeasesAsLeafWasRecorded) {
  store.AddRow("grow", 1, 100);
  Start();
  // The request that set a lease off, and max_id after it (leaf-recorded, "Segment mode").
  const std::map<int, std::int64_t> exact = {{1, 101}, {12, 201}, {112, 401}, {222, 801}};
  const std::map<int, std::int64_t> seen_by = {{600, 1601},    {1000, 3201},  {1800, 6401},
                                               {3600, 12801},  {7200, 25601}, {14200, 51201},
                                               {28200, 102401}};
  for (int request = 1; request <= 30000; ++request) {
    const std::int64_t before = store.rows["grow"].max_id;
    ASSERT_EQ(TakeOne("grow"), request);
    const std::int64_t after = store.rows["grow"].max_id;
    if (request <= 222) {
      ASSERT_EQ(after != before, exact.count(request) == 1) << "request " << request;
    }
    for (const auto& expected : {exact, seen_by}) {
      const auto it = expected.find(request);
      ASSERT_TRUE(it == expected.end() || it->second == after) << "request " << request;
    }
  }
  EXPECT_EQ(store.rows["grow"].step, 100);
}

TEST_F(EngineTest, AsksAtLeafsBoundaryForEachStep) {
  // leaf-compat.md 3.5: the request within a segment that sets the next lease off.
  const std::map<std::int64_t, int> boundary = {{1, 2},      {2, 2},     {5, 2},  {9, 2},
                                                {10, 3},     {11, 3},    {20, 4}, {100, 12},
                                                {1000, 102}, {2000, 202}};
  for (const auto& [step, request] : boundary) {
    const std::string tag = "step" + std::to_string(step);
    store.AddRow(tag, 1, step);
    Start();
    const std::size_t asks = store.asked.size();
    for (int i = 1; i < request; ++i) TakeOne(tag);
    EXPECT_EQ(store.asked.size(), asks + 1) << "step " << step;
    TakeOne(tag);
    EXPECT_EQ(store.asked.size(), asks + 2) << "step " << step;
  }
}

TEST_F(EngineTest, ServesParkedRequestsInOrderOfArrival) {
  store.AddRow("order", 1, 10);
  store.grant_at_once = false;
  Start();
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) requests.push_back(Ask("order", 2));
  for (const Request& request : requests) EXPECT_FALSE(request.done());
  EXPECT_EQ(store.asked.size(), 1U) << "one flight a tag";
  store.GrantAll();
  tasks.RunAll();
  std::int64_t next = 1;
  for (const Request& request : requests) {
    ASSERT_TRUE(request.done());
    EXPECT_EQ(Ids(*request.result()), (std::vector<std::int64_t>{next, next + 1}));
    next += 2;
  }
}

TEST_F(EngineTest, AsksForAtLeastWhatIsParked) {
  store.AddRow("order", 1, 10);
  options.max_flights = 1;
  store.AddRow("other", 1, 10);
  store.grant_at_once = false;
  Start();
  Request other = Ask("other");
  std::vector<Request> requests;
  for (int i = 0; i < 40; ++i) requests.push_back(Ask("order", 5));
  store.GrantAll();
  tasks.RunAll();
  ASSERT_GE(store.asked.size(), 2U);
  EXPECT_EQ(store.asked[1].tag, "order");
  EXPECT_EQ(store.asked[1].count, 200);
  for (const Request& request : requests) EXPECT_TRUE(request.done());
}

TEST_F(EngineTest, NewcomersDoNotOvertakeIntoANewGrant) {
  store.AddRow("order", 1, 10);
  store.grant_at_once = false;
  Start();
  Request first = Ask("order", 3);
  Request second = Ask("order", 3);
  store.GrantNext();
  const auto newcomer = Take("order", 1);
  tasks.RunAll();
  EXPECT_EQ(Ids(*first.result()), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(Ids(*second.result()), (std::vector<std::int64_t>{4, 5, 6}));
  EXPECT_EQ(newcomer, (std::vector<std::int64_t>{7}));
}

TEST_F(EngineTest, ABigRequestParksWhileSmallOnesGoOnAndLosesNothing) {
  store.AddRow("order", 1, 10);
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  store.grant_at_once = false;
  Request big = Ask("order", 25);
  EXPECT_FALSE(big.done());
  EXPECT_EQ(store.asked.back().count, 25);
  EXPECT_EQ(TakeOne("order"), 2) << "it holds nothing while it waits";
  store.GrantAll();
  tasks.RunAll();
  ASSERT_TRUE(big.done());
  const auto ids = Ids(*big.result());
  ASSERT_EQ(ids.size(), 25U);
  EXPECT_EQ(ids.front(), 3) << "what is left below goes first";
  EXPECT_EQ(ids.back(), 27);
  EXPECT_EQ(TakeOne("order"), 28);
  EXPECT_EQ(Discarded("order", Discard::kSkipped), 0U);
}

TEST_F(EngineTest, ABigRequestSpansRangesThatAreNotAdjacent) {
  store.AddRow("order", 1, 10);
  Start();
  TakeOne("order");
  store.rows["order"].max_id = 501;  // another server leased meanwhile
  Request big = Ask("order", 20);
  ASSERT_TRUE(big.done());
  ASSERT_TRUE(big.result().ok());
  EXPECT_EQ(big.result()->size, 2);
  EXPECT_EQ(big.result()->at[0], (Range{2, 11}));
  EXPECT_EQ(big.result()->at[1], (Range{501, 512}));
}

TEST_F(EngineTest, OnePieceGivesUpTheFrontThatIsTooSmall) {
  store.AddRow("order", 1, 10);
  Start();
  TakeOne("order");
  store.rows["order"].max_id = 501;
  Request piece = Ask("order", 20, true);
  ASSERT_TRUE(piece.done());
  ASSERT_TRUE(piece.result().ok());
  EXPECT_EQ(piece.result()->size, 1);
  EXPECT_EQ(piece.result()->at[0], (Range{501, 521}));
  EXPECT_EQ(Discarded("order", Discard::kSkipped), 9U);
  EXPECT_GT(TakeOne("order"), 520) << "nothing below an id that was given may follow it";
}

TEST_F(EngineTest, ASmallRequestBehindOneThatCannotBeServedIsServed) {
  store.AddRow("order", 1, 10);
  store.grant_at_once = false;
  Start();
  Request first = Ask("order", 10);
  ASSERT_EQ(store.asked[0].count, 10);
  Request big = Ask("order", 15);
  Request small = Ask("order", 4);
  Grant grant = store.Carry(store.Pop());
  ASSERT_TRUE(engine->Cancel(*first.waiter));
  store.Answer(grant);
  tasks.RunAll();
  EXPECT_FALSE(big.done());
  ASSERT_TRUE(small.done());
  EXPECT_EQ(Ids(*small.result()), (std::vector<std::int64_t>{1, 2, 3, 4}));
  store.GrantAll();
  tasks.RunAll();
  ASSERT_TRUE(big.done());
  EXPECT_EQ(Ids(*big.result()).front(), 5);
}

TEST_F(EngineTest, ACancelledRequestTakesNothing) {
  store.AddRow("order", 1, 10);
  store.grant_at_once = false;
  Start();
  Request gone = Ask("order");
  Request stays = Ask("order");
  EXPECT_TRUE(engine->Cancel(*gone.waiter));
  EXPECT_FALSE(engine->Cancel(*gone.waiter)) << "it is out";
  store.GrantAll();
  tasks.RunAll();
  EXPECT_EQ(gone.waiter->runs, 0);
  EXPECT_EQ(Ids(*stays.result()), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(engine->Sum().parked, 0);
}

TEST_F(EngineTest, ARequestEndsByItsDeadlineWithTheStoresReason) {
  store.AddRow("order", 1, 10);
  Start();
  store.fault = Error{Code::kUnavailable, "connection refused by 10.0.0.1"};
  Request request = Ask("order");
  Advance(options.wait - milliseconds(1));
  EXPECT_FALSE(request.done());
  Advance(milliseconds(1));
  ASSERT_TRUE(request.done());
  ASSERT_FALSE(request.result().ok());
  EXPECT_EQ(request.result().error().code, Code::kUnavailable);
  EXPECT_NE(request.result().error().message.find("connection refused"), std::string::npos);
}

TEST_F(EngineTest, ASecondTryFitsIntoARequest) {
  store.AddRow("order", 1, 10);
  store.grant_at_once = false;
  Start();
  Request request = Ask("order");
  Advance(options.store_timeout + options.backoff_max);
  ASSERT_EQ(store.asked.size(), 2U);
  EXPECT_FALSE(request.done());
  store.pending.pop_front();
  store.GrantAll();
  tasks.RunAll();
  ASSERT_TRUE(request.done());
  EXPECT_TRUE(request.result().ok());
}

TEST_F(EngineTest, TheNumberOfParkedRequestsIsBounded) {
  store.AddRow("order", 1, 10);
  options.max_waiters = 3;
  store.grant_at_once = false;
  Start();
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) requests.push_back(Ask("order"));
  EXPECT_EQ(Refusal("order"), Code::kOverloaded);
  store.GrantAll();
  tasks.RunAll();
  EXPECT_TRUE(requests.back().done());
  EXPECT_EQ(TakeOne("order"), 4);
}

TEST_F(EngineTest, CountsWhatItIssued) {
  store.AddRow("order", 1, 100);
  Start();
  for (int i = 0; i < 30; ++i) TakeOne("order");
  Take("order", 20);
  EXPECT_EQ(View("order").issued, 50U);
  Ranges lost;
  lost.at[0] = {1, 6};
  lost.size = 1;
  engine->Abandon("order", lost);
  EXPECT_EQ(View("order").issued, 50U);
  EXPECT_EQ(Discarded("order", Discard::kAbandoned), 5U);
}

TEST_F(EngineTest, ShowsWhatItKnows) {
  store.AddRow("idle", 5, 10);
  store.AddRow("order", 1, 100);
  Start();
  Take("order", 20);
  std::map<std::string, TagView> seen;
  engine->Visit([&seen](const TagView& view) { seen[view.name] = view; });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(TagStateName(seen["idle"].state), "idle");
  EXPECT_EQ(seen["idle"].max_id, 5);
  const TagView& order = seen["order"];
  EXPECT_EQ(TagStateName(order.state), "active");
  EXPECT_EQ(order.step, 100);
  EXPECT_EQ(order.lease, 100);
  EXPECT_EQ(order.mark, 201);
  EXPECT_EQ(order.remaining, 180);
  ASSERT_EQ(order.segments.size(), 2U) << "the current one, then its successor";
  EXPECT_EQ(order.segments[0].next, 21);
  EXPECT_EQ(order.segments[1].range, (Range{101, 201}));
  EXPECT_EQ(order.refills, 2U);
  const Engine::Totals totals = engine->Sum();
  EXPECT_EQ(totals.known, 2);
  EXPECT_EQ(totals.active, 1);
  EXPECT_TRUE(totals.holds_ids);
  EXPECT_TRUE(totals.list_complete);
  EXPECT_FALSE(engine->View("none").has_value());
}

TEST_F(EngineTest, AStoreThatIsFrozenDelaysNoTagThatHoldsIds) {
  store.AddRow("warm", 1, 1000);
  store.AddRow("cold", 1, 1000);
  Start();
  TakeOne("warm");
  store.grant_at_once = store.answer_at_once = false;
  std::vector<Request> callers;
  for (int i = 0; i < 300; ++i) callers.push_back(Ask("cold"));
  EXPECT_EQ(store.pending.size(), 1U) << "one flight, whoever asks";
  for (int id = 2; id <= 1000; ++id) {
    ASSERT_EQ(TakeOne("warm"), id);
    Advance(milliseconds(5));
  }
  for (const Request& caller : callers) {
    ASSERT_TRUE(caller.done());
    EXPECT_EQ(caller.result().error().code, Code::kUnavailable);
  }
}

TEST_F(EngineTest, TenThousandTagsDueAtOnceAreBoundedByMaxFlights) {
  options.max_flights = 64;
  options.refresh = minutes(10);
  store.grant_at_once = false;
  for (int i = 0; i < 10'000; ++i) store.AddRow("t" + std::to_string(i), 1, 10);
  Start();
  std::vector<Request> requests;
  for (int i = 0; i < 10'000; ++i) requests.push_back(Ask("t" + std::to_string(i)));
  EXPECT_EQ(store.asked.size(), 64U);
  while (!store.pending.empty()) {
    EXPECT_LE(store.pending.size(), 64U);
    store.GrantNext();
  }
  tasks.RunAll();
  for (const Request& request : requests) ASSERT_TRUE(request.done());
  EXPECT_EQ(store.asked.size(), 10'000U);
}

}  // namespace
}  // namespace leaf::test
