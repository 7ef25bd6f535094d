// Operators' calls, and the clean stop.

#include "core/segment/engine_test_support.h"

namespace leaf::test {
namespace {

class AdminTest : public EngineTest {
 protected:
  AdminTest() { policy = MakeFixedPolicy(); }

  Result<Engine::Put> Put(const std::string& tag, std::int64_t step,
                          std::optional<std::int64_t> max_id = std::nullopt) {
    std::vector<Result<Engine::Put>> answers;
    engine->PutTag(tag, step, max_id, [&](Result<Engine::Put> r) { answers.push_back(r); });
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? Result<Engine::Put>(Error{}) : answers.front();
  }
  Result<Row> Delete(const std::string& tag) {
    std::vector<Result<Row>> answers;
    engine->DeleteTag(tag, [&](Result<Row> r) { answers.push_back(r); });
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? Result<Row>(Error{}) : answers.front();
  }
  /// True once the engine is closed.
  bool Close() {
    engine->Close([this] { ++closed; });
    return closed == 1;
  }

  int closed = 0;
};

TEST_F(AdminTest, PutCreatesATagAndThenChangesItsStep) {
  Start();
  const auto made = Put("order", 10);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->created);
  EXPECT_EQ(made->row.max_id, 1);
  EXPECT_EQ(TakeOne("order"), 1);
  const auto changed = Put("order", 20);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(changed->created);
  EXPECT_EQ(changed->row.step, 20);
  EXPECT_EQ(View("order").step, 20);
}

TEST_F(AdminTest, PutOfATagThatWasJustMissingIsServedAtOnce) {
  Start();
  EXPECT_EQ(Refusal("order"), Code::kNotFound);
  ASSERT_TRUE(Put("order", 10, 500).ok());
  EXPECT_EQ(TakeOne("order"), 500);
}

TEST_F(AdminTest, PutWithAnotherMaxIdConflicts) {
  store.AddRow("order", 77, 10);
  Start();
  EXPECT_EQ(Put("order", 20, 1).error().code, Code::kConflict);
  EXPECT_TRUE(Put("order", 20, 77).ok());
  EXPECT_EQ(store.rows["order"].step, 20);
}

TEST_F(AdminTest, PutOnARowThatOthersMadeChangesIt) {
  Start();
  store.AddRow("order", 77, 10);  // not listed yet
  const auto put = Put("order", 30);
  ASSERT_TRUE(put.ok());
  EXPECT_FALSE(put->created);
  EXPECT_EQ(store.rows["order"].step, 30);
}

TEST_F(AdminTest, PutRefusesWhatCannotBe) {
  Start();
  EXPECT_EQ(Put("order", 0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Put("order", -5).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Put("order", 5, -1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Put("", 5).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Put("a b", 5).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Put(std::string(129, 'a'), 5).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(store.rows.empty());
}

TEST_F(AdminTest, DeleteEndsATagAtOnceAndKeepsItsMark) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  ASSERT_TRUE(Delete("order").ok());
  EXPECT_EQ(Refusal("order"), Code::kNotFound);
  EXPECT_EQ(Delete("order").error().code, Code::kNotFound);
  const auto made = Put("order", 10, 1);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->row.max_id, 101) << "at or above the mark";
  EXPECT_EQ(TakeOne("order"), 101);
  EXPECT_EQ(Discarded("order", Discard::kDeleted), 99U);
}

TEST_F(AdminTest, ADeletedTagIsCreatedAboveWhatOtherServersTook) {
  store.AddRow("order", 1, 100);
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  store.AddRow("order", 501, 100);  // others took up to here, and the list was not read since
  store.AddRow("new", 701, 100);    // this server never saw it
  ASSERT_TRUE(Delete("order").ok());
  ASSERT_TRUE(Delete("new").ok());
  EXPECT_EQ(Put("order", 10)->row.max_id, 501);
  EXPECT_EQ(Put("new", 10, 1)->row.max_id, 701);
}

TEST_F(AdminTest, WhatADeletedRowHeldIsRememberedOverARestart) {
  store.AddRow("order", 501, 100);
  Start();
  ASSERT_TRUE(Delete("order").ok());
  Start();
  EXPECT_EQ(Put("order", 10)->row.max_id, 501);
}

TEST_F(AdminTest, ADeletionOfUnknownOutcomeIsNoReasonToForgetTheRow) {
  store.AddRow("order", 1, 100);
  Start();
  store.AddRow("order", 501, 100);
  store.answer_at_once = false;
  std::vector<Code> codes;
  engine->DeleteTag("order", [&](Result<Row> r) { codes.push_back(r.error().code); });
  store.AnswerHeld();  // the look at the row
  Advance(options.store_timeout);
  EXPECT_EQ(codes, (std::vector<Code>{Code::kUnavailable}));
  store.rows.erase("order");  // it did take effect
  store.answer_at_once = true;
  Advance(options.refresh);
  EXPECT_EQ(Put("order", 10)->row.max_id, 501);
}

TEST_F(AdminTest, DeleteDropsTheFlightUnderWay) {
  store.AddRow("order", 1, 100);
  store.grant_at_once = false;
  Start();
  Request request = Ask("order");
  const Grant grant = store.Carry(store.Pop());
  ASSERT_TRUE(Delete("order").ok());
  tasks.RunAll();
  ASSERT_TRUE(request.done());
  EXPECT_EQ(request.result().error().code, Code::kNotFound);
  store.Answer(grant);
  EXPECT_EQ(engine->Sum().stale_grants, 1U);
  EXPECT_EQ(engine->Sum().flights, 0);
}

TEST_F(AdminTest, TheFlightOfADeletedTagMakesRoomForOthers) {
  options.max_flights = 1;
  store.AddRow("gone", 1, 100);
  store.AddRow("order", 1, 100);
  store.grant_at_once = false;
  Start();
  Request gone = Ask("gone");
  Request waits = Ask("order");
  ASSERT_EQ(store.asked.size(), 1U);
  ASSERT_TRUE(Delete("gone").ok());
  ASSERT_EQ(store.asked.size(), 2U);
  store.GrantAll();
  tasks.RunAll();
  ASSERT_TRUE(waits.done());
  EXPECT_EQ(Ids(*waits.result()), (std::vector<std::int64_t>{1}));
}

TEST_F(AdminTest, AnAdminCallIsAnsweredOnceEvenIfTheStoreNeverDoes) {
  store.AddRow("order", 1, 100);
  Start();
  store.answer_at_once = false;
  std::vector<Code> codes;
  engine->PutTag("new", 5, std::nullopt,
                 [&](Result<Engine::Put> r) { codes.push_back(r.error().code); });
  engine->DeleteTag("order", [&](Result<Row> r) { codes.push_back(r.error().code); });
  Advance(options.store_timeout);
  EXPECT_EQ(codes, (std::vector<Code>{Code::kUnavailable, Code::kUnavailable}));
  store.AnswerHeld();
  EXPECT_EQ(codes.size(), 2U);
}

TEST_F(AdminTest, DropDiscardsWhatIsHeldAndWhatIsOnItsWay) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  store.grant_at_once = false;
  Take("order", 50);  // look-ahead is under way
  ASSERT_EQ(store.pending.size(), 1U);
  const Grant on_its_way = store.Carry(store.Pop());
  store.grant_at_once = true;
  store.rows["order"].max_id += 1'000'000;
  EXPECT_EQ(*engine->DropTag("order"), 49);
  store.Answer(on_its_way);
  EXPECT_EQ(TakeOne("order"), 1'000'201);
  EXPECT_EQ(Discarded("order", Discard::kDropped), 49U);
  EXPECT_EQ(engine->DropTag("none").error().code, Code::kNotFound);
}

TEST_F(AdminTest, ACleanStopHandsBackWhatWasNotIssued) {
  store.AddRow("order", 1, 100);
  Start();
  Take("order", 7);
  EXPECT_TRUE(Close());
  EXPECT_EQ(store.rows["order"].max_id, 8);
  EXPECT_EQ(journal.marks["order"].end, 8);
  EXPECT_EQ(journal.syncs, 1);
  EXPECT_EQ(Refusal("order"), Code::kUnavailable);
  Start();
  EXPECT_EQ(TakeOne("order"), 8);
}

TEST_F(AdminTest, HandBackCoversTheContiguousTopOnly) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  store.rows["order"].max_id = 1001;
  Take("order", 11);  // leases [1001, 1101) ahead
  ASSERT_EQ(View("order").remaining, 188);
  EXPECT_TRUE(Close());
  ASSERT_EQ(store.handed_back.size(), 1U);
  EXPECT_EQ(store.handed_back[0].second, (Range{1001, 1101}));
  EXPECT_EQ(journal.marks["order"].end, 13) << "the first id that was not issued";
}

