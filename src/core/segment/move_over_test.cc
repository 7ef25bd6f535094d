// Another store takes over: a failover, a restore, another address.

#include "core/segment/engine_test_support.h"
#include "core/segment/lineage.h"

namespace leaf::test {
namespace {

class MoveOverTest : public EngineTest {
 protected:
  MoveOverTest() {
    policy = MakeFixedPolicy();
    store.AddRow("order", 1, 100);
    store.AddRow("pay", 1, 10);
  }
  /// A replica takes over; its row of `order` stands at `max_id`.
  void TakeOver(std::int64_t max_id) {
    ++store.store_id;
    ++store.store_turn;
    store.rows["order"].max_id = max_id;
  }
};

TEST_F(MoveOverTest, TheFirstStoreIsNoChange) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  EXPECT_EQ(store.raises, 0);
  EXPECT_EQ(engine->Sum().store_changes, 0U);
}

TEST_F(MoveOverTest, ARowIsRaisedOnceBeforeItsNextLeaseCounts) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);
  const std::int64_t id = Take("order", 200).back();
  EXPECT_EQ(store.raises, 1);
  EXPECT_GT(id, 101 + 16 * 100) << "what others leased and the replica lacks lies below";
  EXPECT_GT(Discarded("order", Discard::kFailover), 0U);
  EXPECT_EQ(engine->Sum().store_changes, 1U);
  Take("order", 500);
  EXPECT_EQ(store.raises, 1) << "once";
}

TEST_F(MoveOverTest, IdsHeldFromTheFormerStoreGoOn) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);
  EXPECT_EQ(TakeOne("pay"), 1 + 10 + 16 * 10) << "the lease that showed the change is burnt";
  EXPECT_EQ(TakeOne("order"), 2);
}

TEST_F(MoveOverTest, EveryTagInUseIsMovedAtOnce) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  EXPECT_EQ(TakeOne("pay"), 1);
  TakeOver(101);
  Take("pay", 50);
  EXPECT_EQ(store.raises, 2) << "a server that knows nothing could lease what was lost";
  EXPECT_GE(store.rows["order"].max_id, 101 + 1600);
}

TEST_F(MoveOverTest, ATagThatWasNeverLeasedIsMovedToo) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);
  Take("order", 200);
  EXPECT_GT(TakeOne("pay"), 160) << "others may have leased it";
}

TEST_F(MoveOverTest, ARowBelowTheMarkStopsTheTag) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(50);
  EXPECT_EQ(Refusal("order", 200), Code::kRegressed);
  EXPECT_GE(store.rows["order"].max_id, 101 + 1600);
}

TEST_F(MoveOverTest, TheChangeIsNoticedOverARestart) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);
  store.store_turn = 0;  // of the new process
  Start();
  EXPECT_GT(TakeOne("order"), 1600);
  EXPECT_EQ(store.raises, 1);
  Start();
  Take("order", 300);
  EXPECT_EQ(store.raises, 1) << "the tag has been moved";
  EXPECT_GT(TakeOne("pay"), 160) << "and this one has not";
}

TEST_F(MoveOverTest, AChangeSinceTheStartCountsThoughNothingWasLeased) {
  Start();
  TakeOver(101);
  EXPECT_GT(TakeOne("order"), 1600);
}

TEST_F(MoveOverTest, AStoreThatComesBackIsAnotherOne) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);
  Take("order", 200);
  EXPECT_EQ(store.raises, 1);
  --store.store_id;
  ++store.store_turn;
  store.rows["order"].max_id = 9'000'000;
  Take("order", 2000);
  EXPECT_EQ(store.raises, 2);
}

TEST_F(MoveOverTest, AStoreThatCameBackIsAnotherOneOverARestartToo) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  EXPECT_EQ(TakeOne("pay"), 1);
  Start();  // in which `pay` is not used
  TakeOver(101);
  Take("order", 200);
  --store.store_id;
  ++store.store_turn;
  store.rows["order"].max_id = 9'000'000;
  Take("order", 2000);
  store.store_turn = 0;  // of the new process
  Start();
  EXPECT_GT(TakeOne("pay"), 160) << "its row lacks what others leased from the store in between";
}

TEST_F(MoveOverTest, AStoreThatWasLeasedFromIsOnDiskBeforeTheFirstIdOfIt) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);
  const int before = journal.syncs;
  Take("order", 200);
  EXPECT_EQ(journal.syncs, before + 1);
  Take("order", 2000);
  EXPECT_GT(TakeOne("pay"), 160);
  EXPECT_EQ(journal.syncs, before + 1) << "once";
}

