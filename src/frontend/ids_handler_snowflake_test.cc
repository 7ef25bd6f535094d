#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/ids_handler.h"
#include "frontend/ids_handler_test_support.h"
#include "tests/fakes/allocations.h"
#include "tests/fakes/engine_rig.h"
#include "tests/fakes/map_registry.h"

namespace leaf::test {
namespace {

using http1::Method;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Next = IdsHandler::Next;

constexpr std::string_view kLeafId = "/api/snowflake/get/order";
constexpr std::string_view kApiId = "/api/v1/snowflake";

SnowflakeOptions Options() {
  SnowflakeOptions options;
  options.identity = "10.0.0.1:8080";
  options.max_count = 100;
  options.max_waiters = 2;
  return options;
}

/// The handler over the real engine of snowflake mode and workers in memory.
class IdsHandlerSnowflakeTest : public testing::Test {
 protected:
  IdsHandlerSnowflakeTest() {
    EXPECT_TRUE(snowflake_.Load().ok());
    Settle();
    reader_ = rig_.engine.AddReader();
    reader_->Online();
  }

  void Settle() {
    for (int i = 0; i < 3; ++i) {
      (void)snowflake_.Tick(rig_.clock.now);
      rig_.home.Run();
    }
  }
  void Advance(Duration step) {
    rig_.clock.now += step;
    rig_.clock.wall_ms += std::chrono::duration_cast<milliseconds>(step).count();
    Settle();
  }
  ReactorTurn Turn() { return {*reader_, stats_, rig_.clock.now, "Date: D\r\n"}; }

  /// A request, parked or answered.
  struct Sent {
    explicit Sent(Executor& home) : waiter(home) {}
    TestWaiter waiter;
    IdReply reply;
    std::string out;
    Next next = Next::kNotMine;
  };
  std::unique_ptr<Sent> Send(Ask ask) {
    auto sent = std::make_unique<Sent>(rig_.home);
    // The bytes of the request end before the ids come.
    const auto kept = std::make_unique<Ask>(std::move(ask));
    const http1::Request request = RequestOf(*kept);
    sent->next = handler_.Handle(request, Turn(), sent->waiter, sent->reply, sent->out);
    std::fill(kept->target.begin(), kept->target.end(), '#');
    std::fill(kept->accept.begin(), kept->accept.end(), '#');
    if (sent->next != Next::kAnswered) {
      EXPECT_EQ(sent->out, "");
    }
    return sent;
  }
  Answer Finished(Sent& sent) {
    EXPECT_EQ(sent.next, Next::kParked);
    for (int i = 0; i < 100 && !sent.waiter.ready; ++i) Advance(milliseconds(100));
    EXPECT_TRUE(sent.waiter.ready);
    if (!sent.waiter.ready) return {};
    handler_.Finish(sent.reply, sent.waiter, Turn(), sent.out);
    return Split(sent.out);
  }
  Answer Mine(Ask ask) {
    const auto sent = Send(std::move(ask));
    EXPECT_NE(sent->next, Next::kNotMine);
    if (sent->next == Next::kNotMine) return {};
    return sent->next == Next::kParked ? Finished(*sent) : Split(sent->out);
  }
  /// Answers from here on as with these options.
  void Use(IdService& ids, IdsHandler::Options options) {
    handler_.~IdsHandler();
    new (&handler_) IdsHandler(ids, rig_.clock, options);
  }
  /// The id of worker 0 at this very time; its sequence is whatever it began with.
  void ExpectIdOfNow(std::int64_t id) const {
    const SnowflakeParts parts = Decode(kLeafLayout, id);
    EXPECT_EQ(parts.time_ms, rig_.clock.wall_ms) << id;
    EXPECT_EQ(parts.worker, 0) << id;
  }
  static std::string Quoted(std::int64_t id) { return "\"" + std::to_string(id) + "\""; }

