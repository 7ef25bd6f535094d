#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "store/driver_testing.h"
#include "store/postgres/postgres_driver.h"
#include "tests/harness/postgres.h"

namespace leaf {

/// What the tests of this store have in common: a server a program, a new table a test.
class PostgresTest : public DriverTest<MakePostgresFactory, 20> {
 protected:
  static harness::Postgres& Server() {
    static harness::Postgres server;
    return server;
  }

  void SetUp() override { Server().MakeTable(); }

  static StoreOptions Options() { return Server().options(); }
  static StoreOptions Quick(Duration timeout) {
    StoreOptions options = Options();
    options.timeout = timeout;
    return options;
  }
  /// The same by way of another port: a relay, a pooler.
  static StoreOptions Through(int port) {
    StoreOptions options = Options();
    options.servers = "127.0.0.1:" + std::to_string(port);
    return options;
  }

  using DriverTest::Open;
  static std::unique_ptr<SegmentDriver> Open() { return Open(Options()); }
  static StoreInfo Info(const StoreOptions& options) {
    Result<StoreInfo> info = Make(options)->Open(In(kPatience));
    EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.error().message);
    return info.ok() ? *info : StoreInfo{};
  }
  static StoreInfo Info() { return Info(Options()); }
  using DriverTest::Refusal;
  static std::string Refusal() { return Refusal(Options()); }

  static void Put(const std::string& tag, std::int64_t max_id, std::int64_t step) {
    Server().Exec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('" + tag + "', " +
                  std::to_string(max_id) + ", " + std::to_string(step) + ")");
  }
  static std::int64_t MaxId(const std::string& tag) {
    return std::stoll(
        Server().root().Value("SELECT max_id FROM leaf_alloc WHERE biz_tag = '" + tag + "'"));
  }
  /// The row is locked until the session ends.
  static std::shared_ptr<harness::PgSession> Lock(const std::string& tag) {
    std::shared_ptr<harness::PgSession> session = Server().Connect();
    session->Exec("BEGIN; SELECT * FROM leaf_alloc WHERE biz_tag = '" + tag + "' FOR UPDATE");
    return session;
  }
  /// How many sessions of the store `condition` is true for.
  static int Sessions(const std::string& condition = "true") {
    return std::stoi(Server().root().Value(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'leaf' AND " + condition));
  }
  static constexpr const char* kWaitsForLock = "wait_event_type = 'Lock'";
  static constexpr const char* kWaitsForStandby = "wait_event = 'SyncRep'";
  static constexpr const char* kBusy = "state <> 'idle'";

  /// One session of the store waits so.
  static std::function<bool()> OneThat(const std::string& condition) {
    return [condition] { return Sessions(condition) == 1; };
  }
  /// What becomes of a reservation of `order` when `then` happens as soon as it has `come` so far.
  static Grant Meanwhile(SegmentDriver& driver, const std::function<bool()>& come,
                         const std::function<void()>& then) {
    auto call = std::async(std::launch::async,
                           [&driver] { return Reserve(driver, "order", 10, kPatience); });
    EXPECT_TRUE(Eventually(come));
    then();
    return call.get();
  }
};

}  // namespace leaf
