// Rows that went back, that are gone, and that have come to their end; and the tag list.

#include "core/segment/engine_test_support.h"

namespace leaf::test {
namespace {

class TroubleTest : public EngineTest {
 protected:
  /// Leases 100, puts the row back to 1 and asks again.
  Request GoBack() {
    store.AddRow("order", 1, 100);
    policy = MakeFixedPolicy();
    Start();
    TakeOne("order");
    Take("order", 5);
    store.rows["order"].max_id = 1;
    return Ask("order", 200);
  }
};

TEST_F(TroubleTest, ARowThatWentBackStopsTheTag) {
  Request request = GoBack();
  ASSERT_TRUE(request.done());
  ASSERT_FALSE(request.result().ok());
  const Error& error = request.result().error();
  EXPECT_EQ(error.code, Code::kRegressed);
  EXPECT_NE(error.message.find("curl -X POST"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("http://127.0.0.1:8081/api/v1/tags/order/resume"),
            std::string::npos);
  EXPECT_EQ(Refusal("order"), Code::kRegressed);
  EXPECT_EQ(View("order").state, TagState::kRegressed);
  EXPECT_EQ(View("order").remaining, 0) << "another server may be given the ids held here";
  EXPECT_EQ(engine->Sum().regressed, 1);
}

TEST_F(TroubleTest, WithoutAnAdminListenerNoCommandIsToldThatLeadsNowhere) {
  options.admin_url.clear();
  Request request = GoBack();
  ASSERT_TRUE(request.done());
  ASSERT_FALSE(request.result().ok());
  const std::string& message = request.result().error().message;
  EXPECT_EQ(message.find("curl"), std::string::npos) << message;
  EXPECT_NE(message.find("server.admin_listen"), std::string::npos) << message;
}

TEST_F(TroubleTest, ARowThatWentBackIsRaisedAtOnceAboveAllThatWasSeen) {
  store.AddRow("order", 1, 100);
  policy = MakeFixedPolicy();
  Start();
  TakeOne("order");
  store.rows["order"].max_id = 9000;  // others leased far beyond
  Advance(options.refresh);
  store.rows["order"].max_id = 1;
  EXPECT_EQ(Refusal("order", 500), Code::kRegressed);
  EXPECT_EQ(store.raises, 1);
  EXPECT_EQ(store.rows["order"].max_id, 9000 + 16 * 100);
}

TEST_F(TroubleTest, TheSkipCanBeSet) {
  options.failover_skip = 5;
  GoBack();
  EXPECT_EQ(store.rows["order"].max_id, 201 + 5);
}

TEST_F(TroubleTest, RaisingIsRepeatedUntilItIsDoneAndAddsNothingTwice) {
  store.AddRow("order", 1, 100);
  policy = MakeFixedPolicy();
  Start();
  TakeOne("order");
  store.rows["order"].max_id = 1;
  store.answer_at_once = false;
  EXPECT_EQ(Refusal("order", 500), Code::kRegressed);
  ASSERT_EQ(store.held.size(), 1U);
  Advance(options.store_timeout + options.backoff_max);
  ASSERT_GE(store.held.size(), 2U) << "tried again";
  store.AnswerHeld();
  const std::int64_t raised = store.rows["order"].max_id;
  EXPECT_EQ(raised, 501 + 1600);
  const int raises = store.raises;
  Advance(seconds(10));
  EXPECT_EQ(store.raises, raises) << "done";
}

TEST_F(TroubleTest, WhatOthersDidNeverCountsAsGoingBack) {
  policy = MakeFixedPolicy();
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  store.rows["order"].max_id = 5000;
  Advance(options.refresh);
  store.rows["order"].max_id = 101;  // the other handed its tail back
  EXPECT_EQ(Take("order", 150).back(), 151);
}

TEST_F(TroubleTest, AStopOutlivesARestart) {
  GoBack();
  Start();
  EXPECT_EQ(engine->Sum().regressed, 1);
  EXPECT_EQ(Refusal("order"), Code::kRegressed);
}

TEST_F(TroubleTest, ARestartedServerStillKnowsItsMark) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  store.rows["order"].max_id = 1;
  Start();
  EXPECT_EQ(Refusal("order"), Code::kRegressed);
}

TEST_F(TroubleTest, ResumeRaisesAndStarts) {
  GoBack();
  const std::int64_t raised = store.rows["order"].max_id;
  std::optional<Result<std::int64_t>> resumed;
  engine->ResumeTag("order", 1000, [&](Result<std::int64_t> r) { resumed = r; });
  ASSERT_TRUE(resumed && resumed->ok());
  EXPECT_EQ(**resumed, raised + 1000);
  EXPECT_EQ(TakeOne("order"), raised + 1000);
  EXPECT_EQ(engine->Sum().regressed, 0);
  EXPECT_FALSE(journal.marks["order"].regressed);
}

TEST_F(TroubleTest, ResumeRefusesATagThatRuns) {
  store.AddRow("order", 1, 100);
  Start();
  std::optional<Code> code;
  engine->ResumeTag("order", 1, [&](Result<std::int64_t> r) { code = r.error().code; });
  EXPECT_EQ(code, Code::kConflict);
  engine->ResumeTag("nothing", 1, [&](Result<std::int64_t> r) { code = r.error().code; });
  EXPECT_EQ(code, Code::kNotFound);
}

TEST_F(TroubleTest, AResumeWithoutAnswerEndsAndLeavesTheStop) {
  GoBack();
  store.answer_at_once = false;
  std::vector<Code> codes;
  engine->ResumeTag("order", 1, [&](Result<std::int64_t> r) { codes.push_back(r.error().code); });
  Advance(options.store_timeout);
  EXPECT_EQ(codes, (std::vector<Code>{Code::kUnavailable}));
  EXPECT_EQ(Refusal("order"), Code::kRegressed);
  store.AnswerHeld();
  EXPECT_EQ(codes.size(), 1U) << "once";
}

TEST_F(TroubleTest, ADeletedRowIsMissedByTheNextCompletePass) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  store.rows.erase("order");
  EXPECT_EQ(TakeOne("order"), 2) << "served from what is held";
  Advance(2 * options.refresh);
  EXPECT_EQ(Refusal("order"), Code::kNotFound);
  EXPECT_EQ(engine->Sum().known, 0) << "an empty list is a list";
}

TEST_F(TroubleTest, ARefillThatFindsNoRowEndsTheTag) {
  store.AddRow("order", 1, 10);
  Start();
  TakeOne("order");
  store.rows.erase("order");
  Request waits = Ask("order", 100);
  ASSERT_TRUE(waits.done());
  EXPECT_EQ(waits.result().error().code, Code::kNotFound);
  EXPECT_EQ(Refusal("order"), Code::kNotFound);
}

TEST_F(TroubleTest, ARowMadeAgainBelowTheMarkIsRegressed) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  store.rows.erase("order");
  Advance(2 * options.refresh);
  ASSERT_EQ(Refusal("order"), Code::kNotFound);
  store.AddRow("order", 1, 100);
  Advance(options.refresh);
  EXPECT_EQ(Refusal("order"), Code::kRegressed);
}

