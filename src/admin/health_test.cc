#include <gtest/gtest.h>

#include "admin/admin_fixture_testing.h"

namespace leaf {
namespace {

using HealthTest = AdminTest;
using http1::Response;

TEST_F(HealthTest, LivezIsAlways200) {
  rig_.store.GoDown("gone");
  draining_ = true;
  EXPECT_EQ(AdminGet("/livez").status, 200);
}

TEST_F(HealthTest, ReadyWhileTheStoreIsUp) {
  for (const char* path : {"/readyz", "/healthz", "/readyz?verbose", "/readyz?mode=segment"}) {
    const Response answer = AdminGet(path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.body, R"({"ready":true,"modes":{"segment":{"state":"ok","reason":""},)"
                           R"("snowflake":{"state":"disabled","reason":"switched off"}}})");
  }
}

TEST_F(HealthTest, NotReadyWithTheStoresReasonWhileItIsAway) {
  rig_.store.GoDown("connection refused");
  const Response answer = AdminGet("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(
      answer.body,
      R"({"ready":false,"modes":{"segment":{"state":"unavailable","reason":"connection refused"},)"
      R"("snowflake":{"state":"disabled","reason":"switched off"}}})");
}

TEST_F(HealthTest, ReadyWithoutTheStoreWhileATagInUseHoldsIds) {
  Take("order");
  rig_.store.GoDown("connection refused");
  const Response answer = AdminGet("/readyz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(
      answer.body.find(R"("reason":"serving the ids that are held in memory; connection refused")"),
      std::string::npos)
      << answer.body;
}

TEST_F(HealthTest, TellsNoDurabilityOfAStoreThatWasNeverReached) {
  rig_.store.status.identity.clear();
  rig_.store.GoDown("connection refused");
  EXPECT_NE(AdminGet("/api/v1/status").body.find(R"("durability":"")"), std::string::npos);
  EXPECT_EQ(AdminGet("/metrics").body.find("leafd_store_durability{level=\"volatile\"} 1"),
            std::string::npos);
}

TEST_F(HealthTest, NotReadyOnAStoreThatIsLessDurableThanRequired) {
  rig_.store.status.durability = Durability::kProcess;
  const Response answer = AdminGet("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("min_durability"), std::string::npos) << answer.body;
}

TEST_F(HealthTest, NotReadyWhileDraining) {
  draining_ = true;
  const Response answer = AdminGet("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.body.starts_with(R"({"ready":false,"reason":"draining",)")) << answer.body;
  EXPECT_EQ(AdminGet("/readyz?mode=segment").status, 503);
}

TEST_F(HealthTest, OneModeCanBeJudged) {
  EXPECT_EQ(AdminGet("/readyz?mode=snowflake").status, 503);
  for (const char* query : {"mode=other", "mode=", "mode=segment&mode=segment", "mode=%zz"}) {
    EXPECT_EQ(AdminGet(std::string("/readyz?") + query).status, 400) << query;
  }
}

TEST_F(HealthTest, NotReadyWithEveryModeDisabled) {
  Disable();
  const Response answer = AdminGet("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find(R"("segment":{"state":"disabled")"), std::string::npos) << answer.body;
}

TEST_F(HealthTest, StatusTellsVersionModesStoreTagsAndConnections) {
  Take("order");
  stats_.Connected(Protocol::kHttp, 3);
  EXPECT_EQ(
      AdminGet("/api/v1/status").body,
      R"({"version":"1.2.3","started":"2019-09-06T01:35:00.834Z","draining":false,"modes":{)"
      R"("segment":{"state":"ok","reason":""},"snowflake":{"state":"disabled","reason":"switched off"}},)"
      R"("store":{"kind":"map","up":true,"durability":"power","identity":"one","last_error":"","identity_changes":0,"warnings":[]},)"
      R"("tags":{"known":2,"active":1,"regressed":0,"list_complete":true,"list_error":""},"connections":{"http":3}})");
}

TEST_F(HealthTest, StatusOfADisabledModeHasNoStore) {
  Disable();
  EXPECT_NE(AdminGet("/api/v1/status").body.find(R"("store":null,"tags":{"known":0,)"),
            std::string::npos);
}

}  // namespace
}  // namespace leaf
