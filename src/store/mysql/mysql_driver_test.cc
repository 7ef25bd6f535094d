// What the store says of a server and a table, and what it makes of odd ones, against a real
// MariaDB.

#include "store/mysql/mysql_testing.h"

namespace leaf {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;

class MysqlDriverTest : public MysqlTest {};

// --- The table.

TEST_F(MysqlDriverTest, NamesTheStatementThatMakesAMissingTable) {
  Server().Exec("DROP TABLE leaf.leaf_alloc");
  const std::string said = Refusal();
  const std::size_t at = said.find("CREATE TABLE");
  ASSERT_NE(at, std::string::npos) << said;
  Server().Exec(said.substr(at));
  Put("order", 1, 10);
  EXPECT_EQ(Reserve(*Open(), "order", 5).range, (Range{1, 6}));
}

TEST_F(MysqlDriverTest, NamesTheStatementOfATableInAMissingDatabase) {
  StoreOptions options = Options();
  options.user = "root";
  options.password = "";
  options.host = Server().socket();
  options.parameters.clear();
  options.table = "elsewhere.ids";
  EXPECT_THAT(Refusal(options), HasSubstr("CREATE TABLE `elsewhere`.`ids`"));
}

TEST_F(MysqlDriverTest, RefusesAnEngineThatForgetsByItsName) {
  for (const char* engine : {"MyISAM", "MEMORY", "Aria"}) {
    Server().MakeTable(std::string("ENGINE=") + engine);
    EXPECT_THAT(Refusal(), testing::AllOf(HasSubstr(engine), HasSubstr("ENGINE=InnoDB;")));
  }
}

TEST_F(MysqlDriverTest, StopsReservingInTheVeryNextStatementWhenTheEngineIsChanged) {
  Put("order", 1, 10);
  const auto driver = Open();
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().Exec("ALTER TABLE leaf.leaf_alloc ENGINE=MyISAM");
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("MyISAM"));
  EXPECT_EQ(MaxId("order"), 11);
  EXPECT_FALSE(driver->connected());
  EXPECT_THAT(Refusal(), HasSubstr("MyISAM"));
  Server().Exec("ALTER TABLE leaf.leaf_alloc ENGINE=InnoDB");
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{11, 21})) << "it heals";
}

TEST_F(MysqlDriverTest, RefusesColumnsThatLoseIdsAndNamesTheRemedy) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"max_id INT NOT NULL", "int"},
      {"max_id BIGINT UNSIGNED NOT NULL", "unsigned"},
      {"max_id DECIMAL(20) NOT NULL", "decimal"},
      {"max_id DOUBLE NOT NULL", "double"},
      {"max_id VARCHAR(30) NOT NULL", "varchar"},
      {"step VARCHAR(30) NOT NULL", "varchar"},
      {"step DOUBLE NOT NULL", "double"},
      {"biz_tag BINARY(100) NOT NULL", "binary"}};
  for (const auto& [column, type] : bad) {
    Server().MakeTable();
    Server().Exec("ALTER TABLE leaf.leaf_alloc MODIFY " + column);
    const std::string said = Refusal();
    EXPECT_THAT(said, HasSubstr(type)) << column;
    const std::size_t at = said.find("ALTER TABLE");
    ASSERT_NE(at, std::string::npos) << said;
    Server().Exec(said.substr(at));
    EXPECT_TRUE(Info().ok()) << "the remedy works: " << said;
  }
}

TEST_F(MysqlDriverTest, TakesOtherIntegerTypesOfStep) {
  for (const char* type : {"BIGINT", "MEDIUMINT", "INT UNSIGNED", "BIGINT UNSIGNED"}) {
    Server().MakeTable();
    Server().Exec(std::string("ALTER TABLE leaf.leaf_alloc MODIFY step ") + type);
    Put("order", 1, 1000);
    const auto driver = Open();
    EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11})) << type;
    EXPECT_EQ((*driver->Find("order", In(kPatience)))->step, 1000) << type;
  }
}

