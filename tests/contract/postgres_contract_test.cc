#include "contract/store_contract.h"
#include "harness/postgres.h"
#include "store/postgres/postgres_driver.h"

namespace leaf::contract {
namespace {

/// One server for all tests of the program; each begins with a new table.
harness::Postgres& Server() {
  static harness::Postgres server;
  return server;
}

// The driver's own bound. What the suite cuts short it cuts by deadlines; what it gives time may
// take it on a busy machine.
constexpr Duration kPatience = std::chrono::seconds(20);

std::string Quoted(std::string_view text) {
  std::string quoted = "E'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

class OnPostgres final : public StoreUnderTest {
 public:
  OnPostgres() {
    Server().MakeTable();
    StoreOptions options = Server().options();
    options.timeout = kPatience;
    factory_ = *MakePostgresFactory(options);
  }
  ~OnPostgres() override { SetReadOnly(false); }

  std::unique_ptr<SegmentDriver> MakeDriver(int) override { return factory_(); }

  void Put(std::string_view tag, const RawRow& row) override {
    const std::string values = std::to_string(row.max_id) + ", " + std::to_string(row.step) + ", " +
                               Quoted(row.description);
    Server().Exec("INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES (" +
                  Quoted(tag) + ", " + values +
                  ") ON CONFLICT (biz_tag) DO UPDATE SET (max_id, step, description) = (" + values +
                  ")");
  }
  void PutOdd(std::string_view tag) override {
    Server().Exec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (" + Quoted(tag) +
                  ", 5, NULL)");
  }
  std::optional<RawRow> Get(std::string_view tag) override {
    const auto rows = Server().Exec(
        "SELECT max_id, step, description FROM leaf_alloc WHERE biz_tag = " + Quoted(tag));
    if (rows.empty()) return std::nullopt;
    return RawRow{std::stoll(rows[0][0].value_or("0")), std::stoll(rows[0][1].value_or("0")),
                  rows[0][2].value_or("")};
  }

  void Restart() override {
    Server().Kill9();
    Server().Start();
  }
  void SetReadOnly(bool on) override {
    Server().root().Exec(std::string("SET default_transaction_read_only = off; ALTER ROLE leaf SET "
                                     "default_transaction_read_only = ") +
                         (on ? "on" : "off"));
    // A setting of a role is read at login.
    Server().Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'leaf'");
  }

  std::shared_ptr<void> LockRow(std::string_view tag) override {
    std::shared_ptr<harness::PgSession> session = Server().Connect();
    session->Exec("BEGIN");
    session->Exec("SELECT * FROM leaf_alloc WHERE biz_tag = " + Quoted(tag) + " FOR UPDATE");
    return session;
  }

 private:
  DriverFactory factory_;
};

INSTANTIATE_TEST_SUITE_P(Postgres, StoreContract,
                         testing::Values(Param{"postgres",
                                               [] { return std::make_unique<OnPostgres>(); }}));

}  // namespace
}  // namespace leaf::contract