TEST_F(AdminTest, HandBackIsTriedOnce) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  store.rows["order"].max_id = 5000;
  EXPECT_TRUE(Close());
  EXPECT_EQ(store.handed_back.size(), 1U);
  EXPECT_EQ(store.rows["order"].max_id, 5000) << "another server has leased since";
}

TEST_F(AdminTest, AHandBackThatComesAfterTheNextStopIsNoRegression) {
  store.AddRow("order", 1, 100);
  Start();
  Take("order", 7);
  EXPECT_TRUE(Close());
  store.rows["order"].max_id = 101;  // as if the hand-back to 8 were still on its way
  Start();
  store.grant_at_once = false;
  const Request gone = Ask("order");
  EXPECT_TRUE(engine->Cancel(*gone.waiter));
  store.GrantAll();
  store.grant_at_once = true;
  closed = 0;
  EXPECT_TRUE(Close());
  EXPECT_EQ(store.rows["order"].max_id, 101) << "nothing was issued, so all is given back";
  store.rows["order"].max_id = 8;  // there it is
  Start();
  EXPECT_EQ(TakeOne("order"), 8);
}

TEST_F(AdminTest, WhatOthersGiveBackBelowAnUnusedLeaseIsNoRegression) {
  store.AddRow("order", 1, 10);
  Start();
  Take("order", 10);  // its lease is used up, and the next one was asked for
  ASSERT_EQ(View("order").remaining, 10);
  EXPECT_EQ(engine->DropTag("order").value(), 10);
  store.rows["order"].max_id = 121;  // another server holds [21, 121)
  store.grant_at_once = false;
  const Request gone = Ask("order");
  EXPECT_TRUE(engine->Cancel(*gone.waiter));
  store.GrantAll();
  store.grant_at_once = true;
  EXPECT_TRUE(Close());
  EXPECT_EQ(store.rows["order"].max_id, 121);
  store.rows["order"].max_id = 21;  // and gives all of it back
  Start();
  EXPECT_EQ(TakeOne("order"), 21);
}

