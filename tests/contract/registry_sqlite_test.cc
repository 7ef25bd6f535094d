#include <gmock/gmock.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>

#include "contract/registry_contract.h"
#include "registry/sqlite/sqlite_registry.h"
#include "store/sqlite/handle.h"
#include "store/sqlite/sqlite_driver.h"

namespace leaf::contract {
namespace {

class Sqlite final : public RegistryUnderTest {
 public:
  Sqlite() {
    std::string folder = testing::TempDir() + "leaf-registry-XXXXXX";
    folder_ = mkdtemp(folder.data());
    store_.path = folder_ + "/leafd.db";
    store_.min_durability = Durability::kProcess;  // the folder may be in memory
    factory_ = *MakeSqliteRegistry(store_, RegistryOptions());
  }
  ~Sqlite() override {
    factory_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  Traits traits() const override { return {}; }
  std::unique_ptr<RegistryDriver> MakeSession(int) override { return factory_(); }
  const StoreOptions& store() const { return store_; }

  void Sql(const std::string& sql) const {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(store_.path.c_str(), &raw), SQLITE_OK);
    const sqlite::Db db(raw);
    sqlite3_busy_timeout(raw, 10'000);
    ASSERT_EQ(sqlite::Exec(raw, sql.c_str()), SQLITE_OK) << sqlite3_errmsg(raw);
  }

 private:
  std::string folder_;
  StoreOptions store_;
  RegistryFactory factory_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, RegistryContract,
                         testing::Values(RegistryParam{"sqlite",
                                                       [] { return std::make_unique<Sqlite>(); }}));

class SqliteRegistryTest : public testing::Test {
 protected:
  static Instant Soon() { return SystemClock().Now() + std::chrono::seconds(20); }
  std::unique_ptr<RegistryDriver> Open() {
    auto driver = file_.MakeSession(0);
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
  Sqlite file_;
};

TEST_F(SqliteRegistryTest, SharesItsFileWithTheTagsOfTheSameProcess) {
  const auto driver = Open();
  const auto tags = (*MakeSqliteFactory(file_.store()))();
  const auto info = tags->Open(Soon());
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_TRUE(tags->Create("order", 10, 1, Soon()).ok());
  EXPECT_TRUE(driver->Claim(Ask()).ok());
  const auto second = (*MakeSqliteRegistry(file_.store(), RegistryOptions()))();
  std::vector<std::string> warnings;
  const auto refused = second->Open(Soon(), warnings);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("in use by process"));
}

TEST_F(SqliteRegistryTest, ABrokenRowIsNamedAndHeals) {
  const auto driver = Open();
  for (const char* change :
       {"limit_ms = -5", "limit_ms = 'soon'", "owner = 'me'", "generation = -1",
        "generation = 9223372036854775807", "owner = x'00ff'"}) {
    SCOPED_TRACE(change);
    file_.Sql("INSERT INTO leafd_worker VALUES ('leaf', 7, 1, '', 'h:1', 5)");
    file_.Sql(std::string("UPDATE leafd_worker SET ") + change);
    const auto right = driver->Claim(Ask());
    ASSERT_FALSE(right.ok());
    EXPECT_EQ(right.error().code, Code::kUnavailable);
    EXPECT_THAT(right.error().message, testing::HasSubstr("the row of worker 7 is broken"));
    file_.Sql("DELETE FROM leafd_worker");
    EXPECT_TRUE(driver->Claim(Ask()).ok());
    file_.Sql("DELETE FROM leafd_worker");
  }
}

TEST_F(SqliteRegistryTest, ClustersAreApartByTheirBytes) {
  const auto driver = Open();
  file_.Sql("INSERT INTO leafd_worker VALUES ('LEAF', 0, 1, '', 'h:1', 9000000000000000)");
  const auto right = driver->Claim(Ask());
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right->worker, 0);
}

}  // namespace
}  // namespace leaf::contract