TEST_F(MysqlDriverTest, RefusesATableWhereANameMayHaveSeveralRows) {
  for (const char* key :
       {"DROP PRIMARY KEY", "DROP PRIMARY KEY, ADD PRIMARY KEY (biz_tag, step)",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (biz_tag(5))", "DROP PRIMARY KEY, ADD KEY (biz_tag)"}) {
    Server().MakeTable();
    Server().Exec(std::string("ALTER TABLE leaf.leaf_alloc ") + key);
    EXPECT_THAT(Refusal(), HasSubstr("unique key on biz_tag")) << key;
  }
  Server().MakeTable();
  Server().Exec(
      "ALTER TABLE leaf.leaf_alloc DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY, ADD "
      "UNIQUE KEY u (biz_tag)");
  EXPECT_TRUE(Info().ok());
}

TEST_F(MysqlDriverTest, RefusesAView) {
  Server().Exec(
      "RENAME TABLE leaf.leaf_alloc TO leaf.base; CREATE VIEW leaf.leaf_alloc AS SELECT * FROM "
      "leaf.base");
  EXPECT_THAT(Refusal(), HasSubstr("VIEW"));
  Server().Exec("DROP VIEW leaf.leaf_alloc; DROP TABLE leaf.base");
}

TEST_F(MysqlDriverTest, NoticesAColumnThatIsChangedWhileItRuns) {
  Put("order", 1, 10);
  const auto driver = Open();
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().Exec("ALTER TABLE leaf.leaf_alloc MODIFY max_id DOUBLE NOT NULL");
  Grant grant;
  // Looked at once a second; the values that were granted until then are exact all the same.
  EXPECT_TRUE(Eventually([&] {
    grant = Reserve(*driver, "order", 10);
    return grant.outcome != Outcome::kGranted;
  }));
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_THAT(grant.error.message, HasSubstr("double"));
  EXPECT_FALSE(driver->connected());
}

TEST_F(MysqlDriverTest, GivesUpAtOnceWhenTheTypeBecomesTooSmall) {
  Put("order", 2147483640, 10);
  const auto driver = Open();
  Server().Exec("ALTER TABLE leaf.leaf_alloc MODIFY max_id INT NOT NULL");
  const Grant grant = Reserve(*driver, "order", 100);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(MaxId("order"), 2147483640);
}

TEST_F(MysqlDriverTest, RefusesATableThatWentAway) {
  Put("order", 1, 10);
  const auto driver = Open();
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().Exec("DROP TABLE leaf.leaf_alloc");
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_EQ(grant.error.code, Code::kUnavailable);
  EXPECT_FALSE(driver->connected());
}

TEST_F(MysqlDriverTest, ServesATableInAnotherDatabase) {
  Server().Exec(
      "CREATE DATABASE IF NOT EXISTS `other-db`; DROP TABLE IF EXISTS `other-db`.ids; CREATE TABLE "
      "`other-db`.ids LIKE leaf.leaf_alloc; "
      "INSERT INTO `other-db`.ids VALUES ('order', 5, 10, NULL, NOW()); GRANT SELECT, UPDATE ON "
      "`other-db`.ids TO leaf@'%'");
  StoreOptions options = Options();
  options.table = "other-db.ids";
  EXPECT_EQ(Reserve(*Open(options), "order", 10).range, (Range{5, 15}));
}

TEST_F(MysqlDriverTest, ServesATableWithoutUpdateTimeAndDescription) {
  Server().Exec("ALTER TABLE leaf.leaf_alloc DROP update_time, DROP description");
  Put("order", 1, 10);
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  EXPECT_EQ((*driver->Find("order", In(kPatience)))->updated, "");
}

TEST_F(MysqlDriverTest, ListsARowWithoutStepAsStepZero) {
  Server().Exec(
      "ALTER TABLE leaf.leaf_alloc MODIFY step INT NULL; INSERT INTO leaf.leaf_alloc (biz_tag, "
      "max_id, step) VALUES ('odd', 3, NULL)");
  const auto driver = Open();
  const auto rows = driver->List("", 10, In(kPatience));
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].step, 0);
  const Grant grant = Reserve(*driver, "odd", 1);
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_THAT(grant.error.message, HasSubstr("step NULL"));
}

// --- Values.

TEST_F(MysqlDriverTest, GrantsARangeThatEndsAtZeroOrBeginsThere) {
  Put("zero", 0, 10);
  Put("minus", -10, 10);
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, "zero", 10).range, (Range{0, 10}));
  const Grant grant =
      Reserve(*driver, "minus", 10);  // its new end, 0, could be mistaken for "none"
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_EQ(MaxId("minus"), -10);
}

