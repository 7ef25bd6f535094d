#include "store/sqlite/sqlite_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "store/blocking_store.h"
#include "store/sqlite/fault_vfs.h"
#include "store/sqlite/handle.h"

namespace leaf {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

Instant Later() { return SystemClock().Now() + seconds(10); }

class SqliteDriverTest : public testing::Test {
 protected:
  SqliteDriverTest() : faults_(sqlite::InstallFaultVfs()) {
    faults_.Clear();
    std::string folder = testing::TempDir() + "leaf-sqlite-XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/leafd.db";
  }
  ~SqliteDriverTest() override {
    faults_.Clear();
    std::filesystem::remove_all(folder_);
  }

  DriverFactory Factory(const std::string& path = {}) const {
    StoreOptions options;
    options.path = path.empty() ? path_ : path;
    Result<DriverFactory> factory = MakeSqliteFactory(options);
    EXPECT_TRUE(factory.ok());
    return *factory;
  }
  static StoreInfo Open(SegmentDriver& driver) {
    Result<StoreInfo> info = driver.Open(Later());
    EXPECT_TRUE(info.ok()) << info.error().message;
    return info.ok() ? *info : StoreInfo();
  }
  static std::string OpenError(SegmentDriver& driver) {
    const Result<StoreInfo> info = driver.Open(Later());
    EXPECT_FALSE(info.ok());
    EXPECT_FALSE(driver.connected());
    if (info.ok()) return {};
    EXPECT_EQ(info.error().code, Code::kUnavailable);
    return info.error().message;
  }
  static Grant Reserve(SegmentDriver& driver, std::string_view tag = "order") {
    const Ask ask{1, tag, 10, Later()};
    Grant grant;
    driver.Reserve({&ask, 1}, {&grant, 1});
    return grant;
  }
  void Sql(const std::string& sql) const {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &raw), SQLITE_OK);
    const sqlite::Db db(raw);
    sqlite3_busy_timeout(raw, 10'000);
    ASSERT_EQ(sqlite::Exec(raw, sql.c_str()), SQLITE_OK) << sqlite3_errmsg(raw);
  }
  std::string Query(const std::string& sql) const {
    sqlite3* raw = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &raw), SQLITE_OK);
    const sqlite::Db db(raw);
    std::string text;
    EXPECT_EQ(sqlite::QueryText(raw, sql, text), SQLITE_ROW);
    return text;
  }
  // An open session with the row `order`.
  std::unique_ptr<SegmentDriver> Ready() {
    auto driver = Factory()();
    Open(*driver);
    EXPECT_TRUE(driver->Create("order", 1000, 1, Later()).ok());
    return driver;
  }

  sqlite::Faults& faults_;
  std::string folder_, path_;
};

