#pragma once

#include <memory>
#include <string>

#include "store/driver_testing.h"
#include "store/mysql/mysql_driver.h"
#include "tests/harness/mariadb.h"

namespace leaf {

/// What the tests of this store have in common: a server a program, a new table a test.
class MysqlTest : public DriverTest<MakeMysqlFactory, 10> {
 protected:
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

  using DriverTest::Open;
  static std::unique_ptr<SegmentDriver> Open() { return Open(Options()); }
  static Result<StoreInfo> Info() { return Make(Options())->Open(In(kPatience)); }
  using DriverTest::Refusal;
  static std::string Refusal() { return Refusal(Options()); }

  static void Put(const std::string& tag, std::int64_t max_id, std::int64_t step) {
    Server().Exec("INSERT INTO leaf.leaf_alloc (biz_tag, max_id, step) VALUES ('" + tag + "', " +
                  std::to_string(max_id) + ", " + std::to_string(step) + ")");
  }
  static std::int64_t MaxId(const std::string& tag) {
    return std::stoll(
        Server().root().Value("SELECT max_id FROM leaf.leaf_alloc WHERE biz_tag = '" + tag + "'"));
  }
};

}  // namespace leaf
