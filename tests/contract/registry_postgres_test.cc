#include <gmock/gmock.h>

#include <future>

#include "contract/registry_contract.h"
#include "harness/postgres.h"
#include "registry/postgres/postgres_registry.h"

namespace leaf::contract {
namespace {

using testing::HasSubstr;

harness::Postgres& Server() {
  static harness::Postgres server;
  return server;
}

void MakeTable() {
  Server().Exec("DROP TABLE IF EXISTS leafd_worker; " + PostgresWorkerTableDdl("leafd_worker") +
                "ALTER TABLE leafd_worker OWNER TO leaf");
}

RegistryOptions Options() {
  RegistryOptions options;
  options.timeout = std::chrono::seconds(10);
  return options;
}

class OnPostgres final : public RegistryUnderTest {
 public:
  OnPostgres() {
    MakeTable();
    factory_ = *MakePostgresRegistry(Server().options(), Options());
  }
  Traits traits() const override {
    Traits traits;
    traits.has_clock = traits.restarts = true;
    return traits;
  }
  std::unique_ptr<RegistryDriver> MakeSession(int) override { return factory_(); }
  void Restart() override {
    Server().Kill9();
    Server().Start();
  }

 private:
  RegistryFactory factory_;
};

INSTANTIATE_TEST_SUITE_P(Postgres, RegistryContract,
                         testing::Values(RegistryParam{
                             "postgres", [] { return std::make_unique<OnPostgres>(); }}));

class PostgresRegistryTest : public testing::Test {
 protected:
  PostgresRegistryTest() { MakeTable(); }
  static Instant Soon() { return SystemClock().Now() + std::chrono::seconds(20); }
  static std::unique_ptr<RegistryDriver> Make(const StoreOptions& store) {
    return (*MakePostgresRegistry(store, Options()))();
  }
  static std::string Refusal(const StoreOptions& store = Server().options()) {
    std::vector<std::string> warnings;
    const auto driver = Make(store);
    const Result<void> opened = driver->Open(Soon(), warnings);
    EXPECT_FALSE(opened.ok());
    EXPECT_FALSE(driver->connected());
    return opened.ok() ? "" : opened.error().message;
  }
  static std::unique_ptr<RegistryDriver> Open(const StoreOptions& store = Server().options()) {
    auto driver = Make(store);
    std::vector<std::string> warnings;
    const Result<void> opened = driver->Open(Soon(), warnings);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    return driver;
  }
  static ClaimAsk Ask() {
    ClaimAsk ask;
    ask.owner = std::string(32, 'a');
    ask.identity = "h:1";
    ask.workers = 32;
    ask.layout = "41/10/12@1288834974657";
    ask.now_ms = SystemClock().WallMillis();
    ask.lease_ms = 600'000;
    ask.deadline = Soon();
    return ask;
  }
};

TEST_F(PostgresRegistryTest, AMissingTableIsToldWithItsDdl) {
  Server().Exec("DROP TABLE leafd_worker");
  const std::string refusal = Refusal();
  EXPECT_THAT(refusal, HasSubstr("leafctl store init"));
  EXPECT_THAT(refusal, HasSubstr(PostgresWorkerTableDdl("\"leafd_worker\"")));
}

TEST_F(PostgresRegistryTest, AnUnfitTableIsToldAndHeals) {
  const std::pair<const char*, const char*> all[] = {
      {"SET UNLOGGED", "SET LOGGED"},
      {"DROP CONSTRAINT leafd_worker_pkey", "primary key (cluster, worker)"},
      {"ALTER limit_ms TYPE int", "limit_ms"},
      {"ALTER generation TYPE numeric", "generation"},
      {"DROP COLUMN owner", "owner of \"leafd_worker\" is missing"}};
  for (const auto& [change, said] : all) {
    SCOPED_TRACE(change);
    MakeTable();
    Server().Exec(std::string("ALTER TABLE leafd_worker ") + change);
    EXPECT_THAT(Refusal(), HasSubstr(said));
  }
  MakeTable();
  Open();
}

TEST_F(PostgresRegistryTest, ATooWeakServerIsRefused) {
  Server().Set("fsync", "off");
  const auto weak = [] { return Server().root().Value("SHOW fsync") == "off"; };
  while (!weak()) {
  }
  EXPECT_THAT(Refusal(), HasSubstr("store.min_durability"));
  Server().Set("fsync", "");
}

TEST_F(PostgresRegistryTest, WhatIsChangedUnderItIsNoticedBeforeARightCounts) {
  const auto driver = Open();
  const auto right = driver->Claim(Ask());
  ASSERT_TRUE(right.ok()) << right.error().message;
  const auto extend = [&] {
    return driver->Extend(*right, right->limit_ms + 1000, 600'000, Soon());
  };
  Server().Exec("ALTER TABLE leafd_worker SET UNLOGGED");
  const auto unlogged = extend();
  ASSERT_FALSE(unlogged.ok());
  EXPECT_THAT(unlogged.error().message, HasSubstr("examined anew"));
  EXPECT_FALSE(driver->connected());
  EXPECT_THAT(Refusal(), HasSubstr("SET LOGGED"));
  Server().Exec("ALTER TABLE leafd_worker SET LOGGED");
  EXPECT_TRUE(extend().ok());
}

TEST_F(PostgresRegistryTest, AClaimWhoseWaitForAStandbyIsLetGoDoesNotCount) {
  Server().Set("synchronous_standby_names", "absent");
  while (Server().Connect()->Value("SHOW synchronous_standby_names") != "absent") {
  }
  const auto driver = Open();
  auto claim = std::async(std::launch::async, [&] { return driver->Claim(Ask()); });
  while (Server().root().Value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'leaf' AND "
                               "wait_event = 'SyncRep'") != "1") {
  }
  Server().Set("synchronous_standby_names", "");
  const auto right = claim.get();
  ASSERT_FALSE(right.ok());
  EXPECT_THAT(right.error().message, HasSubstr("examined anew"));
  const auto again = driver->Claim(Ask());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->generation, 2) << "what was written in vain is written anew";
}

TEST_F(PostgresRegistryTest, NeedsNoMoreThanSelectInsertAndUpdate) {
  Server().root().Try("CREATE ROLE poor LOGIN PASSWORD 'secret'");
  Server().Exec("GRANT SELECT, UPDATE ON leafd_worker TO poor");
  StoreOptions store = Server().options();
  store.user = "poor";
  EXPECT_THAT(Refusal(store), HasSubstr("GRANT SELECT, INSERT, UPDATE ON \"leafd_worker\""));
  Server().Exec("GRANT INSERT ON leafd_worker TO poor");
  EXPECT_TRUE(Open(store)->Claim(Ask()).ok());
}

TEST_F(PostgresRegistryTest, ABrokenRowIsNamedAndHeals) {
  const auto driver = Open();
  for (const char* change :
       {"limit_ms = -5", "owner = 'me'", "generation = -1", "generation = 9223372036854775807"}) {
    SCOPED_TRACE(change);
    Server().Exec("INSERT INTO leafd_worker VALUES ('leaf', 7, 1, '', 'h:1', 5)");
    Server().Exec(std::string("UPDATE leafd_worker SET ") + change);
    const auto right = driver->Claim(Ask());
    ASSERT_FALSE(right.ok());
    EXPECT_THAT(right.error().message, HasSubstr("the row of worker 7 is broken"));
    Server().Exec("DELETE FROM leafd_worker");
    EXPECT_TRUE(driver->Claim(Ask()).ok());
    Server().Exec("DELETE FROM leafd_worker");
  }
}

TEST_F(PostgresRegistryTest, AConnectionThatTheServerClosedIsOpenedAgain) {
  const auto driver = Open();
  const auto right = driver->Claim(Ask());
  ASSERT_TRUE(right.ok());
  Server().Kill9();
  Server().Start();
  const auto later = driver->Extend(*right, right->limit_ms + 1000, 600'000, Soon());
  ASSERT_TRUE(later.ok()) << later.error().message;
}

}  // namespace
}  // namespace leaf::contract
