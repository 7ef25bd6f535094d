#include <gmock/gmock.h>

#include "contract/registry_contract.h"
#include "harness/mariadb.h"
#include "registry/mysql/mysql_registry.h"

namespace leaf::contract {
namespace {

using testing::HasSubstr;

harness::MariaDb& Server() {
  static harness::MariaDb server;
  return server;
}

void MakeTable() {
  Server().Exec("DROP TABLE IF EXISTS leaf.leafd_worker");
  Server().Exec(WorkerTableDdl("`leaf`.`leafd_worker`"));
}

RegistryOptions Options() {
  RegistryOptions options;
  options.timeout = std::chrono::seconds(10);
  return options;
}

class Mysql final : public RegistryUnderTest {
 public:
  Mysql() {
    MakeTable();
    factory_ = *MakeMysqlRegistry(Server().options(), Options());
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

INSTANTIATE_TEST_SUITE_P(Mysql, RegistryContract,
                         testing::Values(RegistryParam{"mysql",
                                                       [] { return std::make_unique<Mysql>(); }}));

class MysqlRegistryTest : public testing::Test {
 protected:
  MysqlRegistryTest() { MakeTable(); }
  ~MysqlRegistryTest() override {
    Server().Exec("SET GLOBAL read_only = 0, GLOBAL innodb_flush_log_at_trx_commit = 1");
  }
  static Instant Soon() { return SystemClock().Now() + std::chrono::seconds(20); }
  static std::unique_ptr<RegistryDriver> Make(const StoreOptions& store) {
    return (*MakeMysqlRegistry(store, Options()))();
  }
  static std::string Refusal(const StoreOptions& store = Server().options()) {
    std::vector<std::string> warnings;
    const auto driver = Make(store);
    const Result<void> opened = driver->Open(Soon(), warnings);
    EXPECT_FALSE(opened.ok());
    EXPECT_FALSE(driver->connected());
    return opened.ok() ? "" : opened.error().message;
  }
  static std::unique_ptr<RegistryDriver> Open() {
    auto driver = Make(Server().options());
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

TEST_F(MysqlRegistryTest, AMissingTableIsToldWithItsDdl) {
  Server().Exec("DROP TABLE leaf.leafd_worker");
  const std::string refusal = Refusal();
  EXPECT_THAT(refusal, HasSubstr("leafctl store init"));
  EXPECT_THAT(refusal, HasSubstr(WorkerTableDdl("`leaf`.`leafd_worker`")));
}

TEST_F(MysqlRegistryTest, AnotherEngineKeyOrTypeIsToldAndHeals) {
  const std::pair<const char*, const char*> all[] = {
      {"ENGINE=MyISAM", "InnoDB"},
      {"DROP PRIMARY KEY", "primary key (cluster, worker)"},
      {"MODIFY limit_ms int NOT NULL", "limit_ms"},
      {"MODIFY generation bigint unsigned NOT NULL", "generation"},
      {"DROP COLUMN owner", "owner of `leaf`.`leafd_worker` is missing"}};
  for (const auto& [change, said] : all) {
    SCOPED_TRACE(change);
    MakeTable();
    Server().Exec(std::string("ALTER TABLE leaf.leafd_worker ") + change);
    EXPECT_THAT(Refusal(), HasSubstr(said));
  }
  MakeTable();
  Open();
}

TEST_F(MysqlRegistryTest, ReadOnlyAndTooWeakServersAreRefused) {
  Server().Exec("SET GLOBAL read_only = 1");
  EXPECT_THAT(Refusal(), HasSubstr("read-only"));
  Server().Exec("SET GLOBAL read_only = 0, GLOBAL innodb_flush_log_at_trx_commit = 2");
  EXPECT_THAT(Refusal(), HasSubstr("store.min_durability"));
}

TEST_F(MysqlRegistryTest, WhatIsChangedUnderItIsNoticedBeforeARightCounts) {
  for (const char* change : {"SET GLOBAL innodb_flush_log_at_trx_commit = 2",
                             "ALTER TABLE leaf.leafd_worker ENGINE=MyISAM"}) {
    SCOPED_TRACE(change);
    MakeTable();
    std::vector<std::string> warnings;
    const auto driver = Make(Server().options());
    ASSERT_TRUE(driver->Open(Soon(), warnings).ok());
    const auto right = driver->Claim(Ask());
    ASSERT_TRUE(right.ok()) << right.error().message;
    Server().Exec(change);
    const auto extended = driver->Extend(*right, right->limit_ms + 1000, 600'000, Soon());
    ASSERT_FALSE(extended.ok());
    EXPECT_THAT(extended.error().message, HasSubstr("examined anew"));
    EXPECT_FALSE(driver->connected());
    Server().Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
  }
}

TEST_F(MysqlRegistryTest, NeedsNoMoreThanSelectInsertAndUpdate) {
  Server().Exec("CREATE OR REPLACE USER poor@'127.0.0.1' IDENTIFIED BY 'secret'");
  Server().Exec("GRANT SELECT, UPDATE ON leaf.leafd_worker TO poor@'127.0.0.1'");
  StoreOptions store = Server().options();
  store.user = "poor";
  EXPECT_THAT(Refusal(store), HasSubstr("GRANT SELECT, INSERT, UPDATE ON `leaf`.`leafd_worker`"));
  Server().Exec("GRANT INSERT ON leaf.leafd_worker TO poor@'127.0.0.1'");
  std::vector<std::string> warnings;
  const auto driver = Make(store);
  const Result<void> opened = driver->Open(Soon(), warnings);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_TRUE(driver->Claim(Ask()).ok());
}

TEST_F(MysqlRegistryTest, ABrokenRowIsNamedAndHeals) {
  const auto driver = Open();
  for (const char* change :
       {"limit_ms = -5", "owner = 'me'", "generation = -1", "generation = 9223372036854775807"}) {
    SCOPED_TRACE(change);
    Server().Exec("INSERT INTO leaf.leafd_worker VALUES ('leaf', 7, 1, '', 'h:1', 5)");
    Server().Exec(std::string("UPDATE leaf.leafd_worker SET ") + change);
    const auto right = driver->Claim(Ask());
    ASSERT_FALSE(right.ok());
    EXPECT_THAT(right.error().message, HasSubstr("the row of worker 7 is broken"));
    Server().Exec("DELETE FROM leaf.leafd_worker");
    EXPECT_TRUE(driver->Claim(Ask()).ok());
    Server().Exec("DELETE FROM leaf.leafd_worker");
  }
}

TEST_F(MysqlRegistryTest, ComparesBytesThoughTheColumnIgnoresCase) {
  Server().Exec(
      "ALTER TABLE leaf.leafd_worker MODIFY cluster varchar(128) CHARACTER SET utf8mb4 COLLATE "
      "utf8mb4_general_ci NOT NULL");
  Server().Exec("INSERT INTO leaf.leafd_worker VALUES ('LEAF', 7, 1, '', 'h:1', 5)");
  const auto right = Open()->Claim(Ask());
  ASSERT_TRUE(right.ok()) << right.error().message;
  EXPECT_EQ(right->worker, 0) << "the other cluster's row is not ours to take";
}

TEST_F(MysqlRegistryTest, AConnectionThatTheServerClosedIsOpenedAgain) {
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