  fakes::EngineRig rig_;
  fakes::MapRegistry registry_;
  fakes::CountingRandom random_;
  SnowflakeEngine snowflake_{Options(),
                             {.registry = registry_, .clock = rig_.clock, .random = random_}};
  IdService ids_{&rig_.engine, IdLimits{}, &snowflake_};
  RequestStats stats_;
  std::unique_ptr<Reader> reader_;
  IdsHandler handler_{
      ids_, rig_.clock,
      IdsHandler::Options{.leaf_cut_after_dot = true, .reject_encoded_slash = true}};
};

TEST_F(IdsHandlerSnowflakeTest, LeafsPathYieldsABareId) {
  const Answer answer = Mine({std::string(kLeafId)});
  ASSERT_EQ(answer.status, 200) << answer.raw;
  const std::int64_t id = std::stoll(answer.body);
  ExpectIdOfNow(id);
  EXPECT_EQ(answer.raw,
            "HTTP/1.1 200 OK\r\nDate: D\r\nContent-Type: text/plain;charset=UTF-8\r\n"
            "Content-Length: " +
                std::to_string(answer.body.size()) + "\r\nCache-Control: no-store\r\n\r\n" +
                answer.body);
  EXPECT_EQ(Mine({"/api/snowflake/get/any%20key"}).body, std::to_string(id + 1))
      << "the key chooses nothing";
  EXPECT_EQ(Mine({"/api/snowflake/get/order/"}).body, std::to_string(id + 2));
}

TEST_F(IdsHandlerSnowflakeTest, EveryMethodOfLeafTakesAnId) {
  std::int64_t id = std::stoll(Mine({std::string(kLeafId)}).body);
  for (const Method method :
       {Method::kGet, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete}) {
    EXPECT_EQ(Mine({.target = std::string(kLeafId), .method = method}).body, std::to_string(++id));
  }
  const Answer head = Mine({.target = std::string(kLeafId), .method = Method::kHead});
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.headers.at("Content-Length"), std::to_string(std::to_string(id).size()));
  EXPECT_EQ(Mine({std::string(kLeafId)}).body, std::to_string(id + 2)) << "HEAD took one";
  for (const Method method : {Method::kOptions, Method::kTrace, Method::kConnect, Method::kOther})
    EXPECT_EQ(Send({.target = std::string(kLeafId), .method = method})->next, Next::kNotMine);
}

TEST_F(IdsHandlerSnowflakeTest, AcceptOrTheKeysEndChoosesTheType) {
  const auto type = [&](std::string target, std::string accept) {
    return Mine({std::move(target), std::move(accept)}).headers["Content-Type"];
  };
  EXPECT_EQ(type(std::string(kLeafId), "application/json"), "application/json;charset=UTF-8");
  EXPECT_EQ(type(std::string(kLeafId), "text/html,*/*;q=0.8"), "text/html;charset=UTF-8");
  EXPECT_EQ(type(std::string(kLeafId), "image/png"), "text/plain;charset=UTF-8");
  EXPECT_EQ(type("/api/snowflake/get/a.json", ""), "application/json;charset=UTF-8");
  EXPECT_EQ(type("/api/snowflake/get/a.json/", ""), "text/plain;charset=UTF-8");
}

TEST_F(IdsHandlerSnowflakeTest, WhatYieldsNoIdIsNotItsOwn) {
  for (const char* target :
       {"/api/snowflake/get", "/api/snowflake/get/", "/api/snowflake/get//",
        "/api/snowflake/get/a/b", "/api/snowflake/get/a;v=1", "/api//snowflake/get/a",
        "/api/v1/snowflake/", "/api/v1/snowflakes", "/api/v1/snowflake/order"}) {
    EXPECT_EQ(Send({target})->next, Next::kNotMine) << target;
  }
  EXPECT_EQ(snowflake_.View().issued, 0U);
}

TEST_F(IdsHandlerSnowflakeTest, BadEscapesAreRefusedAndEncodedSlashesWhereLeafIsWanted) {
  for (const char* key : {"a%zz", "a%", "a%00", "a%2Fb", "a%5Cb"}) {
    const Answer answer = Mine({"/api/snowflake/get/" + std::string(key)});
    EXPECT_EQ(answer.status, 400) << key;
    EXPECT_EQ(answer.body, "");
    EXPECT_EQ(answer.headers.at("X-Leafd-Code"), "invalid_argument");
  }
  EXPECT_EQ(Mine({"/api/snowflake/get/caf%C3%A9"}).status, 200);
  Use(ids_, {});
  EXPECT_EQ(Mine({"/api/snowflake/get/a%2Fb"}).status, 200);
  EXPECT_EQ(Mine({"/api/snowflake/get/a%zz"}).status, 400);
}

TEST_F(IdsHandlerSnowflakeTest, IdsComeAsStringsInJson) {
  const Answer answer = Mine({"/api/v1/snowflake?n=3"});
  ASSERT_EQ(answer.status, 200) << answer.raw;
  EXPECT_EQ(answer.headers.at("Content-Type"), "application/json");
  EXPECT_EQ(answer.headers.at("Cache-Control"), "no-store");
  EXPECT_EQ(answer.headers.at("Content-Length"), std::to_string(answer.body.size()));
  ASSERT_TRUE(answer.body.starts_with("{\"ids\":[\"")) << answer.body;
  const std::int64_t id = std::stoll(answer.body.substr(9));
  ExpectIdOfNow(id);
  EXPECT_EQ(answer.body,
            "{\"ids\":[" + Quoted(id) + "," + Quoted(id + 1) + "," + Quoted(id + 2) + "]}");
  EXPECT_EQ(Mine({std::string(kApiId)}).body, "{\"ids\":[" + Quoted(id + 3) + "]}");
  EXPECT_EQ(Mine({.target = std::string(kApiId), .method = Method::kPost}).body,
            "{\"ids\":[" + Quoted(id + 4) + "]}");
}

TEST_F(IdsHandlerSnowflakeTest, IdsComeAsLinesForTextPlain) {
  const std::int64_t id = std::stoll(Mine({std::string(kLeafId)}).body);
  const Answer answer = Mine({"/api/v1/snowflake?n=2", "text/plain"});
  EXPECT_EQ(answer.body, std::to_string(id + 1) + "\n" + std::to_string(id + 2) + "\n");
  EXPECT_EQ(answer.headers.at("Content-Type"), "text/plain;charset=UTF-8");
}

TEST_F(IdsHandlerSnowflakeTest, ACountThatFillsAMillisecondGoesOnInTheNext) {
  SnowflakeOptions options = Options();
  options.layout = *CustomLayout("41/10/4", kLeafLayout.epoch_ms, 1);
  SnowflakeEngine small(options, {.registry = registry_, .clock = rig_.clock, .random = random_});
  ASSERT_TRUE(small.Load().ok());
  for (int i = 0; i < 3; ++i) (void)small.Tick(rig_.clock.now);
  IdService ids(&rig_.engine, IdLimits{}, &small);
  Use(ids, {});
  const Answer answer = Mine({"/api/v1/snowflake?n=40", "text/plain"});
  ASSERT_EQ(answer.status, 200) << answer.raw;
  std::vector<std::int64_t> got;
  for (std::size_t at = 0; at < answer.body.size(); at = answer.body.find('\n', at) + 1)
    got.push_back(std::stoll(answer.body.substr(at)));
  ASSERT_EQ(got.size(), 40U);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  EXPECT_EQ(std::adjacent_find(got.begin(), got.end()), got.end());
  for (const std::int64_t id : got) EXPECT_EQ(Decode(options.layout, id).worker, 1);
  EXPECT_GE(Decode(options.layout, got.back()).time_ms - rig_.clock.wall_ms, 2);
}

TEST_F(IdsHandlerSnowflakeTest, NIsOneWholeNumberUpToTheMaximum) {
  for (const char* query : {"n=0", "n=", "n", "n=-1", "n=+1", "n=1.0", "n=0x1", "n=1e3", "n=101",
                            "n=99999999999999999999", "n=1&n=1", "n=%zz"}) {
    const Answer answer = Mine({"/api/v1/snowflake?" + std::string(query)});
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_NE(answer.body.find("\"code\":\"invalid_argument\""), std::string::npos) << query;
    EXPECT_NE(answer.body.find("100 (snowflake.max_count)"), std::string::npos) << answer.body;
  }
  EXPECT_EQ(snowflake_.View().issued, 0U);
  EXPECT_EQ(Mine({"/api/v1/snowflake?n=100"}).status, 200);
  EXPECT_EQ(snowflake_.View().issued, 100U);
}

TEST_F(IdsHandlerSnowflakeTest, BelowApiV1OnlyGetAndPostTakeIds) {
  for (const Method method : {Method::kHead, Method::kPut, Method::kPatch, Method::kDelete,
                              Method::kOptions, Method::kTrace}) {
    const Answer answer = Mine({.target = std::string(kApiId), .method = method});
    EXPECT_EQ(answer.status, 405);
    EXPECT_EQ(answer.headers.at("Allow"), "GET, POST");
    EXPECT_EQ(answer.body.empty(), method == Method::kHead);
  }
  EXPECT_EQ(snowflake_.View().issued, 0U);
}

/// With a registry that is away from the start there is no right to mint.
class IdsHandlerWithoutRightTest : public IdsHandlerSnowflakeTest {
 protected:
  IdsHandlerWithoutRightTest() {
    registry_.down = "connection refused";
    EXPECT_TRUE(waiting_.Load().ok());
    (void)waiting_.Tick(rig_.clock.now);
    Use(ids_of_waiting_, {});
  }
  void Wait(Duration step) {
    rig_.clock.now += step;
    rig_.clock.wall_ms += std::chrono::duration_cast<milliseconds>(step).count();
    (void)waiting_.Tick(rig_.clock.now);
    rig_.home.Run();
  }
  Answer Ended(Sent& sent) {
    EXPECT_EQ(sent.next, Next::kParked);
    for (int i = 0; i < 100 && !sent.waiter.ready; ++i) Wait(milliseconds(100));
    EXPECT_TRUE(sent.waiter.ready);
    if (!sent.waiter.ready) return {};
    handler_.Finish(sent.reply, sent.waiter, Turn(), sent.out);
    return Split(sent.out);
  }

