// Tags that this server does not know.

#include "core/segment/engine_test_support.h"
#include "core/segment/negative_cache.h"
#include "core/segment/token_bucket.h"

namespace leaf::test {
namespace {

class LookupsTest : public EngineTest {
 protected:
  LookupsTest() { options.refresh = minutes(10); }
};

TEST_F(LookupsTest, AnUnknownTagIsLookedUpAtOnce) {
  Start();
  store.AddRow("new", 7, 10);
  EXPECT_EQ(TakeOne("new"), 7);
  EXPECT_EQ(TakeOne("new"), 8);
  EXPECT_EQ(store.finds, 1);
}

TEST_F(LookupsTest, AMissingTagIsRememberedForAWhile) {
  Start();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Refusal("none"), Code::kNotFound);
  EXPECT_EQ(store.finds, 1);
  store.AddRow("none", 1, 10);
  Advance(options.negative_ttl);
  EXPECT_EQ(TakeOne("none"), 1);
}

TEST_F(LookupsTest, ManyRequestsShareOneLookUp) {
  Start();
  store.AddRow("new", 1, 1000);
  store.answer_at_once = false;
  std::vector<Request> requests;
  for (int i = 0; i < 300; ++i) requests.push_back(Ask("new"));
  EXPECT_EQ(store.finds, 1);
  store.AnswerHeld();
  tasks.RunAll();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(requests[static_cast<std::size_t>(i)].done());
    EXPECT_EQ(Ids(*requests[static_cast<std::size_t>(i)].result()),
              (std::vector<std::int64_t>{i + 1}));
  }
  EXPECT_EQ(engine->Sum().parked, 0);
}

TEST_F(LookupsTest, LookUpsAreRationedAndSaySo) {
  options.lookups_per_second = 10;
  Start();
  int overloaded = 0;
  for (int i = 0; i < 100; ++i) {
    const Code code = Refusal("none" + std::to_string(i));
    EXPECT_TRUE(code == Code::kNotFound || code == Code::kOverloaded);
    overloaded += code == Code::kOverloaded;
  }
  EXPECT_EQ(overloaded, 90);
  EXPECT_EQ(store.finds, 10);
  EXPECT_EQ(engine->Sum().lookups_refused, 90U);
  Advance(seconds(1));
  EXPECT_EQ(Refusal("fresh"), Code::kNotFound);
}

TEST_F(LookupsTest, TheNamesRememberedAreBounded) {
  options.negative_entries = 5;
  options.lookups_per_second = 1000;
  Start();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Refusal("none" + std::to_string(i)), Code::kNotFound);
  EXPECT_EQ(Refusal("one more"), Code::kOverloaded);
  EXPECT_EQ(Refusal("none0"), Code::kNotFound) << "still known to be missing";
  Advance(options.negative_ttl);
  EXPECT_EQ(Refusal("one more"), Code::kNotFound);
}

TEST_F(LookupsTest, ALookUpThatFailsIsTriedAgainForThoseWhoWait) {
  Start();
  store.AddRow("new", 1, 10);
  store.fault = Error{Code::kUnavailable, "down"};
  Request request = Ask("new");
  Advance(milliseconds(500));
  EXPECT_FALSE(request.done());
  store.fault.reset();
  Advance(options.backoff_max);
  ASSERT_TRUE(request.done());
  EXPECT_EQ(Ids(*request.result()), (std::vector<std::int64_t>{1}));
}

TEST_F(LookupsTest, ALookUpEndsByTheRequestsDeadline) {
  Start();
  store.fault = Error{Code::kUnavailable, "no route to host"};
  Request request = Ask("new");
  Advance(options.wait);
  ASSERT_TRUE(request.done());
  EXPECT_EQ(request.result().error().code, Code::kUnavailable) << "never not_found in doubt";
  EXPECT_NE(request.result().error().message.find("no route"), std::string::npos);
  const int finds = store.finds;
  Advance(seconds(30));
  EXPECT_LE(store.finds, finds + 1) << "nobody waits any more";
}

TEST_F(LookupsTest, TheDeadlineRunsFromTheRequestNotFromTheLookUp) {
  Start();
  store.AddRow("new", 1, 10);
  store.answer_at_once = false;
  Request request = Ask("new");
  Advance(milliseconds(900));
  store.grant_at_once = false;
  store.AnswerHeld();
  Advance(options.wait - milliseconds(901));
  EXPECT_FALSE(request.done());
  Advance(milliseconds(1));
  EXPECT_TRUE(request.done());
}

