#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "store/mysql/mysql_driver.h"
#include "tests/harness/mariadb.h"

namespace leaf {

/// What the tests of this store have in common: a server a program, a new table a test.
class MysqlTest : public testing::Test {
 protected:
  static constexpr Duration kPatience = std::chrono::seconds(10);

  static harness::MariaDb& Server() {
    static harness::MariaDb server;
    return server;
  }

  void SetUp() override { Server().MakeTable(); }
  void TearDown() override {
    Server().Exec(
        "SET GLOBAL sql_mode = DEFAULT, GLOBAL auto_increment_increment = 1, GLOBAL "
        "auto_increment_offset = 1, GLOBAL autocommit = 1, "
        "GLOBAL sql_safe_updates = 0, GLOBAL sql_select_limit = DEFAULT, GLOBAL max_statement_time "
        "= 0, GLOBAL wait_timeout = DEFAULT, "
        "GLOBAL tx_isolation = DEFAULT, GLOBAL read_only = 0, GLOBAL "
        "innodb_flush_log_at_trx_commit = 1");
  }

  static StoreOptions Options() { return Server().options(); }
  static Instant In(Duration after) { return SystemClock().Now() + after; }

  static std::unique_ptr<SegmentDriver> Make(const StoreOptions& options) {
    const Result<DriverFactory> factory = MakeMysqlFactory(options);
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
  static Result<StoreInfo> Info() { return Make(Options())->Open(In(kPatience)); }
  /// The message of an Open that must fail.
  static std::string Refusal(const StoreOptions& options) {
    const Result<StoreInfo> info = Make(options)->Open(In(kPatience));
    EXPECT_FALSE(info.ok());
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
  /// As BlockingStore does it: what was not sent because the session was lost goes to a new one,
  /// once.
  static Grant ReserveWithReopen(SegmentDriver& driver, std::string_view tag, std::int64_t count,
                                 Duration within = std::chrono::seconds(1)) {
    const Instant deadline = In(within);
    const Ask ask{7, tag, count, deadline};
    Grant grant;
    if (driver.connected()) driver.Reserve({&ask, 1}, {&grant, 1});
    if (driver.connected() || grant.outcome == Outcome::kGranted) return grant;
    if (grant.outcome == Outcome::kUnknown && grant.flight != 0) return grant;
    const Result<StoreInfo> info = driver.Open(deadline);
    if (!info.ok()) {
      grant.outcome = Outcome::kRefused;
      grant.error = info.error();
      return grant;
    }
    driver.Reserve({&ask, 1}, {&grant, 1});
    return grant;
  }

  static void Put(const std::string& tag, std::int64_t max_id, std::int64_t step) {
    Server().Exec("INSERT INTO leaf.leaf_alloc (biz_tag, max_id, step) VALUES ('" + tag + "', " +
                  std::to_string(max_id) + ", " + std::to_string(step) + ")");
  }
  static std::int64_t MaxId(const std::string& tag) {
    return std::stoll(
        Server().root().Value("SELECT max_id FROM leaf.leaf_alloc WHERE biz_tag = '" + tag + "'"));
  }

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