TEST_F(TroubleTest, ARowMadeAgainAboveTheMarkIsServed) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  store.rows.erase("order");
  Advance(2 * options.refresh);
  store.AddRow("order", 500, 100);
  Advance(options.refresh);
  EXPECT_EQ(TakeOne("order"), 500);
}

TEST_F(TroubleTest, AFailingListForgetsNobody) {
  store.AddRow("order", 1, 1000);
  Start();
  TakeOne("order");
  store.fault = Error{Code::kUnavailable, "down"};
  Advance(10 * options.refresh);
  EXPECT_EQ(TakeOne("order"), 2);
  EXPECT_EQ(engine->Sum().list_error, "down");
}

TEST_F(TroubleTest, ATagKnownDuringAPassIsNotMissedByIt) {
  options.list_page = 2;
  for (const char* tag : {"b", "c", "d", "e"}) store.AddRow(tag, 1, 10);
  store.answer_at_once = false;
  Start();
  ASSERT_EQ(store.held.size(), 1U);
  store.AnswerHeld();  // b, c
  engine->Tick(clock.now);
  store.AddRow("a", 1, 10);  // behind the pass
  Request request = Ask("a");
  for (int i = 0; i < 5; ++i) {
    store.AnswerHeld();
    engine->Tick(clock.now);
    tasks.RunAll();
  }
  EXPECT_TRUE(engine->Sum().list_complete);
  ASSERT_TRUE(request.done());
  EXPECT_TRUE(request.result().ok());
  EXPECT_EQ(TakeOne("a"), 2);
}