  SnowflakeEngine waiting_{Options(),
                           {.registry = registry_, .clock = rig_.clock, .random = random_}};
  IdService ids_of_waiting_{&rig_.engine, IdLimits{}, &waiting_};
};

TEST_F(IdsHandlerWithoutRightTest, ARegistryThatIsAwayIsSaidSo) {
  const Answer problem = Ended(*Send({std::string(kApiId)}));
  EXPECT_EQ(problem.status, 503);
  EXPECT_EQ(problem.headers.at("Retry-After"), "1");
  EXPECT_EQ(problem.headers.at("Content-Type"), "application/problem+json");
  EXPECT_NE(problem.body.find("\"code\":\"unavailable\""), std::string::npos);
  EXPECT_NE(problem.body.find("connection refused"), std::string::npos) << problem.body;
  const Answer leaf = Ended(*Send({"/api/snowflake/get/a%20b?x=1"}));
  EXPECT_EQ(leaf.status, 500);
  EXPECT_EQ(leaf.headers.at("X-Leafd-Code"), "unavailable");
  EXPECT_NE(leaf.body.find("\"message\":\"Result{id=-3, status=EXCEPTION}\""), std::string::npos);
  EXPECT_NE(leaf.body.find("\"path\":\"/api/snowflake/get/a%20b\""), std::string::npos);
  const Answer page = Ended(*Send({std::string(kLeafId), "text/html"}));
  EXPECT_EQ(page.headers.at("Content-Type"), "text/html;charset=UTF-8");
  EXPECT_NE(page.body.find("Result{id=-3, status=EXCEPTION}"), std::string::npos);
  EXPECT_EQ(Ended(*Send({.target = std::string(kLeafId), .method = Method::kHead})).body, "");
}

TEST_F(IdsHandlerWithoutRightTest, ParkedRequestsAreServedWhenTheRegistryReturns) {
  const auto leaf = Send({std::string(kLeafId), "application/json"});
  const auto api = Send({"/api/v1/snowflake?n=2", "text/plain"});
  EXPECT_EQ(waiting_.View().parked, 2);
  registry_.down.clear();
  const Answer first = Ended(*leaf);
  EXPECT_EQ(first.status, 200) << first.raw;
  EXPECT_EQ(first.headers.at("Content-Type"), "application/json;charset=UTF-8");
  const Answer second = Ended(*api);
  EXPECT_EQ(std::count(second.body.begin(), second.body.end(), '\n'), 2) << second.raw;
  EXPECT_GT(std::stoll(second.body), std::stoll(first.body));
  EXPECT_EQ(stats_.ids(), 3U);
}

TEST_F(IdsHandlerWithoutRightTest, ACancelledRequestIsOutAndMintsNothing) {
  const auto left = Send({std::string(kLeafId)});
  EXPECT_TRUE(handler_.Cancel(left->reply, left->waiter));
  EXPECT_FALSE(handler_.Cancel(left->reply, left->waiter)) << "once";
  EXPECT_EQ(waiting_.View().parked, 0);
  registry_.down.clear();
  for (int i = 0; i < 100; ++i) Wait(milliseconds(100));
  EXPECT_FALSE(left->waiter.ready);
  EXPECT_EQ(waiting_.View().issued, 0U);
}

TEST_F(IdsHandlerWithoutRightTest, IdsThatCameForAClientThatLeftAreAGap) {
  const auto left = Send({std::string(kLeafId)});
  registry_.down.clear();
  for (int i = 0; i < 100 && !left->waiter.ready; ++i) Wait(milliseconds(100));
  ASSERT_TRUE(left->waiter.ready);
  EXPECT_FALSE(handler_.Cancel(left->reply, left->waiter));
  handler_.GiveUp(left->reply, left->waiter);
  EXPECT_EQ(waiting_.View().issued, 1U);
  EXPECT_EQ(Mine({std::string(kLeafId)}).status, 200);
  EXPECT_EQ(waiting_.View().issued, 2U);
}

TEST_F(IdsHandlerWithoutRightTest, MoreThanMayWaitAreOverloaded) {
  const auto first = Send({std::string(kLeafId)}), second = Send({std::string(kLeafId)});
  const auto third = Send({std::string(kApiId)}), leaf = Send({std::string(kLeafId)});
  ASSERT_EQ(third->next, Next::kAnswered);
  EXPECT_EQ(Split(third->out).status, 429);
  EXPECT_EQ(Split(leaf->out).status, 500);
  EXPECT_EQ(Split(leaf->out).headers.at("X-Leafd-Code"), "overloaded");
  EXPECT_TRUE(handler_.Cancel(first->reply, first->waiter));
  EXPECT_TRUE(handler_.Cancel(second->reply, second->waiter));
}

TEST_F(IdsHandlerWithoutRightTest, AStopAnswersThoseWhoWait) {
  const auto parked = Send({std::string(kApiId)});
  bool closed = false;
  waiting_.Close([&] { closed = true; });
  const Answer answer = Ended(*parked);
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("this server is stopping"), std::string::npos);
  EXPECT_EQ(Split(Send({std::string(kApiId)})->out).status, 503);
  for (int i = 0; i < 100 && !closed; ++i) Wait(milliseconds(100));
  EXPECT_TRUE(closed);
}

