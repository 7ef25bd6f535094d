#include "frontend/ids_handler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "frontend/ids_handler_test_support.h"
#include "tests/fakes/allocations.h"
#include "tests/fakes/engine_rig.h"

namespace leaf::test {
namespace {

using http1::Method;
using Next = IdsHandler::Next;

class IdsHandlerTest : public testing::Test {
 protected:
  IdsHandlerTest() {
    rig_.store.Put("order", 1002, 1000);
    rig_.store.Put("a", 500000, 1000);
    rig_.store.Put("a.b", 1, 1000);
    rig_.store.Put("a/b", 7, 1000);
    rig_.store.Put("zero", 0, 1000);
    rig_.store.Put("caf\xC3\xA9", 1, 1000);
    rig_.Settle();
    reader_ = rig_.engine.AddReader();
    reader_->Online();
  }

  ReactorTurn Turn() { return {*reader_, stats_, rig_.clock.now, "Date: D\r\n"}; }

  /// The whole answer; nullopt: not the handler's.
  std::optional<Answer> Get(Ask ask) {
    TestWaiter waiter(rig_.home);
    IdReply reply;
    std::string out;
    Next next = Next::kNotMine;
    {
      // The bytes of the request end before the ids come.
      const auto kept = std::make_unique<Ask>(std::move(ask));
      const http1::Request request = RequestOf(*kept);
      next = handler_.Handle(request, Turn(), waiter, reply, out);
      std::fill(kept->target.begin(), kept->target.end(), '#');
      std::fill(kept->accept.begin(), kept->accept.end(), '#');
    }
    if (next == Next::kNotMine) {
      EXPECT_EQ(out, "");
      return std::nullopt;
    }
    if (next == Next::kParked) {
      EXPECT_EQ(out, "");
      for (int i = 0; i < 100 && !waiter.ready; ++i) rig_.Advance(std::chrono::milliseconds(100));
      EXPECT_TRUE(waiter.ready);
      handler_.Finish(reply, waiter, Turn(), out);
    }
    return Split(out);
  }
  Answer Mine(Ask ask) {
    auto answer = Get(std::move(ask));
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(Answer{});
  }

