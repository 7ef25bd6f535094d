// What MySQL 8 does otherwise than MariaDB, and servers that misbehave at a chosen point, against a
// server of our own script: Debian has no MySQL.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "store/mysql/mysql_driver.h"
#include "tests/harness/scripted_mysql.h"

namespace leaf {
namespace {

using harness::ScriptedMysql;
using std::chrono::milliseconds;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Login = ScriptedMysql::Login;
using Point = ScriptedMysql::Point;

constexpr Duration kPatience = std::chrono::seconds(10);

class MysqlHandshakeTest : public testing::Test {
 protected:
  ScriptedMysql& Start(ScriptedMysql::Script script) {
    server_ = std::make_unique<ScriptedMysql>(std::move(script));
    return *server_;
  }
  StoreOptions Options() const {
    StoreOptions options;
    options.host = "127.0.0.1";
    options.port = server_->port();
    options.database = "leaf";
    options.user = "leaf";
    options.password = "secret";
    return options;
  }
  static Instant In(Duration after) { return SystemClock().Now() + after; }
  static std::unique_ptr<SegmentDriver> Make(const StoreOptions& options) {
    return (*MakeMysqlFactory(options))();
  }
  std::unique_ptr<SegmentDriver> Open() {
    auto driver = Make(Options());
    const Result<StoreInfo> info = driver->Open(In(kPatience));
    EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.error().message);
    return driver;
  }
  std::string Refusal(const StoreOptions& options, Duration within = kPatience) {
    const Instant before = SystemClock().Now();
    const Result<StoreInfo> info = Make(options)->Open(before + within);
    EXPECT_LT(SystemClock().Now() - before, within + milliseconds(150))
        << "nobody holds us beyond the deadline";
    EXPECT_FALSE(info.ok());
    return info.ok() ? "" : info.error().message;
  }
  std::string Refusal(Duration within = kPatience) { return Refusal(Options(), within); }
  static Grant Reserve(SegmentDriver& driver, std::int64_t count,
                       Duration within = std::chrono::seconds(1)) {
    const Ask ask{7, "order", count, In(within)};
    Grant grant;
    driver.Reserve({&ask, 1}, {&grant, 1});
    return grant;
  }

  std::unique_ptr<ScriptedMysql> server_;
};

// --- Authentication.

TEST_F(MysqlHandshakeTest, LogsInWithACachedPasswordAndReserves) {
  Start({});
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, 10).range, (Range{1, 11}));
  EXPECT_EQ(Reserve(*driver, 5).range, (Range{11, 16}));
  EXPECT_THAT(server_->login_bytes(), Not(HasSubstr("secret")));
}

TEST_F(MysqlHandshakeTest, FollowsTheServerToItsPlugin) {
  ScriptedMysql::Script script;
  script.names_its_plugin = false;
  Start(script);
  EXPECT_EQ(Reserve(*Open(), 10).outcome, Outcome::kGranted);
}

// Where TLS is wished for but not to be had, libmariadb's plugin takes the wish for the deed.
TEST_F(MysqlHandshakeTest, SendsAnUncachedPasswordOnlyEncrypted) {
  for (const char* mode : {"disabled", "preferred"}) {
    SCOPED_TRACE(mode);
    ScriptedMysql::Script script;
    script.login = Login::kFull;
    Start(script);
    StoreOptions options = Options();
    options.parameters["ssl-mode"] = mode;
    const auto driver = Make(options);
    const Result<StoreInfo> info = driver->Open(In(kPatience));
    EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.error().message);
    EXPECT_EQ(Reserve(*driver, 10).outcome, Outcome::kGranted);
    EXPECT_THAT(server_->login_bytes(), Not(HasSubstr("secret")));
    options.password = "wrong";
    EXPECT_THAT(Refusal(options), HasSubstr("wrong password"));
    EXPECT_THAT(server_->login_bytes(), Not(HasSubstr("wrong")));
  }
}

