#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "store/postgres/postgres_driver.h"
#include "tests/harness/postgres.h"

namespace leaf {

/// What the tests of this store have in common: a server a program, a new table a test.
class PostgresTest : public testing::Test {
 protected:
  static constexpr Duration kPatience = std::chrono::seconds(20);

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
  static Instant In(Duration after) { return SystemClock().Now() + after; }

  static std::unique_ptr<SegmentDriver> Make(const StoreOptions& options) {
    const Result<DriverFactory> factory = MakePostgresFactory(options);
    EXPECT_TRUE(factory.ok()) << (factory.ok() ? "" : factory.error().message);
    return factory.ok() ? (*factory)() : nullptr;
  }
  static std::unique_ptr<SegmentDriver> Open(const StoreOptions& options) {
    auto driver = Make(options);
    const Result<StoreInfo> info = driver->Open(In(kPatience));
    EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.error().message);
    return driver;
  }
  static std::unique_ptr<SegmentDriver> Open() { return Open(Options()); }
  static StoreInfo Info(const StoreOptions& options) {
    Result<StoreInfo> info = Make(options)->Open(In(kPatience));
    EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.error().message);
    return info.ok() ? *info : StoreInfo{};
  }
  static StoreInfo Info() { return Info(Options()); }
  /// The message of an Open that must fail.
  static std::string Refusal(const StoreOptions& options, Duration within = kPatience) {
    const auto driver = Make(options);
    const Result<StoreInfo> info = driver->Open(In(within));
    EXPECT_FALSE(info.ok());
    EXPECT_FALSE(driver->connected());
    if (info.ok()) return "";
    EXPECT_EQ(info.error().code, Code::kUnavailable);
    return info.error().message;
  }
  static std::string Refusal() { return Refusal(Options()); }

  static Grant Reserve(SegmentDriver& driver, std::string_view tag, std::int64_t count,
                       Duration within = std::chrono::seconds(1)) {
    const Ask ask{7, tag, count, In(within)};
    Grant grant;
    driver.Reserve({&ask, 1}, {&grant, 1});
    return grant;
  }
  /// As BlockingStore does it: opens a session if there is none, and what was not sent because the
  /// session was lost goes to a new one, once.
  static Grant ReserveWithReopen(SegmentDriver& driver, std::string_view tag, std::int64_t count,
                                 Duration within = std::chrono::seconds(1)) {
    const Instant deadline = In(within);
    const Ask ask{7, tag, count, deadline};
    Grant grant;
    for (int i = 0; i < 2; ++i) {
      if (!driver.connected()) {
        const Result<StoreInfo> info = driver.Open(deadline);
        if (!info.ok()) {
          grant.outcome = Outcome::kRefused;
          grant.error = info.error();
          return grant;
        }
      }
      driver.Reserve({&ask, 1}, {&grant, 1});
      if (driver.connected() || grant.outcome != Outcome::kRefused) return grant;
    }
    return grant;
  }

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

  static bool Eventually(const std::function<bool()>& condition) {
    const Instant until = In(kPatience);
    while (SystemClock().Now() < until) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
};

inline std::string Describe(const Grant& grant) {
  return "outcome " + std::to_string(static_cast<int>(grant.outcome)) + " [" +
         std::to_string(grant.range.first) + "," + std::to_string(grant.range.last) + ") " +
         std::string(CodeName(grant.error.code)) + ": " + grant.error.message;
}

}  // namespace leaf