TEST_F(IdsHandlerSnowflakeTest, ADisabledModeIsAnErrorThatSaysWhatToConfigure) {
  IdService off(&rig_.engine, IdLimits{});
  Use(off, {});
  const Answer leaf = Mine({std::string(kLeafId)});
  EXPECT_EQ(leaf.status, 500);
  EXPECT_EQ(leaf.headers.at("X-Leafd-Code"), "disabled");
  EXPECT_NE(leaf.body.find("\"message\":\"You should config leaf.snowflake.enable=true first\""),
            std::string::npos);
  for (const char* target : {"/api/v1/snowflake", "/api/v1/snowflake?n=1000000"}) {
    const Answer problem = Mine({target});
    EXPECT_EQ(problem.status, 409);
    EXPECT_NE(problem.body.find("\"code\":\"disabled\""), std::string::npos);
    EXPECT_FALSE(problem.headers.contains("Retry-After"));
  }
}

TEST_F(IdsHandlerSnowflakeTest, ADisabledModeIsZeroOnlyWhenAskedForAndOnLeafsPath) {
  IdService off(&rig_.engine, IdLimits{});
  Use(off, {.disabled_returns_zero = true});
  EXPECT_EQ(Mine({std::string(kLeafId)}).body, "0");
  EXPECT_EQ(Mine({std::string(kApiId)}).status, 409);
  Use(ids_, {.disabled_returns_zero = true});
  EXPECT_GT(std::stoll(Mine({std::string(kLeafId)}).body), 0) << "this one is on";
}

