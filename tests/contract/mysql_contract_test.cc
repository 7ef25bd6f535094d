#include "contract/store_contract.h"
#include "harness/mariadb.h"
#include "store/mysql/mysql_driver.h"

namespace leaf::contract {
namespace {

/// One server for all tests of the program; each begins with a new table.
harness::MariaDb& Server() {
  static harness::MariaDb server;
  return server;
}

// The driver's own bound. What the suite cuts short it cuts by deadlines; what it gives time may
// take it on a busy machine.
constexpr Duration kPatience = std::chrono::seconds(20);

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

class Mysql final : public StoreUnderTest {
 public:
  Mysql() {
    Server().MakeTable();
    Server().Exec("ALTER TABLE leaf.leaf_alloc MODIFY step int(11) NULL");
    StoreOptions options = Server().options();
    options.timeout = kPatience;
    factory_ = *MakeMysqlFactory(options);
  }
  ~Mysql() override { Server().Exec("SET GLOBAL read_only = 0"); }

  Traits traits() const override {
    Traits traits;
    traits.knows_row_step = false;
    return traits;
  }
  std::unique_ptr<SegmentDriver> MakeDriver(int) override { return factory_(); }

  void Put(std::string_view tag, const RawRow& row) override {
    Server().Exec("REPLACE INTO leaf.leaf_alloc (biz_tag, max_id, step, description) VALUES (" +
                  Quoted(tag) + ", " + std::to_string(row.max_id) + ", " +
                  std::to_string(row.step) + ", " + Quoted(row.description) + ")");
  }
  void PutOdd(std::string_view tag) override {
    Server().Exec("INSERT INTO leaf.leaf_alloc (biz_tag, max_id, step) VALUES (" + Quoted(tag) +
                  ", 5, NULL)");
  }
  std::optional<RawRow> Get(std::string_view tag) override {
    const auto rows = Server().Exec(
        "SELECT max_id, step, description FROM leaf.leaf_alloc WHERE biz_tag = " + Quoted(tag));
    if (rows.empty()) return std::nullopt;
    return RawRow{std::stoll(rows[0][0].value_or("0")), std::stoll(rows[0][1].value_or("0")),
                  rows[0][2].value_or("")};
  }

  void Restart() override {
    Server().Kill9();
    Server().Start();
  }
  void SetReadOnly(bool on) override {
    Server().Exec(std::string("SET GLOBAL read_only = ") + (on ? "1" : "0"));
  }

  std::shared_ptr<void> LockRow(std::string_view tag) override {
    std::shared_ptr<harness::SqlSession> session = Server().Connect();
    session->Exec("START TRANSACTION; SELECT * FROM leaf.leaf_alloc WHERE biz_tag = " +
                  Quoted(tag) + " FOR UPDATE");
    return session;
  }

 private:
  DriverFactory factory_;
};

INSTANTIATE_TEST_SUITE_P(Mysql, StoreContract,
                         testing::Values(Param{"mysql", [] { return std::make_unique<Mysql>(); }}));

}  // namespace
}  // namespace leaf::contract