TEST_F(SqliteDriverTest, MakesAFileForItsOwnerWithLeafsTable) {
  const auto driver = Ready();
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    struct stat info {};
    ASSERT_EQ(stat((path_ + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << suffix;
  }
  EXPECT_EQ(Query("SELECT group_concat(name) FROM pragma_table_info('leaf_alloc')"),
            "biz_tag,max_id,step,description,update_time");
  EXPECT_EQ(Query("PRAGMA journal_mode"), "wal");
}

TEST_F(SqliteDriverTest, SyncsEveryReservation) {
  const auto driver = Ready();
  const int before = faults_.syncs;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(Reserve(*driver).outcome, Outcome::kGranted);
  EXPECT_GE(faults_.syncs - before, 5);
}

TEST_F(SqliteDriverTest, SyncsABatchOnce) {
  const auto driver = Ready();
  ASSERT_GE(driver->batch_limit(), 50);
  std::vector<Ask> asks;
  for (Flight i = 1; i <= 50; ++i) asks.push_back({i, "order", 10, Later()});
  std::vector<Grant> grants(asks.size());
  const int before = faults_.syncs;
  driver->Reserve(asks, grants);
  EXPECT_EQ(faults_.syncs - before, 1);
  for (std::size_t i = 0; i < grants.size(); ++i) {
    EXPECT_EQ(grants[i].range.first, 1 + 10 * static_cast<std::int64_t>(i));
  }
}

TEST_F(SqliteDriverTest, ASecondServerIsRefusedAndToldWhoHoldsTheFile) {
  auto first = Ready();
  const auto second = Factory()();
  const std::string error = OpenError(*second);
  EXPECT_THAT(error, HasSubstr("in use by process " + std::to_string(getpid())));
  EXPECT_THAT(error, HasSubstr(path_));
  first.reset();
  Open(*second);
  EXPECT_EQ(Reserve(*second).outcome, Outcome::kGranted);
}

TEST_F(SqliteDriverTest, SaysWhenTheFolderIsMissingAndHeals) {
  const std::string folder = folder_ + "/later";
  const auto driver = Factory(folder + "/leafd.db")();
  EXPECT_THAT(OpenError(*driver), HasSubstr("mkdir -p " + folder));
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  Open(*driver);
}

TEST_F(SqliteDriverTest, SaysWhenTheFileIsNoDatabaseAndLeavesIt) {
  std::string text(2000, 'x');
  text += "precious";
  std::ofstream(path_) << text;
  const auto driver = Factory()();
  EXPECT_THAT(OpenError(*driver), HasSubstr("not an SQLite database"));
  std::ifstream in(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
}

TEST_F(SqliteDriverTest, SaysWhenThePathIsAFolder) {
  ASSERT_TRUE(std::filesystem::create_directory(path_));
  EXPECT_THAT(OpenError(*Factory()()), HasSubstr("not a regular file"));
}

TEST_F(SqliteDriverTest, SaysWhenTheFileIsDamagedAndHealsWhenItIsRestored) {
  auto driver = Ready();
  driver->Close();
  const std::string backup = path_ + ".backup";
  std::filesystem::copy_file(path_, backup);
  {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(4096);
    const std::string noise(static_cast<std::size_t>(std::filesystem::file_size(path_)) - 4096,
                            '\x5a');
    file << noise;
  }
  std::string error;
  if (const auto info = driver->Open(Later()); !info.ok()) {
    error = info.error().message;
  } else {
    error = Reserve(*driver).error.message;
    EXPECT_FALSE(driver->connected());
  }
  EXPECT_THAT(error, HasSubstr("damaged"));
  driver->Close();
  std::filesystem::copy_file(backup, path_, std::filesystem::copy_options::overwrite_existing);
  Open(*driver);
  EXPECT_EQ(Reserve(*driver).outcome, Outcome::kGranted);
}

TEST_F(SqliteDriverTest, RefusesATableOfWrongTypesByName) {
  struct Case {
    const char* ddl;
    const char* said;
  };
  for (const Case& c : {
           Case{"(biz_tag TEXT PRIMARY KEY, max_id TEXT, step INT, update_time TEXT)", "max_id"},
           Case{"(biz_tag TEXT PRIMARY KEY, max_id BIGINT, step REAL, update_time TEXT)", "step"},
           Case{"(biz_tag INTEGER PRIMARY KEY, max_id BIGINT, step INT, update_time TEXT)",
                "biz_tag"},
           Case{"(biz_tag TEXT, max_id BIGINT, step INT, update_time TEXT)", "primary key"},
           Case{"(biz_tag TEXT, max_id BIGINT, step INT, update_time TEXT, PRIMARY KEY (biz_tag, "
                "step))",
                "primary key"},
           Case{"(biz_tag TEXT PRIMARY KEY, max_id BIGINT, update_time TEXT)", "step is missing"},
       }) {
    SCOPED_TRACE(c.ddl);
    Sql("DROP TABLE IF EXISTS leaf_alloc");
    Sql(std::string("CREATE TABLE leaf_alloc ") + c.ddl);
    const std::string error = OpenError(*Factory()());
    EXPECT_THAT(error, HasSubstr("leaf_alloc"));
    EXPECT_THAT(error, HasSubstr(c.said));
  }
}

TEST_F(SqliteDriverTest, ServesLeafsOwnTable) {
  Sql("CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT "
      "NULL "
      "DEFAULT '1', step int(11) NOT NULL, description varchar(256) DEFAULT NULL, update_time "
      "timestamp "
      "NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))");
  Sql("INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('order', 1, 2000, "
      "'mine')");
  const auto driver = Factory()();
  Open(*driver);
  const Grant grant = Reserve(*driver);
  EXPECT_EQ(grant.range, (Range{1, 11}));
  EXPECT_EQ(grant.row_step, 2000);
  EXPECT_EQ(Query("SELECT description FROM leaf_alloc"), "mine");
}

TEST_F(SqliteDriverTest, ComparesBytesThoughTheColumnIgnoresCase) {
  Sql("CREATE TABLE leaf_alloc (biz_tag TEXT COLLATE NOCASE PRIMARY KEY, max_id BIGINT, step INT, "
      "update_time TEXT)");
  Sql("INSERT INTO leaf_alloc VALUES ('order', 1, 10, '')");
  const auto driver = Factory()();
  Open(*driver);
  EXPECT_EQ(Reserve(*driver, "ORDER").error.code, Code::kNotFound);
  EXPECT_EQ(Reserve(*driver, "order").outcome, Outcome::kGranted);
}

TEST_F(SqliteDriverTest, AFullDiskIsARefusalAndHeals) {
  const auto driver = Ready();
  ASSERT_EQ(Reserve(*driver).range.last, 11);
  faults_.write_error = SQLITE_FULL;
  const Grant grant = Reserve(*driver);
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_THAT(grant.error.message, HasSubstr("free space"));
  EXPECT_FALSE(driver->connected());
  EXPECT_THAT(OpenError(*driver), HasSubstr("free space"));
  faults_.Clear();
  Open(*driver);
  EXPECT_EQ(Reserve(*driver).range, (Range{11, 21}));
}

TEST_F(SqliteDriverTest, ACommitWhoseSyncFailedIsUnknownAndNeverGrantedAgain) {
  const auto driver = Ready();
  ASSERT_EQ(Reserve(*driver).range.last, 11);
  faults_.sync_error = SQLITE_IOERR_FSYNC;
  const Grant grant = Reserve(*driver);
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << grant.error.message;
  EXPECT_TRUE(grant.range.empty());
  EXPECT_FALSE(driver->connected());
  EXPECT_THAT(OpenError(*driver), HasSubstr("disk"));
  faults_.Clear();
  Open(*driver);
  const Grant next = Reserve(*driver);
  ASSERT_EQ(next.outcome, Outcome::kGranted);
  EXPECT_GE(next.range.first, 11);
}

TEST_F(SqliteDriverTest, AFailedSyncStopsEverySessionUntilTheLogIsEmptied) {
  const DriverFactory factory = Factory();
  const auto first = factory();
  const auto second = factory();
  Open(*first);
  Open(*second);
  ASSERT_TRUE(first->Create("order", 10, 1, Later()).ok());
  faults_.sync_error = SQLITE_IOERR_FSYNC;
  ASSERT_EQ(Reserve(*first).outcome, Outcome::kUnknown);
  faults_.Clear();
  EXPECT_EQ(Reserve(*second).outcome, Outcome::kRefused);
  EXPECT_FALSE(second->connected());
  Open(*second);
  EXPECT_EQ(Reserve(*second).outcome, Outcome::kGranted);
}

TEST_F(SqliteDriverTest, NoticesThatTheFileWasRemovedAndMakesNoNewOne) {
  const auto driver = Ready();
  std::filesystem::rename(path_, path_ + ".away");
  const Grant grant = Reserve(*driver);
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_THAT(grant.error.message, HasSubstr("removed or replaced"));
  EXPECT_THAT(OpenError(*driver), HasSubstr("put it back"));
  EXPECT_FALSE(std::filesystem::exists(path_));
  std::filesystem::rename(path_ + ".away", path_);
  Open(*driver);
  EXPECT_EQ(Reserve(*driver).range, (Range{1, 11})) << "the refused one was not done";
}

TEST_F(SqliteDriverTest, NoticesThatTheFileWasReplaced) {
  const auto driver = Ready();
  const std::string before = Open(*driver).identity;
  std::filesystem::copy_file(path_, path_ + ".copy");
  std::filesystem::rename(path_ + ".copy", path_);
  EXPECT_EQ(Reserve(*driver).outcome, Outcome::kRefused);
  EXPECT_FALSE(driver->connected());
  const StoreInfo after = Open(*driver);
  EXPECT_NE(after.identity, before);
  EXPECT_THAT(after.warnings, testing::Contains(HasSubstr("copy")));
}

TEST_F(SqliteDriverTest, NoticesThatTheLogWasRemoved) {
  const auto driver = Ready();
  std::filesystem::remove(path_ + "-wal");
  EXPECT_EQ(Reserve(*driver).outcome, Outcome::kRefused);
  Open(*driver);
  EXPECT_EQ(Reserve(*driver).range, (Range{1, 11}));
}

TEST_F(SqliteDriverTest, NeedsNoLogAtStart) {
  auto driver = Ready();
  ASSERT_EQ(Reserve(*driver).range.last, 11);
  driver.reset();
  std::filesystem::remove(path_ + "-wal");
  std::filesystem::remove(path_ + "-shm");
  const auto again = Factory()();
  Open(*again);
  EXPECT_EQ(Reserve(*again).range, (Range{11, 21}));
}

TEST_F(SqliteDriverTest, ACopyHasAnotherIdentityAndIsToldOnce) {
  auto driver = Ready();
  const std::string identity = Open(*driver).identity;
  EXPECT_THAT(identity, StartsWith("sqlite:"));
  driver.reset();
  const std::string copy = folder_ + "/copy.db";
  std::filesystem::copy_file(path_, copy);
  const auto other = Factory(copy)();
  const StoreInfo first = Open(*other);
  EXPECT_NE(first.identity, identity);
  EXPECT_THAT(first.warnings, testing::Contains(HasSubstr("copy")));
  const StoreInfo second = Open(*other);
  EXPECT_EQ(second.identity, first.identity);
  EXPECT_TRUE(second.warnings.empty());
}

TEST_F(SqliteDriverTest, RefusesPathsAndTablesThatItCannotName) {
  StoreOptions options;
  options.path = "relative.db";
  EXPECT_EQ(MakeSqliteFactory(options).error().code, Code::kInvalidArgument);
  options.path = path_;
  options.table = "a\"; DROP TABLE x; --";
  EXPECT_EQ(MakeSqliteFactory(options).error().code, Code::kInvalidArgument);
}

TEST_F(SqliteDriverTest, BehindBlockingStoreItComesBackByItself) {
  Ready()->Close();
  StoreOptions options;
  options.path = path_;
  BlockingStore store(BlockingOptions(options), Factory(), SystemClock());
  const auto await = [&](bool up) {
    const Instant until = Later();
    while (store.Status().up != up && SystemClock().Now() < until) {
      std::promise<void> answered;
      store.Raise("order", 1, 1, kNever, [&](Result<std::int64_t>) { answered.set_value(); });
      answered.get_future().wait();
    }
    return store.Status().up == up;
  };
  EXPECT_TRUE(await(true));
  faults_.write_error = SQLITE_FULL;
  EXPECT_TRUE(await(false));
  EXPECT_THAT(store.Status().last_error, HasSubstr("free space"));
  faults_.Clear();
  EXPECT_TRUE(await(true));
}

}  // namespace
}  // namespace leaf