TEST_F(AdminTest, WithoutItsMarksOnDiskNothingIsHandedBack) {
  store.AddRow("order", 1, 100);
  Start();
  TakeOne("order");
  journal.sync_error = Error{Code::kUnavailable, "disk full"};
  EXPECT_TRUE(Close());
  EXPECT_TRUE(store.handed_back.empty());
}

TEST_F(AdminTest, StoppingEndsParkedRequestsAndWaitsForFlights) {
  store.AddRow("order", 1, 100);
  Start();
  store.grant_at_once = false;
  Request parked = Ask("order");
  store.answer_at_once = false;
  Request looking = Ask("other");
  EXPECT_FALSE(Close());
  tasks.RunAll();
  for (const Request* request : {&parked, &looking}) {
    ASSERT_TRUE(request->done());
    EXPECT_EQ(request->result().error().code, Code::kUnavailable);
  }
  EXPECT_EQ(closed, 0);
  store.answer_at_once = true;
  store.GrantAll();
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(store.rows["order"].max_id, 1) << "what landed was handed back whole";
}

TEST_F(AdminTest, StoppingEndsThoughTheStoreDoesNotAnswer) {
  store.AddRow("order", 1, 100);
  store.AddRow("other", 1, 100);
  Start();
  TakeOne("other");
  store.grant_at_once = false;
  Request parked = Ask("order");
  store.answer_at_once = false;
  EXPECT_FALSE(Close());
  Advance(2 * options.store_timeout);
  EXPECT_EQ(closed, 1);
  store.AnswerHeld();
  EXPECT_EQ(closed, 1);
}

TEST_F(AdminTest, AStoreThatFailsDoesNotHoldUpTheStop) {
  options.max_flights = 2;
  for (int i = 0; i < 50; ++i) store.AddRow("t" + std::to_string(i), 1, 10);
  Start();
  for (int i = 0; i < 50; ++i) TakeOne("t" + std::to_string(i));
  store.answer_at_once = false;
  EXPECT_FALSE(Close());
  EXPECT_EQ(store.handed_back.size(), 2U);
  Advance(options.store_timeout);
  EXPECT_EQ(closed, 1);
}

TEST_F(AdminTest, ASecondCloseEndsAtOnce) {
  Start();
  EXPECT_TRUE(Close());
  bool again = false;
  engine->Close([&] { again = true; });
  EXPECT_TRUE(again);
  EXPECT_EQ(closed, 1);
}

}  // namespace
}  // namespace leaf::test
