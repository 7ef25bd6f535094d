#include "admin/admin_fixture_testing.h"
#include "tests/fakes/map_registry.h"

namespace leaf {
namespace {

using http1::Method;
using http1::Response;

/// An Admin over the real snowflake engine too.
class WorkersApiTest : public AdminTest {
 protected:
  WorkersApiTest() {
    SnowflakeOptions options;
    options.identity = "10.0.0.1:8080";
    snowflake_ = std::make_unique<SnowflakeEngine>(
        options,
        SnowflakeEngine::Ports{.registry = registry_, .clock = rig_.clock, .random = random_});
    EXPECT_TRUE(snowflake_->Load().ok());
    snowflake_->Tick(rig_.clock.now);
    admin_.reset();
    ids_ = std::make_unique<IdService>(&rig_.engine, IdLimits{}, snowflake_.get());
    AdminContext context = Context();
    context.registry = &registry_;
    Build(std::move(context));
  }

  static bool Has(const Response& answer, std::string_view text) {
    return answer.body.find(text) != std::string::npos;
  }

  fakes::MapRegistry registry_;
  fakes::CountingRandom random_;
  std::unique_ptr<SnowflakeEngine> snowflake_;
};

TEST_F(WorkersApiTest, TheListSaysWhoHoldsWhatUntilWhen) {
  registry_.records[5] = {5, 2, std::string(32, 'a'), "10.0.0.2:8080", 1567733700834, "odd"};
  const Response answer = AdminGet("/api/v1/workers");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(Has(answer, R"({"cluster":"orders","workers":[{"worker":0,"generation":1,)"))
      << answer.body;
  EXPECT_TRUE(Has(answer, R"("identity":"10.0.0.1:8080","limit":"2026-11-30T20:56:06.670Z",)"))
      << answer.body;
  EXPECT_TRUE(Has(answer, R"("held":true,"mine":true,"note":""})"));
  EXPECT_TRUE(Has(answer, R"("limit":"2019-09-06T01:35:00.834Z","limit_ms":1567733700834,)"
                          R"("held":false,"mine":false,"note":"odd"})"))
      << answer.body;
  EXPECT_TRUE(Has(answer, R"("registry":{"kind":"map","up":true,)"));
}

TEST_F(WorkersApiTest, ARegistryThatIsAwayIsToldAsUnavailable) {
  registry_.down = "gone";
  const Response answer = AdminGet("/api/v1/workers");
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(Has(answer, "gone"));
}

TEST_F(WorkersApiTest, RetireTakesAWorkerFromItsOwner) {
  const std::string owner = registry_.records[0].owner;
  const Response answer = Change(Method::kPost, "/api/v1/workers/0/retire", "{}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(registry_.records[0].owner, owner);
  EXPECT_EQ(Change(Method::kPost, "/api/v1/workers/9/retire", "{}").status, 404);
  for (const char* bad : {"x", "-1", "1e3", "99999999999999999999"}) {
    const Response refused =
        Change(Method::kPost, std::string("/api/v1/workers/") + bad + "/retire", "{}");
    EXPECT_EQ(refused.status, 400) << bad;
  }
}

TEST_F(WorkersApiTest, RetireIsGuardedAsEveryChangeIs) {
  EXPECT_EQ(AdminAsk({.method = Method::kPost, .target = "/api/v1/workers/0/retire"}).status, 403);
  EXPECT_EQ(AdminGet("/api/v1/workers/0/retire").status, 405);
  EXPECT_EQ(Change(Method::kPost, "/api/v1/workers").status, 405);
  EXPECT_EQ(AdminGet("/api/v1/workers/0").status, 404);
  EXPECT_EQ(registry_.records[0].generation, 1);
}

TEST_F(WorkersApiTest, StatusAndReadinessTellOfTheRight) {
  const Response status = AdminGet("/api/v1/status");
  EXPECT_TRUE(Has(status, R"("snowflake":{"serving":true,"reason":"","worker":0,)")) << status.body;
  EXPECT_TRUE(Has(status, R"("layout":"41/10/12@1288834974657")"));
  EXPECT_EQ(AdminGet("/readyz?mode=snowflake").status, 200);
  const Response metrics = AdminGet("/metrics");
  EXPECT_TRUE(Has(metrics, "\nleafd_snowflake_worker_id 0\n"));
  EXPECT_TRUE(Has(metrics, "\nleafd_ids_issued_total{mode=\"snowflake\"} 0\n")) << metrics.body;
  EXPECT_TRUE(Has(metrics, "\nleafd_registry_up{registry=\"map\"} 1\n"));
}

TEST_F(WorkersApiTest, AModeWithoutAWorkerIsNotReadyAndSegmentStillIs) {
  registry_.down = "gone";
  SnowflakeEngine engine(
      SnowflakeOptions{},
      SnowflakeEngine::Ports{.registry = registry_, .clock = rig_.clock, .random = random_});
  ASSERT_TRUE(engine.Load().ok());
  engine.Tick(rig_.clock.now);
  admin_.reset();
  ids_ = std::make_unique<IdService>(&rig_.engine, IdLimits{}, &engine);
  Build();
  const Response one = AdminGet("/readyz?mode=snowflake");
  EXPECT_EQ(one.status, 503);
  EXPECT_TRUE(Has(one, R"("snowflake":{"state":"unavailable","reason":"gone"})")) << one.body;
  EXPECT_EQ(AdminGet("/readyz").status, 200);
  admin_.reset();
}

TEST_F(WorkersApiTest, DecodingKnowsTheLayoutOfThisServer) {
  AdminContext context = Context();
  context.layout = CustomLayout("40/8/8", 1577836800000, 10).value();
  Build(std::move(context));
  const Response own = Main("/api/v1/decode/65793");
  EXPECT_TRUE(Has(own, R"("layout":"custom","time":"2020-01-01T00:00:00.010Z")")) << own.body;
  EXPECT_TRUE(Has(own, R"("worker":1,"sequence":1})"));
  EXPECT_TRUE(Has(Main("/api/v1/decode/1?layout=leaf"), R"("layout":"leaf")"));
  EXPECT_EQ(Main("/api/v1/decode/1?layout=other").status, 400);
}

}  // namespace
}  // namespace leaf
