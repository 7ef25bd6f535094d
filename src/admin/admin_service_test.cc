#include "admin/admin_service.h"

#include <gtest/gtest.h>

#include "admin/admin_fixture_testing.h"

namespace leaf {
namespace {

using AdminServiceTest = AdminTest;
using http1::Response;

bool Has(const Response& answer, std::string_view text) {
  return answer.body.find(text) != std::string::npos;
}

TEST_F(AdminServiceTest, UnknownPathsAreProblems) {
  for (const char* path :
       {"/nothing", "/api/v1/tags/order/other", "/api/v1/tags/", "/api/v1/tags//drop",
        "/api/v1/tagsx", "/api/v1/tags/order/drop/x", "/api/v1/ids/order", "/decodeSnowflakeId"}) {
    const Response answer = AdminGet(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.content_type, "application/problem+json");
  }
  EXPECT_EQ(AdminGet("/api/v1/tags/%zz").status, 400);
}

TEST_F(AdminServiceTest, WhatComesLaterSaysSo) {
  for (const char* path : {"/", "/api/v1/config", "/api/v1/events"}) {
    const Response answer = AdminGet(path);
    EXPECT_EQ(answer.status, 404);
    EXPECT_TRUE(Has(answer, "not in this version")) << answer.body;
  }
}

TEST_F(AdminServiceTest, WrongMethodsAreToldTheRightOnes) {
  for (const char* path : {"/livez", "/readyz", "/healthz", "/metrics", "/api/v1/status",
                           "/api/v1/tags", "/cache", "/db"}) {
    const Response answer = Change(Method::kPost, path);
    EXPECT_EQ(answer.status, 405) << path;
    EXPECT_NE(answer.extra_headers.find("Allow: GET, HEAD\r\n"), std::string::npos);
  }
  EXPECT_NE(Change(Method::kPost, "/api/v1/tags/order")
                .extra_headers.find("Allow: GET, HEAD, PUT, DELETE\r\n"),
            std::string::npos);
  EXPECT_NE(AdminGet("/api/v1/tags/order/drop").extra_headers.find("Allow: POST\r\n"),
            std::string::npos);
  EXPECT_EQ(AdminAsk({.method = Method::kOther, .target = "/livez"}).status, 501);
}

TEST_F(AdminServiceTest, HeadIsAllowedWhereGetIs) {
  for (const char* path : {"/livez", "/readyz", "/metrics", "/api/v1/status", "/api/v1/tags",
                           "/api/v1/tags/order", "/cache", "/db"}) {
    EXPECT_EQ(AdminAsk({.method = Method::kHead, .target = path}).status, 200) << path;
  }
}

TEST_F(AdminServiceTest, ListsTheStoresRowsPageByPage) {
  rig_.store.Put("a", 7, 3);
  const Response first = AdminGet("/api/v1/tags?limit=2");
  EXPECT_EQ(first.status, 200);
  EXPECT_TRUE(
      Has(first, R"("tags":[{"tag":"a","max_id":"7","step":3,"state":"idle","remaining":"0")"))
      << first.body;
  EXPECT_TRUE(Has(first, R"({"tag":"order",)"));
  EXPECT_TRUE(Has(first, R"("next":"order"})"));
  const Response second = AdminGet("/api/v1/tags?limit=2&after=order");
  EXPECT_TRUE(Has(second, R"("tags":[{"tag":"user",)")) << second.body;
  EXPECT_TRUE(Has(second, R"("next":null})"));
  EXPECT_TRUE(Has(AdminGet("/api/v1/tags?limit=3"), R"("next":null})"))
      << "a full last page has no next";
}

TEST_F(AdminServiceTest, PagingIsStrict) {
  for (const char* query : {"limit=0", "limit=1001", "limit=-1", "limit=", "limit=1x",
                            "limit=1&limit=2", "after=a&after=b", "after=%zz"}) {
    EXPECT_EQ(AdminGet(std::string("/api/v1/tags?") + query).status, 400) << query;
  }
}

TEST_F(AdminServiceTest, ATagIsShownWithWhatThisServerHolds) {
  EXPECT_EQ(Take("order", 4), 1002);
  const Response answer = AdminGet("/api/v1/tags/order");
  EXPECT_TRUE(Has(
      answer, R"({"tag":"order","max_id":"2002","step":1000,"state":"active","remaining":"996",)"))
      << answer.body;
  EXPECT_TRUE(Has(
      answer,
      R"("segments":[{"first":"1006","last":"2002","next":"1006"}],"lease":1000,"mark":"2002")"))
      << answer.body;
}

TEST_F(AdminServiceTest, ATagOfTheTableThatTheEngineHasNotSeenIsIdle) {
  rig_.store.Put("new", 5, 10);
  EXPECT_TRUE(
      Has(AdminGet("/api/v1/tags/new"),
          R"({"tag":"new","max_id":"5","step":10,"state":"idle","remaining":"0","segments":[])"));
  EXPECT_EQ(AdminGet("/api/v1/tags/nope").status, 404);
}

TEST_F(AdminServiceTest, WhileTheStoreIsAwayAKnownTagIsStillShown) {
  Take("order");
  rig_.store.GoDown("gone");
  EXPECT_TRUE(Has(AdminGet("/api/v1/tags/order"), R"("remaining":"999")"));
  const Response unknown = AdminGet("/api/v1/tags/nope");
  EXPECT_EQ(unknown.status, 503);
  EXPECT_NE(unknown.extra_headers.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_EQ(AdminGet("/api/v1/tags").status, 503);
}

TEST_F(AdminServiceTest, PutCreatesThenChangesOnlyTheStep) {
  const Response created =
      Change(Method::kPut, "/api/v1/tags/new", R"({"step":500,"max_id":"100"})");
  EXPECT_EQ(created.status, 201) << created.body;
  EXPECT_TRUE(Has(created, R"({"tag":"new","max_id":"100","step":500,)")) << created.body;
  const Response changed = Change(Method::kPut, "/api/v1/tags/new", R"({"step":600})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(rig_.store.rows.at("new").step, 600);
  const Response conflict =
      Change(Method::kPut, "/api/v1/tags/new", R"({"step":600,"max_id":"7"})");
  EXPECT_EQ(conflict.status, 409);
  EXPECT_TRUE(Has(conflict, R"("code":"conflict")"));
}

TEST_F(AdminServiceTest, PutTakesPlainNamesOnlyUnlessTheRowIsThere) {
  const std::string body = R"({"step":600})";
  EXPECT_EQ(Change(Method::kPut, "/api/v1/tags/a%20b", body).status, 400);
  EXPECT_EQ(Change(Method::kPut, "/api/v1/tags/" + std::string(129, 'x'), body).status, 400);
  rig_.store.Put("a b", 1, 10);
  rig_.Advance(std::chrono::seconds(120));
  EXPECT_EQ(Change(Method::kPut, "/api/v1/tags/a%20b", body).status, 200);
}

TEST_F(AdminServiceTest, PutRefusesBadBodies) {
  for (const char* body : {"", "{}", "[]", R"({"step":0})", R"({"step":"1"})",
                           R"({"step":1,"other":1})", R"({"step":1,"max_id":1})"}) {
    EXPECT_EQ(Change(Method::kPut, "/api/v1/tags/new", body).status, 400) << body;
  }
  EXPECT_FALSE(rig_.store.rows.contains("new"));
}

TEST_F(AdminServiceTest, DeleteEndsATagAtOnce) {
  Take("order");
  EXPECT_EQ(Change(Method::kDelete, "/api/v1/tags/order").status, 200);
  EXPECT_FALSE(rig_.store.rows.contains("order"));
  EXPECT_EQ(AdminGet("/api/v1/tags/order").status, 404);
  EXPECT_EQ(Change(Method::kDelete, "/api/v1/tags/order").status, 404);
}

TEST_F(AdminServiceTest, DropDiscardsHeldIds) {
  Take("order");
  EXPECT_EQ(Change(Method::kPost, "/api/v1/tags/order/drop").body,
            R"({"tag":"order","discarded":"999"})");
  EXPECT_EQ(Take("order"), 2002);
  EXPECT_EQ(Change(Method::kPost, "/api/v1/tags/order/drop", R"({"x":1})").status, 400);
  EXPECT_EQ(Change(Method::kPost, "/api/v1/tags/nope/drop").status, 404);
}

TEST_F(AdminServiceTest, ResumeRestartsATagThatWentBack) {
  EXPECT_EQ(Change(Method::kPost, "/api/v1/tags/order/resume", R"({"skip":10})").status, 409)
      << "it is not stopped";
  Take("order");
  rig_.store.rows.at("order").max_id = 1;
  Change(Method::kPost, "/api/v1/tags/order/drop");
  struct Taker final : Waiter {
    explicit Taker(Executor& executor) : Waiter(executor) {}
    void Run() override {}
  } taker(rig_.home);
  Result<Ranges> out = Ranges{};
  if (!ids_->NextIds(*reader_, "order", taker, rig_.clock.now, out)) {
    rig_.Settle();
    out = taker.result;
  }
  ASSERT_FALSE(out.ok());
  ASSERT_EQ(out.error().code, Code::kRegressed) << out.error().message;
  EXPECT_TRUE(Has(AdminGet("/api/v1/tags/order"), R"("state":"regressed")"));
  EXPECT_EQ(Change(Method::kPost, "/api/v1/tags/order/resume", R"({"skip":-1})").status, 400);
  const Response resumed = Change(Method::kPost, "/api/v1/tags/order/resume", R"({"skip":10})");
  EXPECT_EQ(resumed.status, 200) << resumed.body;
  EXPECT_TRUE(Has(resumed, R"({"tag":"order","max_id":")")) << resumed.body;
  EXPECT_GE(Take("order"), 2002);
}

TEST_F(AdminServiceTest, ChangesNeedThisHostItsNameAndTheHeader) {
  const auto put = [&](Ask ask) {
    ask.method = Method::kPut;
    ask.target = "/api/v1/tags/new";
    ask.body = R"({"step":1})";
    return AdminAsk(std::move(ask)).status;
  };
  EXPECT_EQ(put({.target = "", .local = false, .admin_header = true}), 403);
  EXPECT_EQ(put({.target = "", .admin_header = false}), 403);
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil:8081",
                           "127.0.0.1:", "127.0.0.1:x", "[::1", "::1", "", "10.0.0.1:8081"}) {
    EXPECT_EQ(put({.target = "", .host = host, .admin_header = true}), 403) << host;
  }
  EXPECT_FALSE(rig_.store.rows.contains("new"));
  EXPECT_EQ(put({.target = "", .host = "127.0.0.1:8081", .admin_header = true}), 201);
  for (const char* host : {"LOCALHOST", "localhost:1", "[::1]", "[::1]:8081", "127.0.0.1"}) {
    EXPECT_EQ(put({.target = "", .host = host, .admin_header = true}), 200) << host;
  }
}

TEST_F(AdminServiceTest, EveryChangeIsGuarded) {
  const Ask forged[] = {
      {.method = Method::kPut, .target = "/api/v1/tags/order", .body = R"({"step":1})"},
      {.method = Method::kDelete, .target = "/api/v1/tags/order"},
      {.method = Method::kPost, .target = "/api/v1/tags/order/resume", .body = R"({"skip":1})"},
      {.method = Method::kPost, .target = "/api/v1/tags/order/drop"}};
  for (const Ask& ask : forged) {
    const Response answer = AdminAsk(ask);
    EXPECT_EQ(answer.status, 403);
    EXPECT_TRUE(Has(answer, R"("code":"permission_denied")"));
    EXPECT_TRUE(Has(answer, "X-Leafd-Admin: 1")) << "it says what to do";
  }
}

TEST_F(AdminServiceTest, AnAnswerThatComesAfterTheAdminHasEndedIsDropped) {
  fakes::FakeExchange exchange({.target = "/api/v1/tags"});
  EXPECT_TRUE(admin_->admin_service().Handle(exchange));
  admin_.reset();
  rig_.Settle();
  EXPECT_FALSE(exchange.landing()->response.has_value());
}

TEST_F(AdminServiceTest, WithSegmentModeOffTheTagsAreDisabled) {
  Disable();
  for (const char* path : {"/api/v1/tags", "/api/v1/tags/order", "/cache", "/db"}) {
    EXPECT_EQ(AdminGet(path).status, 409) << path;
  }
  EXPECT_EQ(Change(Method::kPut, "/api/v1/tags/order", R"({"step":1})").status, 409);
  EXPECT_EQ(Change(Method::kDelete, "/api/v1/tags/order").status, 409);
  EXPECT_EQ(Change(Method::kPost, "/api/v1/tags/order/drop").status, 409);
}

}  // namespace
}  // namespace leaf