TEST_F(TroubleTest, TheFirstPassGoesAtOnceAndLaterOnesAreSpread) {
  options.list_page = 10;
  for (int i = 0; i < 100; ++i) store.AddRow("t" + std::to_string(100 + i), 1, 10);
  Start();
  EXPECT_EQ(engine->Sum().known, 100);
  EXPECT_EQ(store.lists, 11);
  Advance(options.refresh + seconds(1));
  const int begun = store.lists;
  EXPECT_LT(begun, 14) << "the second pass has only begun";
  Advance(options.refresh / 2);
  EXPECT_GT(store.lists, begun + 3);
  EXPECT_LT(store.lists, begun + 9);
}

TEST_F(TroubleTest, AListThatFailsIsReadAgainWithBackOffAndHealsSoon) {
  store.AddRow("order", 1, 10);
  store.fault = Error{Code::kUnavailable, "down"};
  Start();
  Advance(seconds(30));
  EXPECT_LT(store.lists, 100);
  EXPECT_FALSE(engine->Sum().list_complete);
  store.fault.reset();
  Advance(options.backoff_max);
  EXPECT_TRUE(engine->Sum().list_complete);
  EXPECT_EQ(TakeOne("order"), 1);
}

TEST_F(TroubleTest, AListThatDoesNotAnswerIsReadAgain) {
  store.AddRow("order", 1, 10);
  store.answer_at_once = false;
  Start();
  Advance(options.store_timeout + options.backoff_max);
  store.held.erase(store.held.begin());
  store.AnswerHeld();
  EXPECT_TRUE(engine->Sum().list_complete);
}

TEST_F(TroubleTest, TheLastIdsAreGivenAndThenTheTagIsExhausted) {
  const std::int64_t start = 9'223'372'036'854'775'000;
  store.AddRow("end", start, 1000);
  Start();
  std::int64_t id = start;
  for (; id < kMaxEnd; ++id) ASSERT_EQ(TakeOne("end"), id);
  EXPECT_EQ(id - 1, 9'223'372'036'854'775'806) << "the exclusive end must fit";
  EXPECT_EQ(Refusal("end"), Code::kExhausted);
  const std::size_t asks = store.asked.size();
  const int finds = store.finds;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Refusal("end"), Code::kExhausted);
  Advance(seconds(50));
  EXPECT_EQ(store.asked.size(), asks) << "no busy loop";
  EXPECT_EQ(store.finds, finds);
}

TEST_F(TroubleTest, ARequestBeyondTheEndIsExhaustedWhileSmallerOnesAreServed) {
  store.AddRow("end", kMaxEnd - 50, 10);
  Start();
  EXPECT_EQ(TakeOne("end"), kMaxEnd - 50);
  EXPECT_EQ(Refusal("end", 1000), Code::kExhausted);
  EXPECT_EQ(Take("end", 30).size(), 30U);
}

TEST_F(TroubleTest, AnExhaustedTagServesAgainWhenTheListShowsRoom) {
  store.AddRow("end", kMaxEnd, 10);
  journal.marks.clear();
  Start();
  EXPECT_EQ(Refusal("end"), Code::kExhausted);
  store.rows["end"].max_id = 5;  // it was never used by this server
  Advance(options.refresh);
  EXPECT_EQ(TakeOne("end"), 5);
}

TEST_F(TroubleTest, ANegativeRowIsNotServed) {
  store.AddRow("minus", -100, 10);
  Start();
  EXPECT_EQ(View("minus").max_id, -100);
  Request request = Ask("minus");
  Advance(milliseconds(10));
  EXPECT_FALSE(request.done());
  Advance(options.wait);
  ASSERT_TRUE(request.done());
  EXPECT_EQ(request.result().ok(), store.rows["minus"].max_id > 0);
}

}  // namespace
}  // namespace leaf::test