TEST_F(LookupsTest, WhoWaitsForALookUpIsServedWhenTheListShowsTheTag) {
  options.refresh = seconds(1);
  Start();
  store.answer_at_once = false;
  Request first = Ask("new");  // its look-up gets no answer
  store.answer_at_once = true;
  store.AddRow("new", 1, 10);
  Advance(options.refresh);
  ASSERT_TRUE(first.done());
  EXPECT_EQ(Ids(*first.result()), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(TakeOne("new"), 2);
  store.AnswerHeld();
  EXPECT_EQ(TakeOne("new"), 3);
}

TEST_F(LookupsTest, ARequestCanBeCancelledWhileItsTagIsLookedUp) {
  Start();
  store.AddRow("new", 1, 10);
  store.answer_at_once = false;
  Request gone = Ask("new");
  Request stays = Ask("new");
  EXPECT_TRUE(engine->Cancel(*gone.waiter));
  store.AnswerHeld();
  tasks.RunAll();
  EXPECT_EQ(gone.waiter->runs, 0);
  EXPECT_EQ(Ids(*stays.result()), (std::vector<std::int64_t>{1}));
}

TEST_F(LookupsTest, AutoCreateMakesATagOnce) {
  options.auto_create = true;
  options.step = 50;
  Start();
  EXPECT_EQ(TakeOne("made"), 1);
  EXPECT_EQ(store.rows["made"].step, 50);
  EXPECT_EQ(store.creates, 1);
}

TEST_F(LookupsTest, AutoCreateStartsAtTheMark) {
  options.auto_create = true;
  Start();
  TakeOne("made");
  const std::int64_t mark = View("made").mark;
  store.rows.erase("made");
  Advance(2 * options.refresh);
  EXPECT_EQ(TakeOne("made"), mark);
}

TEST_F(LookupsTest, AutoCreateMakesPlainNamesOnlyAndStopsAtItsLimit) {
  options.auto_create = true;
  options.auto_create_limit = 2;
  Start();
  EXPECT_EQ(Refusal("caf\xC3\xA9"), Code::kNotFound);
  EXPECT_EQ(TakeOne("a"), 1);
  EXPECT_EQ(TakeOne("b"), 1);
  EXPECT_EQ(Refusal("c"), Code::kNotFound);
  EXPECT_EQ(store.creates, 2);
}

TEST_F(LookupsTest, WhenAnotherServerMadesItFirstItsRowIsServed) {
  options.auto_create = true;
  Start();
  store.answer_at_once = false;
  Request request = Ask("made");
  store.AnswerHeld();            // not found
  store.AddRow("made", 41, 10);  // the other was quicker
  store.AnswerHeld();            // conflict
  store.AnswerHeld();            // found
  tasks.RunAll();
  ASSERT_TRUE(request.done());
  EXPECT_EQ(Ids(*request.result()), (std::vector<std::int64_t>{41}));
}

TEST_F(LookupsTest, ANameThatTheTableTakesForAnotherEndsAsNotFound) {
  options.auto_create = true;
  Start();
  store.answer_at_once = false;
  Request request = Ask("ORDER");
  store.AnswerHeld();            // not found, byte by byte
  store.AddRow("ORDER", 1, 10);  // the collation finds "order" in its way
  store.AnswerHeld();
  store.rows.erase("ORDER");
  store.AnswerHeld();
  tasks.RunAll();
  ASSERT_TRUE(request.done());
  EXPECT_EQ(request.result().error().code, Code::kNotFound);
}

TEST(TokenBucketTest, GivesItsRateAndNoMore) {
  TokenBucket bucket(100);
  Instant now(std::chrono::hours(1));
  int given = 0;
  for (int ms = 0; ms < 10'000; ++ms, now += std::chrono::milliseconds(1)) {
    for (int i = 0; i < 10; ++i) given += bucket.Take(now);
  }
  EXPECT_GE(given, 1095);
  EXPECT_LE(given, 1105);
  TokenBucket never(0);
  EXPECT_FALSE(never.Take(now));
}

TEST(NegativeCacheTest, ForgetsWhatHasPassed) {
  NegativeCache cache{Duration(std::chrono::seconds(1))};
  Instant now(std::chrono::hours(1));
  cache.Add("a", now);
  EXPECT_TRUE(cache.Has("a", now));
  EXPECT_FALSE(cache.Has("b", now));
  EXPECT_FALSE(cache.Has("a", now + std::chrono::seconds(1)));
  cache.Add("a", now + std::chrono::milliseconds(500));
  cache.Trim(now + std::chrono::seconds(1));
  EXPECT_TRUE(cache.Has("a", now + std::chrono::seconds(1))) << "it was seen missing again";
  cache.Trim(now + std::chrono::seconds(2));
  EXPECT_EQ(cache.size(), 0U);
}

}  // namespace
}  // namespace leaf::test