TEST_F(MysqlDriverTest, SettingsOfTheServerDoNotReachTheSession) {
  Server().Exec(
      "SET GLOBAL sql_mode = '', GLOBAL auto_increment_increment = 66, GLOBAL "
      "auto_increment_offset = 9527, GLOBAL autocommit = 0, "
      "GLOBAL sql_safe_updates = 1, GLOBAL sql_select_limit = 1, GLOBAL max_statement_time = 100");
  Put("order", 1, 10);
  Put("other", 1, 10);
  {
    const auto driver = Open();
    EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
    EXPECT_EQ(driver->List("", 10, In(kPatience))->size(), 2U);
    EXPECT_FALSE(driver->SetStep("order", 3'000'000'000, In(kPatience)).ok())
        << "a step is not cut to what its column holds";
    EXPECT_EQ((*driver->Find("order", In(kPatience)))->step, 10);
  }
  EXPECT_EQ(Reserve(*Open(), "order", 10).range, (Range{11, 21}));
  EXPECT_EQ(MaxId("order"), 21) << "committed";
}

// --- Names.

TEST_F(MysqlDriverTest, ComparesBytesWhateverTheColumnCompares) {
  for (const char* charset :
       {"latin1", "utf8mb3", "utf8mb4", "gbk", "ascii", "utf8mb4 COLLATE utf8mb4_bin"}) {
    SCOPED_TRACE(charset);
    Server().MakeTable(std::string("ENGINE=InnoDB DEFAULT CHARSET=") + charset);
    Put("order", 1, 10);
    const auto driver = Open();
    for (const std::string& other :
         {std::string("ORDER"), std::string("order  "), std::string("\xc3\xb3rder"),
          std::string("\xe8\xae\xa2\xe5\x8d\x95"), std::string("\xf0\x9f\x98\x80"),
          std::string("\xff\xfe"), std::string("order\0", 6)}) {
      const Grant grant = Reserve(*driver, other, 10);
      EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
      EXPECT_EQ(grant.error.code, Code::kNotFound) << Describe(grant);
      EXPECT_TRUE(driver->connected());
    }
    EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  }
}

TEST_F(MysqlDriverTest, ReadsNamesOfAnyCharacterSetAsUtf8) {
  Put("caf\xc3\xa9", 1, 10);
  Put("\xe2\x82\xac", 1, 10);
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, "caf\xc3\xa9", 10).range, (Range{1, 11}));
  const auto first = driver->List("", 1, In(kPatience));
  ASSERT_EQ(first->size(), 1U);
  const auto second = driver->List(first->front().tag, 1, In(kPatience));
  ASSERT_EQ(second->size(), 1U);
  EXPECT_THAT((std::vector<std::string>{first->front().tag, second->front().tag}),
              testing::UnorderedElementsAre("caf\xc3\xa9", "\xe2\x82\xac"));
  EXPECT_TRUE(driver->List(second->front().tag, 1, In(kPatience))->empty());
}

TEST_F(MysqlDriverTest, ServesNamesInAByteColumn) {
  Server().Exec("ALTER TABLE leaf.leaf_alloc MODIFY biz_tag VARBINARY(128) NOT NULL");
  const auto driver = Open();
  ASSERT_TRUE(driver->Create("order", 10, 1, In(kPatience)).ok());
  ASSERT_TRUE(driver->Create("ORDER", 10, 100, In(kPatience)).ok());
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  EXPECT_EQ(Reserve(*driver, "ORDER", 10).range, (Range{100, 110}));
}

TEST_F(MysqlDriverTest, SaysWhyANameCannotBeCreated) {
  const auto driver = Open();
  ASSERT_TRUE(driver->Create("order", 10, 1, In(kPatience)).ok());
  const Result<Row> twin = driver->Create("Order", 10, 1, In(kPatience));
  EXPECT_EQ(twin.error().code, Code::kConflict);
  EXPECT_THAT(twin.error().message, HasSubstr("collation"));
  EXPECT_EQ(driver->Create("\xe8\xae\xa2", 10, 1, In(kPatience)).error().code, Code::kUnavailable);
  EXPECT_EQ(driver->Create(std::string(200, 'x'), 10, 1, In(kPatience)).error().code,
            Code::kUnavailable)
      << "not cut";
  EXPECT_TRUE(driver->connected());
}

TEST_F(MysqlDriverTest, ATagThatExistsSaysNothingOfTheNextOne) {
  Put("order", 1, 10);
  const auto driver = Open();
  EXPECT_EQ(driver->Create("order", 10, 1, In(kPatience)).error().code, Code::kConflict);
  // What fails before it is sent leaves the server's last word as it is.
  const auto past = SystemClock().Now();
  EXPECT_EQ(driver->Create("new", 10, 1, past).error().code, Code::kUnavailable);
}

// --- The server.

TEST_F(MysqlDriverTest, TellsHowMuchACommitIsWorth) {
  EXPECT_EQ(Info()->durability, Durability::kPower);
  Server().Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  EXPECT_EQ(Info()->durability, Durability::kProcess);
  EXPECT_THAT(Info()->warnings, Contains(HasSubstr("innodb_flush_log_at_trx_commit = 2")));
  Server().Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
  EXPECT_EQ(Info()->durability, Durability::kVolatile) << "a killed server forgets";
  Server().Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
  EXPECT_EQ(Info()->durability, Durability::kPower);
}

TEST_F(MysqlDriverTest, NoticesALowerLevelWhileItRuns) {
  Put("order", 1, 10);
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  Server().Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << "the very next one: " << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(MaxId("order"), 11);
  EXPECT_EQ(driver->Open(In(kPatience))->durability, Durability::kProcess);
}