TEST_F(MoveOverTest, TheSkipCountsTheLeasesOfOthers) {
  policy = MakeLeafPolicy();
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  store.rows["order"].max_id = 50'101;  // another server leases 50,000 at once
  Take("order", 200);
  TakeOver(60'000);
  EXPECT_GT(Take("order", 1000).back(), 60'000 + 16 * 50'000);
}

TEST_F(MoveOverTest, TheSkipOfAForgottenSizeIsThatOfTheLargestLease) {
  policy = MakeLeafPolicy();
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);
  store.store_turn = 0;
  Start();
  EXPECT_GT(TakeOne("order"), 16'000'000);
  EXPECT_EQ(TakeOne("pay"), 1 + 1 + 16 * 10) << "of which nothing was ever leased here";
}

TEST_F(MoveOverTest, AGrantOfTheFormerStoreThatComesLateIsNotUsed) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  store.grant_at_once = false;
  Request request = Ask("order", 200);
  const Grant late = store.Carry(store.Pop());
  TakeOver(101);
  store.grant_at_once = true;
  EXPECT_EQ(TakeOne("pay"), 171);
  store.Answer(late);
  Advance(options.backoff_max);
  ASSERT_TRUE(request.done());
  ASSERT_TRUE(request.result().ok());
  EXPECT_GT(Ids(*request.result()).back(), 1600);
  EXPECT_GT(Discarded("order", Discard::kBurnt), 0U);
}

TEST_F(MoveOverTest, AGrantThatATakeoverOvertakesIsNotUsed) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  store.grant_at_once = false;
  Request request = Ask("order", 200);
  const Grant late = store.Carry(store.Pop());
  store.grant_at_once = true;
  clock.meanwhile = [this] {
    TakeOver(101);
    EXPECT_EQ(TakeOne("pay"), 171);
  };
  store.Answer(late);
  Advance(options.backoff_max);
  ASSERT_TRUE(request.done());
  ASSERT_TRUE(request.result().ok());
  EXPECT_GT(Ids(*request.result()).back(), 1600);
  EXPECT_GT(Discarded("order", Discard::kBurnt), 0U);
}

TEST_F(MoveOverTest, RaisingIsRepeatedUntilItIsDone) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);
  store.answer_at_once = false;
  Request request = Ask("order", 200);
  ASSERT_EQ(store.held.size(), 1U);
  Advance(options.store_timeout + options.backoff_max);
  ASSERT_GE(store.held.size(), 2U) << "tried again";
  store.answer_at_once = true;
  store.AnswerHeld();
  Advance(options.backoff_max);
  ASSERT_TRUE(request.done());
  ASSERT_TRUE(request.result().ok());
  EXPECT_GT(Ids(*request.result()).back(), 1600);
}

TEST_F(MoveOverTest, NothingIsHandedBackToAnotherStore) {
  Start();
  EXPECT_EQ(TakeOne("order"), 1);
  TakeOver(101);  // by chance just where our lease ended
  TakeOne("pay");
  store.rows["order"].max_id = 101;
  bool closed = false;
  engine->Close([&] { closed = true; });
  Advance(options.store_timeout);
  EXPECT_TRUE(closed);
  for (const auto& [tag, tail] : store.handed_back) EXPECT_GE(tail.first, 161) << tag;
}

TEST(LineageTest, NamesSurviveARestartAndTurnsTellStoresApart) {
  using Word = Lineage::Word;
  Lineage lineage;
  EXPECT_EQ(lineage.Hear(7, 0).word, Word::kSame);
  EXPECT_EQ(lineage.current(), 1U);
  const std::uint32_t name = lineage.NameOf(1);
  EXPECT_EQ(lineage.Hear(8, 1).word, Word::kAnother);
  EXPECT_EQ(lineage.Hear(7, 0).word, Word::kStale);
  EXPECT_EQ(lineage.Hear(8, 1).word, Word::kSame);
  EXPECT_EQ(lineage.Hear(8, 1).generation, 2U);
  EXPECT_EQ(lineage.Hear(7, 2).word, Word::kAnother);
  EXPECT_EQ(lineage.current(), 3U);
  EXPECT_EQ(lineage.store_id(), 7U);
  EXPECT_EQ(lineage.NameOf(3), name);
  EXPECT_EQ(lineage.NameOf(1), 0U) << "the same store, but that time is over";

  Lineage same;
  same.Remember(3, name);
  same.Remember(2, 0);
  EXPECT_EQ(same.Hear(7, 0).word, Word::kSame);
  EXPECT_EQ(same.current(), 3U) << "what has not been moved yet still has to be";
  Lineage other;
  other.Remember(1, name);
  EXPECT_EQ(other.Hear(9, 0).word, Word::kAnother);
  EXPECT_EQ(other.current(), 2U);
  Lineage unsure;
  unsure.Remember(2, name);
  unsure.Remember(2, 0);
  EXPECT_EQ(unsure.Hear(7, 0).word, Word::kAnother);
}

}  // namespace
}  // namespace leaf::test