TEST_F(MysqlHandshakeTest, TellsWhyItWasRefused) {
  ScriptedMysql::Script script;
  script.login = Login::kRefuse;
  Start(script);
  EXPECT_THAT(Refusal(), HasSubstr("Access denied"));
  EXPECT_EQ(server_->connections(), 1);
}

// In a process of its own: libmariadb keeps a plugin that it has once loaded.
TEST_F(MysqlHandshakeTest, NamesThePluginFileThatIsMissing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto attempt = [this] {
    Start({});
    StoreOptions options = Options();
    options.parameters["plugin-dir"] = "/nonexistent";
    std::cerr << Refusal(options) << std::endl;
    std::_Exit(0);
  };
  EXPECT_EXIT(attempt(), testing::ExitedWithCode(0),
              "caching_sha2_password.*libmariadb3.*plugin-dir");
}

TEST_F(MysqlHandshakeTest, LetsNoServerTalkItIntoAClearPassword) {
  for (const Login login : {Login::kClearText, Login::kOddPlugin}) {
    ScriptedMysql::Script script;
    script.login = login;
    Start(script);
    EXPECT_NE(Refusal(), "");
    EXPECT_THAT(server_->login_bytes(), Not(HasSubstr("secret")));
  }
}

TEST_F(MysqlHandshakeTest, SaysNothingToAServerWithoutTheTlsThatIsDemanded) {
  Start({});
  StoreOptions options = Options();
  options.parameters["ssl-mode"] = "required";
  EXPECT_THAT(Refusal(options), HasSubstr("TLS"));
  EXPECT_EQ(server_->login_bytes(), "");
  ScriptedMysql::Script script;
  script.drip = milliseconds(1);
  Start(script);
  options.port = server_->port();
  EXPECT_THAT(Refusal(options), HasSubstr("TLS")) << "the greeting comes in pieces";
  EXPECT_EQ(server_->login_bytes(), "");
}

// --- Deadlines.

TEST_F(MysqlHandshakeTest, AGreetingThatDripsDoesNotHoldTheCaller) {
  for (const char* mode : {"disabled", "required"}) {
    ScriptedMysql::Script script;
    script.drip = milliseconds(30);  // 3 s in all
    Start(script);
    StoreOptions options = Options();
    options.parameters["ssl-mode"] = mode;
    EXPECT_THAT(Refusal(options, milliseconds(300)), HasSubstr("no answer in time"));
  }
}

TEST_F(MysqlHandshakeTest, ASlowGreetingIsGoodEnoughInTime) {
  ScriptedMysql::Script script;
  script.drip = milliseconds(2);
  Start(script);
  EXPECT_EQ(Reserve(*Open(), 10).outcome, Outcome::kGranted);
}

TEST_F(MysqlHandshakeTest, SilenceAtAnyPointEndsByTheDeadline) {
  for (const Point point : {Point::kGreeting, Point::kLogin, Point::kProbe, Point::kPrepare}) {
    SCOPED_TRACE(static_cast<int>(point));
    ScriptedMysql::Script script;
    script.silent_at = point;
    Start(script);
    EXPECT_THAT(Refusal(milliseconds(200)), HasSubstr("no answer in time"));
  }
}

TEST_F(MysqlHandshakeTest, SilenceInTheMiddleOfTheTlsHandshakeEndsByTheDeadline) {
  ScriptedMysql::Script script;
  script.offers_tls = true;  // and then waits for a plain login
  script.silent_at = Point::kLogin;
  Start(script);
  StoreOptions options = Options();
  options.parameters["ssl-mode"] = "required";
  EXPECT_THAT(Refusal(options, milliseconds(300)), HasSubstr("no answer in time"));
}

TEST_F(MysqlHandshakeTest, AnEndOfTheConnectionAtAnyPointIsAnError) {
  for (const Point point : {Point::kGreeting, Point::kLogin, Point::kProbe, Point::kPrepare}) {
    SCOPED_TRACE(static_cast<int>(point));
    ScriptedMysql::Script script;
    script.closes_at = point;
    Start(script);
    EXPECT_NE(Refusal(), "");
  }
}