TEST_F(MysqlDriverTest, ServesOnWhenASettingChangesThatMakesNoDifference) {
  Put("order", 1, 10);
  const auto driver = Open();
  Server().Exec("SET GLOBAL sync_binlog = 7");  // there is no binary log
  EXPECT_TRUE(
      Eventually([&] { return Reserve(*driver, "order", 10).outcome == Outcome::kGranted; }));
  EXPECT_TRUE(driver->connected());
  Server().Exec("SET GLOBAL sync_binlog = 0");
}

TEST_F(MysqlDriverTest, NothingIsRaisedOrHandedBackOnAServerThatChanged) {
  Put("order", 100, 10);
  const auto driver = Open();
  ASSERT_TRUE(driver->Raise("order", 100, 0, In(kPatience)).ok());
  ASSERT_TRUE(*driver->HandBack("order", {90, 100}, In(kPatience)));
  Server().Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  EXPECT_FALSE(driver->Raise("order", 100, 0, In(kPatience)).ok());
  const Result<bool> handed = driver->HandBack("order", {80, 90}, In(kPatience));
  EXPECT_FALSE(handed.ok() && *handed);
  EXPECT_EQ(MaxId("order"), 90);
}

TEST_F(MysqlDriverTest, WarnsOfACollationThatMergesNames) {
  EXPECT_THAT(Info()->warnings, Contains(HasSubstr("latin1_swedish_ci")));
  Server().MakeTable("ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin");
  EXPECT_TRUE(Info()->warnings.empty());
}

TEST_F(MysqlDriverTest, SelectAndUpdateOnTheTableAreEnoughToServe) {
  Put("order", 1, 10);
  Server().Exec(
      "CREATE OR REPLACE USER small@'%' IDENTIFIED BY 'p'; GRANT SELECT, UPDATE ON leaf.leaf_alloc "
      "TO small@'%'");
  StoreOptions options = Options();
  options.user = "small";
  options.password = "p";
  const auto driver = Open(options);
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  EXPECT_EQ(driver->List("", 10, In(kPatience))->size(), 1U);
  EXPECT_EQ(*driver->Raise("order", 50, 0, In(kPatience)), 50);
  EXPECT_TRUE(*driver->HandBack("order", {40, 50}, In(kPatience)));
  EXPECT_TRUE(driver->SetStep("order", 20, In(kPatience)).ok());
  const Result<Row> made = driver->Create("new", 10, 1, In(kPatience));
  EXPECT_THAT(made.error().message, HasSubstr("INSERT"));
}

TEST_F(MysqlDriverTest, NamesTheGrantThatIsMissing) {
  Server().Exec(
      "CREATE OR REPLACE USER none@'%' IDENTIFIED BY 'p'; CREATE OR REPLACE USER reader@'%' "
      "IDENTIFIED BY 'p'; "
      "GRANT SELECT ON leaf.leaf_alloc TO reader@'%'");
  StoreOptions options = Options();
  options.password = "p";
  options.user = "none";
  EXPECT_THAT(Refusal(options), HasSubstr("GRANT SELECT, UPDATE ON `leaf`.`leaf_alloc`"));
  options.user = "reader";
  EXPECT_THAT(Refusal(options),
              testing::AllOf(HasSubstr("UPDATE command denied"),
                             HasSubstr("GRANT SELECT, UPDATE ON `leaf`.`leaf_alloc`")));
  options.password = "wrong";
  EXPECT_THAT(Refusal(options), HasSubstr("Access denied"));
}

TEST_F(MysqlDriverTest, RefusesAReadOnlyServerEvenForAUserThatMayWrite) {
  StoreOptions options = Options();
  options.host = Server().socket();
  options.user = "root";
  options.password = "";
  options.parameters.clear();
  const auto driver = Open(options);
  Put("order", 1, 10);
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().Exec("SET GLOBAL read_only = 1");
  EXPECT_THAT(Refusal(options), HasSubstr("read_only"));
  EXPECT_TRUE(Eventually([&] {
    return Reserve(*driver, "order", 10).outcome != Outcome::kGranted;
  })) << "within a second or so";
  EXPECT_FALSE(driver->connected());
}

TEST_F(MysqlDriverTest, ConnectsByNameAddressAndSocket) {
  Put("order", 1, 10);
  for (const std::string& host :
       {std::string("localhost"), std::string("127.0.0.1"), Server().socket()}) {
    StoreOptions options = Options();
    options.host = host;
    EXPECT_EQ(Reserve(*Open(options), "order", 10).outcome, Outcome::kGranted) << host;
  }
  StoreOptions options = Options();
  options.host = "no-such-host.invalid";
  EXPECT_THAT(Refusal(options), HasSubstr("no-such-host.invalid"));
  options = Options();
  options.port = harness::FreePort();
  EXPECT_THAT(Refusal(options), AnyOf(HasSubstr("Can't connect"), HasSubstr("refused")));
}

}  // namespace
}  // namespace leaf