TEST_F(IdsHandlerSnowflakeTest, AModeThatIsOnButUnavailableIsNeverZero) {
  IdService away(&rig_.engine, IdLimits{}, nullptr,
                 Error{Code::kUnavailable, "Set snowflake.registry"});
  Use(away, {.disabled_returns_zero = true});
  const Answer leaf = Mine({std::string(kLeafId)});
  EXPECT_EQ(leaf.status, 500);
  EXPECT_NE(leaf.body.find("Result{id=-3, status=EXCEPTION}"), std::string::npos);
  const Answer problem = Mine({std::string(kApiId)});
  EXPECT_EQ(problem.status, 503);
  EXPECT_EQ(problem.headers.at("Retry-After"), "1");
  EXPECT_NE(problem.body.find("Set snowflake.registry"), std::string::npos);
}

TEST_F(IdsHandlerSnowflakeTest, RequestsAndIdsAreCounted) {
  Mine({std::string(kLeafId)});
  Mine({"/api/v1/snowflake?n=5"});
  Mine({"/api/v1/snowflake?n=0"});
  EXPECT_EQ(stats_.requests(Protocol::kHttp, RequestStats::kOk), 2U);
  EXPECT_EQ(stats_.requests(Protocol::kHttp, static_cast<int>(Code::kInvalidArgument)), 1U);
  EXPECT_EQ(stats_.ids(), 6U);
}

TEST_F(IdsHandlerSnowflakeTest, IdsCostNoAllocation) {
  Mine({"/api/v1/snowflake?n=1"});
  TestWaiter waiter(rig_.home);
  IdReply reply;
  std::string out;
  out.reserve(1 << 16);
  for (const Ask& ask :
       {Ask{std::string(kLeafId)}, Ask{std::string(kLeafId), "application/json"},
        Ask{"/api/v1/snowflake?n=3"}, Ask{"/api/v1/snowflake?n=3", "text/plain"}}) {
    const http1::Request request = RequestOf(ask);
    const ReactorTurn turn = Turn();
    const std::int64_t before = fakes::Allocations();
    const Next next = handler_.Handle(request, turn, waiter, reply, out);
    EXPECT_EQ(fakes::Allocations(), before) << ask.target;
    EXPECT_EQ(next, Next::kAnswered);
  }
}

}  // namespace
}  // namespace leaf::test