  fakes::EngineRig rig_;
  IdService ids_{&rig_.engine, IdLimits{.max_list = 10'000, .max_count = 1'000'000}};
  RequestStats stats_;
  std::unique_ptr<Reader> reader_;
  IdsHandler handler_{
      ids_, rig_.clock,
      IdsHandler::Options{.leaf_cut_after_dot = true, .reject_encoded_slash = true}};
};

TEST_F(IdsHandlerTest, LeafsPathYieldsABareId) {
  for (const char* id : {"1002", "1003"}) {  // the first parks, the second comes from memory
    const Answer answer = Mine({"/api/segment/get/order"});
    EXPECT_EQ(answer.raw, std::string("HTTP/1.1 200 OK\r\nDate: D\r\nContent-Type: "
                                      "text/plain;charset=UTF-8\r\nContent-Length: 4\r\n"
                                      "Cache-Control: no-store\r\n\r\n") +
                              id);
  }
  EXPECT_EQ(Mine({"/api/segment/get/zero"}).body, "0");
}

TEST_F(IdsHandlerTest, TheConnectionFieldFollowsTheRequest) {
  EXPECT_FALSE(Mine({.target = "/api/segment/get/order"}).headers.contains("Connection"));
  EXPECT_EQ(Mine({.target = "/api/segment/get/order", .keep_alive = false}).headers["Connection"],
            "close");
  EXPECT_EQ(Mine({.target = "/api/segment/get/order", .minor = 0, .keep_alive = true})
                .headers["Connection"],
            "keep-alive");
}

TEST_F(IdsHandlerTest, AcceptChoosesTheTypeOfALeafId) {
  EXPECT_EQ(Mine({"/api/segment/get/order", "application/json"}).headers["Content-Type"],
            "application/json;charset=UTF-8");
  EXPECT_EQ(Mine({"/api/segment/get/order", "text/html,*/*;q=0.8"}).headers["Content-Type"],
            "text/html;charset=UTF-8");
  EXPECT_EQ(Mine({"/api/segment/get/order", "image/png"}).headers["Content-Type"],
            "text/plain;charset=UTF-8");
}

TEST_F(IdsHandlerTest, EveryMethodOfLeafTakesAnId) {
  int id = 1002;
  for (const Method method :
       {Method::kGet, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete}) {
    EXPECT_EQ(Mine({.target = "/api/segment/get/order", .method = method}).body,
              std::to_string(id++));
  }
  const Answer head = Mine({.target = "/api/segment/get/order", .method = Method::kHead});
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.headers.at("Content-Length"), "4");
  EXPECT_EQ(Mine({"/api/segment/get/order"}).body, std::to_string(id + 1)) << "HEAD took one";
}

TEST_F(IdsHandlerTest, WhatYieldsNoIdIsNotItsOwn) {
  for (const char* target :
       {"/", "/api/segment/get", "/api/segment/get/", "/api/segment/get//", "/api/segment/get/a/b",
        "/api/segment/get/a;v=1", "/api//segment/get/a", "/api/v1/ids/", "/api/v1/ids/order/",
        "/api/v1/ids/a/b", "/api/v1/ids", "/api/v1/ranges/"}) {
    EXPECT_FALSE(Get({target}).has_value()) << target;
  }
  for (const Method method : {Method::kOptions, Method::kTrace, Method::kConnect, Method::kOther}) {
    EXPECT_FALSE(Get({.target = "/api/segment/get/order", .method = method}).has_value());
  }
  EXPECT_EQ(Mine({"/api/segment/get/order"}).body, "1002") << "none was taken";
}

TEST_F(IdsHandlerTest, AKeyIsCutBehindItsLastDotAsLeafDoes) {
  EXPECT_EQ(Mine({"/api/segment/get/a.b"}).body, "500000");
  EXPECT_EQ(Mine({"/api/segment/get/a.b.c"}).body, "1");
  EXPECT_EQ(Mine({"/api/segment/get/a.b/"}).body, "2") << "with a slash the key is whole";
  EXPECT_EQ(Mine({"/api/segment/get/a"}).body, "500001");
  EXPECT_EQ(Mine({"/api/segment/get/a%2Eb"}).body, "500002");
  EXPECT_EQ(Mine({"/api/segment/get/a.json"}).headers["Content-Type"],
            "application/json;charset=UTF-8");
  EXPECT_EQ(Mine({"/api/segment/get/a.html"}).headers["Content-Type"], "text/html;charset=UTF-8");
  EXPECT_EQ(Mine({"/api/segment/get/a.b", "application/json"}).headers["Content-Type"],
            "application/json;charset=UTF-8");
  EXPECT_EQ(Mine({"/api/v1/ids/a.b"}).body, R"({"tag":"a.b","ids":["3"]})")
      << "only on Leaf's path";
}

TEST_F(IdsHandlerTest, WithoutTheSwitchesAKeyIsWholeAndDecodedOnce) {
  handler_.~IdsHandler();
  new (&handler_) IdsHandler(ids_, rig_.clock, {});
  EXPECT_EQ(Mine({"/api/segment/get/a.b"}).body, "1");
  EXPECT_EQ(Mine({"/api/segment/get/a%2Fb"}).body, "7");
  EXPECT_EQ(Mine({"/api/segment/get/a%252Fb"}).status, 500);
}

TEST_F(IdsHandlerTest, EscapesInAKey) {
  EXPECT_EQ(Mine({"/api/segment/get/caf%C3%A9"}).body, "1");
  EXPECT_EQ(Mine({"/api/v1/ids/a%2Fb"}).body, R"({"tag":"a/b","ids":["7"]})");
  for (const char* key : {"a%zz", "a%", "a%2", "a%00", "a%2Fb", "a%5Cb", "%3Cb%3Ex%3C%2fb%3E"}) {
    const Answer answer = Mine({std::string("/api/segment/get/") + key});
    EXPECT_EQ(answer.status, 400) << key;
    EXPECT_EQ(answer.body, "");
    EXPECT_EQ(answer.headers.at("Content-Length"), "0");
    EXPECT_FALSE(answer.headers.contains("Content-Type"));
    EXPECT_EQ(answer.headers.at("X-Leafd-Code"), "invalid_argument");
  }
  EXPECT_EQ(Mine({"/api/v1/ids/a%zz"}).status, 400);
}

TEST_F(IdsHandlerTest, AnUnknownKeyIsLeafsError) {
  const Answer answer = Mine({"/api/segment/get/no%20pe?x=1"});
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.headers.at("Content-Type"), "application/json;charset=UTF-8");
  EXPECT_EQ(answer.headers.at("X-Leafd-Code"), "not_found");
  const std::string expected = "{\"timestamp\":" + std::to_string(rig_.clock.wall_ms) +
                               ",\"status\":500,\"error\":\"Internal Server Error\",\"exception\":"
                               "\"com.sankuai.inf.leaf.server.exception.LeafServerException\","
                               "\"message\":\"Result{id=-2, status=EXCEPTION}\","
                               "\"path\":\"/api/segment/get/no%20pe\"}";
  EXPECT_EQ(answer.body, expected);
  EXPECT_EQ(Mine({"/api/segment/get/nope", "text/plain"}).status, 500);
  EXPECT_EQ(Mine({.target = "/api/segment/get/nope", .method = Method::kHead}).body, "");
}

TEST_F(IdsHandlerTest, ABrowserGetsLeafsErrorAsAPage) {
  const Answer answer = Mine({"/api/segment/get/nope", "text/html"});
  EXPECT_EQ(answer.headers.at("Content-Type"), "text/html;charset=UTF-8");
  EXPECT_NE(
      answer.body.find("There was an unexpected error (type=Internal Server Error, status=500)."),
      std::string::npos);
  EXPECT_NE(answer.body.find("Result{id=-2, status=EXCEPTION}"), std::string::npos);
}

TEST_F(IdsHandlerTest, IdsComeAsStringsInJson) {
  const Answer answer = Mine({"/api/v1/ids/order?n=3"});
  EXPECT_EQ(answer.body, R"({"tag":"order","ids":["1002","1003","1004"]})");
  EXPECT_EQ(answer.headers.at("Content-Type"), "application/json");
  EXPECT_EQ(answer.headers.at("Cache-Control"), "no-store");
  EXPECT_EQ(answer.headers.at("Content-Length"), std::to_string(answer.body.size()));
  EXPECT_EQ(Mine({"/api/v1/ids/order"}).body, R"({"tag":"order","ids":["1005"]})");
  EXPECT_EQ(Mine({.target = "/api/v1/ids/order", .method = Method::kPost}).body,
            R"({"tag":"order","ids":["1006"]})");
}

TEST_F(IdsHandlerTest, IdsComeAsLinesForTextPlain) {
  const Answer answer = Mine({"/api/v1/ids/order?n=2", "text/plain"});
  EXPECT_EQ(answer.body, "1002\n1003\n");
  EXPECT_EQ(answer.headers.at("Content-Type"), "text/plain;charset=UTF-8");
}

TEST_F(IdsHandlerTest, RangesNameTheirFirstIdAndTheirCount) {
  EXPECT_EQ(Mine({"/api/v1/ranges/order?n=300"}).body,
            R"({"tag":"order","ranges":[{"first":"1002","count":300}]})");
  const Answer large = Mine({"/api/v1/ranges/order?n=1000000"});
  EXPECT_EQ(large.status, 200);
  EXPECT_NE(large.body.find("{\"first\":\"1302\","), std::string::npos) << large.body;
}

TEST_F(IdsHandlerTest, NIsOneWholeNumberOfTheQuery) {
  for (const char* query :
       {"n=0", "n=", "n", "n=-1", "n=+1", "n=%2B1", "n=1.0", "n=0x1", "n=1a", "n=%201", "n=10001",
        "n=99999999999999999999", "n=1&n=1", "n=1&%6E=1", "n=%zz", "x=1&n=", "n=1e3"}) {
    const Answer answer = Mine({std::string("/api/v1/ids/order?") + query});
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_NE(answer.body.find("\"code\":\"invalid_argument\""), std::string::npos) << query;
  }
  EXPECT_EQ(Mine({"/api/v1/ranges/order?n=1000001"}).status, 400);
  int id = 1002;
  for (const char* query : {"", "x=1", "n=1", "x&n=1", "N=5", "%6E=1&y=z", "n=%31"}) {
    const std::string one = "{\"tag\":\"order\",\"ids\":[\"" + std::to_string(id++) + "\"]}";
    EXPECT_EQ(Mine({std::string("/api/v1/ids/order?") + query}).body, one) << query;
  }
  EXPECT_EQ(Mine({"/api/v1/ids/order?n=10000"}).status, 200);
}

TEST_F(IdsHandlerTest, BelowApiV1OnlyGetAndPostTakeIds) {
  for (const Method method : {Method::kHead, Method::kPut, Method::kPatch, Method::kDelete,
                              Method::kOptions, Method::kTrace}) {
    const Answer answer = Mine({.target = "/api/v1/ids/order", .method = method});
    EXPECT_EQ(answer.status, 405);
    EXPECT_EQ(answer.headers.at("Allow"), "GET, POST");
    EXPECT_EQ(answer.body.empty(), method == Method::kHead);
  }
  EXPECT_EQ(Mine({"/api/v1/ids/order"}).body, R"({"tag":"order","ids":["1002"]})")
      << "none was taken";
}

TEST_F(IdsHandlerTest, AProblemHasAllItsFields) {
  const Answer answer = Mine({"/api/v1/ids/nope"});
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.headers.at("Content-Type"), "application/problem+json");
  EXPECT_TRUE(answer.body.starts_with(
      R"({"type":"about:blank","title":"Not Found","status":404,"code":"not_found","detail":")"))
      << answer.body;
  EXPECT_FALSE(answer.headers.contains("Retry-After"));
}

TEST_F(IdsHandlerTest, AStoreThatIsAwayIsSaidSo) {
  rig_.store.GoDown("connection refused");
  const Answer problem = Mine({"/api/v1/ids/order"});
  EXPECT_EQ(problem.status, 503);
  EXPECT_EQ(problem.headers.at("Retry-After"), "1");
  EXPECT_NE(problem.body.find("\"code\":\"unavailable\""), std::string::npos);
  const Answer leaf = Mine({"/api/segment/get/order"});
  EXPECT_EQ(leaf.status, 500);
  EXPECT_EQ(leaf.headers.at("X-Leafd-Code"), "unavailable");
  EXPECT_NE(leaf.body.find("\"message\":\"Result{id=-3, status=EXCEPTION}\""), std::string::npos);
}

TEST_F(IdsHandlerTest, ATagThatCannotBeIsABadKey) {
  const std::string tag(129, 'x');
  EXPECT_EQ(Mine({"/api/v1/ids/" + tag}).status, 400);
  const Answer leaf = Mine({"/api/segment/get/" + tag});
  EXPECT_EQ(leaf.headers.at("X-Leafd-Code"), "invalid_argument");
  EXPECT_NE(leaf.body.find("Result{id=-2, status=EXCEPTION}"), std::string::npos);
  EXPECT_NE(Mine({"/api/segment/get/.b"}).body.find("Result{id=-2, status=EXCEPTION}"),
            std::string::npos);
}

TEST_F(IdsHandlerTest, ADisabledModeIsAnErrorThatSaysWhatToConfigure) {
  IdService off(nullptr, IdLimits{});
  handler_.~IdsHandler();
  new (&handler_) IdsHandler(off, rig_.clock, {});
  const Answer leaf = Mine({"/api/segment/get/order"});
  EXPECT_EQ(leaf.status, 500);
  EXPECT_EQ(leaf.headers.at("X-Leafd-Code"), "disabled");
  EXPECT_NE(leaf.body.find("\"message\":\"You should config leaf.segment.enable=true first\""),
            std::string::npos);
  EXPECT_EQ(Mine({"/api/v1/ids/order"}).status, 409);
}

TEST_F(IdsHandlerTest, ADisabledModeIsZeroOnlyWhenAskedFor) {
  IdService off(nullptr, IdLimits{});
  handler_.~IdsHandler();
  new (&handler_) IdsHandler(off, rig_.clock, {.disabled_returns_zero = true});
  EXPECT_EQ(Mine({"/api/segment/get/order"}).body, "0");
  EXPECT_EQ(Mine({"/api/v1/ids/order"}).status, 409);
}

TEST_F(IdsHandlerTest, RequestsAndIdsAreCounted) {
  Mine({"/api/segment/get/order"});
  Mine({"/api/v1/ids/order?n=5"});
  Mine({"/api/v1/ids/nope"});
  Mine({"/api/v1/ids/order?n=0"});
  EXPECT_EQ(stats_.requests(Protocol::kHttp, RequestStats::kOk), 2U);
  EXPECT_EQ(stats_.requests(Protocol::kHttp, static_cast<int>(Code::kNotFound)), 1U);
  EXPECT_EQ(stats_.requests(Protocol::kHttp, static_cast<int>(Code::kInvalidArgument)), 1U);
  EXPECT_EQ(stats_.ids(), 6U);
}

TEST_F(IdsHandlerTest, IdsFromMemoryCostNoAllocation) {
  Mine({"/api/v1/ids/order?n=1"});
  TestWaiter waiter(rig_.home);
  IdReply reply;
  std::string out;
  out.reserve(1 << 16);
  for (const Ask& ask : {Ask{"/api/segment/get/order"}, Ask{"/api/segment/get/order", "*/*"},
                         Ask{"/api/segment/get/order", "application/json"},
                         Ask{"/api/v1/ids/order?n=3"}, Ask{"/api/v1/ranges/order?n=5"}}) {
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