TEST_F(MysqlHandshakeTest, SilenceAfterTheStatementIsUnknown) {
  Start({});
  const auto driver = Open();
  server_->silent_at = Point::kExecute;
  const Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, 10, milliseconds(200));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(350));
  EXPECT_EQ(grant.outcome, Outcome::kUnknown);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(server_->executed(), 1);
  EXPECT_EQ(server_->max_id(), 11) << "it did happen";
}

TEST_F(MysqlHandshakeTest, AnEndAfterTheStatementIsUnknown) {
  ScriptedMysql::Script script;
  script.closes_at = Point::kExecute;
  Start(script);
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, 10).outcome, Outcome::kUnknown);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(server_->executed(), 1) << "it is not repeated";
}

// --- What errors mean.

TEST_F(MysqlHandshakeTest, AClearErrorIsARefusalAndAnUnclearOneIsNot) {
  Start({});
  for (const unsigned number : {1205U, 1213U, 3024U, 1690U, 1290U, 1836U, 1146U, 1142U}) {
    const auto driver = Open();
    server_->execute_error = number;
    const Grant grant = Reserve(*driver, 10);
    EXPECT_EQ(grant.outcome, Outcome::kRefused) << number;
    EXPECT_EQ(grant.error.code, Code::kUnavailable) << number;
    EXPECT_THAT(grant.error.message, HasSubstr(std::to_string(number)));
    const bool of_a_moment = number == 1205 || number == 1213 || number == 3024;
    EXPECT_EQ(driver->connected(), of_a_moment) << number;
    server_->execute_error = 0;
  }
  for (const unsigned number : {1053U, 1180U, 1317U, 1105U, 4031U}) {
    const auto driver = Open();
    server_->execute_error = number;
    EXPECT_EQ(Reserve(*driver, 10).outcome, Outcome::kUnknown) << number;
    EXPECT_FALSE(driver->connected()) << number;
    server_->execute_error = 0;
  }
}

TEST_F(MysqlHandshakeTest, ADeadlockIsTriedAgain) {
  Start({});
  const auto driver = Open();
  server_->execute_error = 1213;
  server_->execute_errors = 3;
  EXPECT_EQ(Reserve(*driver, 10).outcome, Outcome::kGranted);
  EXPECT_EQ(server_->executed(), 1) << "the others had no effect";
}

// --- The probe on MySQL.

TEST_F(MysqlHandshakeTest, KnowsTheServerByItsUuidAndItsSettings) {
  Start({});
  auto driver = Make(Options());
  Result<StoreInfo> info = driver->Open(In(kPatience));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->identity, "mysql:11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(info->durability, Durability::kPower);
  EXPECT_THAT(server_->texts(), Contains(HasSubstr("max_execution_time")));
  EXPECT_THAT(server_->texts(), Not(Contains(HasSubstr("max_statement_time"))));

  ScriptedMysql::Script script;
  script.sync_binlog = "0";
  Start(script);
  EXPECT_EQ(Make(Options())->Open(In(kPatience))->durability, Durability::kProcess);
  script.read_only = "ON";
  Start(script);
  EXPECT_THAT(Refusal(), HasSubstr("read_only"));
  script = {};
  script.engine = "MyISAM";
  Start(script);
  EXPECT_THAT(Refusal(), HasSubstr("MyISAM"));
  script = {};
  script.max_id_type = "bigint unsigned";
  Start(script);
  EXPECT_THAT(Refusal(), HasSubstr("unsigned"));
}

TEST_F(MysqlHandshakeTest, AGrantThatMakesNoSenseIsUnknown) {
  ScriptedMysql::Script script;
  script.max_id = -100;  // so that the new end is below the count
  Start(script);
  const auto driver = Open();
  const Grant grant = Reserve(*driver, 50);
  EXPECT_EQ(grant.outcome, Outcome::kUnknown);
  EXPECT_THAT(grant.error.message, HasSubstr("makes no sense"));
  EXPECT_FALSE(driver->connected());
}

}  // namespace
}  // namespace leaf
