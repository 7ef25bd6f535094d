#include <sqlite3.h>
#include <sys/vfs.h>

#include <cstdlib>
#include <filesystem>

#include "contract/store_contract.h"
#include "store/sqlite/fault_vfs.h"
#include "store/sqlite/handle.h"
#include "store/sqlite/sqlite_driver.h"

namespace leaf::contract {
namespace {

constexpr unsigned long kTmpfs = 0x01021994;

class Sqlite final : public StoreUnderTest {
 public:
  Sqlite() : faults_(sqlite::InstallFaultVfs()) {
    faults_.Clear();
    std::string folder = testing::TempDir() + "leaf-contract-XXXXXX";
    folder_ = mkdtemp(folder.data());
    StoreOptions options;
    options.path = folder_ + "/leafd.db";
    path_ = options.path;
    factory_ = *MakeSqliteFactory(options);
    const auto driver = factory_();
    const auto opened = driver->Open(SystemClock().Now() + std::chrono::seconds(10));
    EXPECT_TRUE(opened.ok()) << opened.error().message;
  }
  ~Sqlite() override {
    faults_.Clear();
    factory_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  Traits traits() const override {
    Traits traits;
    struct statfs info {};
    statfs(folder_.c_str(), &info);
    if (static_cast<unsigned long>(info.f_type) == kTmpfs) traits.durability = Durability::kProcess;
    return traits;
  }

  // One process a file: two servers cannot share it, two sessions of one can.
  std::unique_ptr<SegmentDriver> MakeDriver(int) override { return factory_(); }

  void Put(std::string_view tag, const RawRow& row) override {
    const sqlite::Db db = Connect();
    sqlite::Statement put;
    ASSERT_EQ(put.Prepare(db.get(),
                          "INSERT OR REPLACE INTO leaf_alloc (biz_tag, max_id, step, "
                          "description) VALUES (?1, ?2, ?3, ?4)"),
              SQLITE_OK);
    put.Bind(1, tag);
    put.Bind(2, row.max_id);
    put.Bind(3, row.step);
    put.Bind(4, row.description);
    ASSERT_EQ(put.Step(), SQLITE_DONE) << sqlite3_errmsg(db.get());
  }

  std::optional<RawRow> Get(std::string_view tag) override {
    const sqlite::Db db = Connect();
    sqlite::Statement get;
    EXPECT_EQ(get.Prepare(db.get(),
                          "SELECT max_id, step, description FROM leaf_alloc WHERE biz_tag = ?1"),
              SQLITE_OK);
    get.Bind(1, tag);
    if (get.Step() != SQLITE_ROW) return std::nullopt;
    return RawRow{get.Int(0), get.Int(1), get.Text(2)};
  }

  void PutOdd(std::string_view tag) override {
    const sqlite::Db db = Connect();
    sqlite::Statement put;
    ASSERT_EQ(put.Prepare(db.get(),
                          "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (?1, 5, 'many')"),
              SQLITE_OK);
    put.Bind(1, tag);
    ASSERT_EQ(put.Step(), SQLITE_DONE);
  }

  // The store lives in the process: its sessions' end is its end. SqliteTest kills a process.
  void Restart() override {}

  void SetReadOnly(bool on) override { faults_.read_only = on; }

  std::shared_ptr<void> LockRow(std::string_view) override {
    auto db = std::make_shared<sqlite::Db>(Connect());
    EXPECT_EQ(sqlite::Exec(db->get(), "BEGIN IMMEDIATE"), SQLITE_OK);
    return db;
  }

 private:
  sqlite::Db Connect() const {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10'000);
    return sqlite::Db(db);
  }

  sqlite::Faults& faults_;
  std::string folder_, path_;
  DriverFactory factory_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContract,
                         testing::Values(Param{"sqlite",
                                               [] { return std::make_unique<Sqlite>(); }}));

}  // namespace
}  // namespace leaf::contract
