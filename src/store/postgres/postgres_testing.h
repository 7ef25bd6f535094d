#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "store/driver_testing.h"
#include "store/postgres/postgres_driver.h"
#include "tests/harness/postgres.h"

namespace leaf {

/// While it lives, commits wait for a standby that does not exist.
class AbsentStandby {
 public:
  explicit AbsentStandby(harness::Postgres& server)
      : server_(server), session_(server.Connect()), probe_(server.Connect()) {
    session_->Exec("CREATE TABLE IF NOT EXISTS canary (n int)");
    server.Set("synchronous_standby_names", "absent");
    // The server takes it up at its leisure. A commit that waits says that it has.
    while (!Waits()) {
    }
  }
  ~AbsentStandby() {
    GiveUp();
    commit_.wait();
  }
  /// The server's settings are as before from now on, and what waits is let go.
  void GiveUp() { server_.Set("synchronous_standby_names", ""); }
  AbsentStandby(const AbsentStandby&) = delete;
  AbsentStandby& operator=(const AbsentStandby&) = delete;

 private:
  bool Waits() {
    commit_ =
        std::async(std::launch::async, [this] { session_->Exec("INSERT INTO canary VALUES (1)"); });
    while (commit_.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      if (probe_->Value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'postgres' AND "
                        "wait_event = 'SyncRep'") == "1" &&
          // A session of the store that begins now must know the setting as well.
          server_.Connect()->Value("SHOW synchronous_standby_names") == "absent")
        return true;
    }
    return false;
  }

  harness::Postgres& server_;
  std::unique_ptr<harness::PgSession> session_, probe_;
  std::future<void> commit_;
};

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
  /// `what` for each session of the store that `condition` is true for: a signal of the server's.
  static void Each(const std::string& what, const std::string& condition = "true") {
    Server().Exec("SELECT " + what + "(pid) FROM pg_stat_activity WHERE usename = 'leaf' AND " +
                  condition);
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
