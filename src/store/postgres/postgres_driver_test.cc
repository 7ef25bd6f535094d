// What the store says of a server and a table, and what it makes of odd ones, against a real
// PostgreSQL.

#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include "store/postgres/postgres_testing.h"

namespace leaf {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class PostgresDriverTest : public PostgresTest {
 protected:
  void TearDown() override {
    // Whatever stands at the table's name or below it.
    for (const char* kind : {"VIEW", "MATERIALIZED VIEW", "FOREIGN TABLE", "TABLE"})
      Server().root().Try(std::string("DROP ") + kind + " IF EXISTS leaf_alloc CASCADE");
    Server().Exec("DROP TABLE IF EXISTS base");
  }
  /// The table as ALTER TABLE makes it of Leaf's.
  static void Alter(const std::string& change) {
    Server().MakeTable();
    Server().Exec("ALTER TABLE leaf_alloc " + change);
  }
  /// Runs the statement that `said` ends with.
  static void Obey(const std::string& said, const std::string& verb) {
    const std::size_t at = said.find(verb);
    ASSERT_NE(at, std::string::npos) << said;
    Server().Exec(said.substr(at));
  }
  /// A user without any privilege.
  static StoreOptions As(const std::string& user) {
    StoreOptions options = Options();
    Server().root().Try("DROP OWNED BY " + user + "; DROP ROLE " + user);
    Server().Exec("CREATE ROLE " + user + " LOGIN PASSWORD 'p'");
    options.user = user;
    options.password = "p";
    return options;
  }
};

// --- The table.

TEST_F(PostgresDriverTest, NamesTheStatementThatMakesAMissingTable) {
  Server().Exec("DROP TABLE leaf_alloc");
  const std::string said = Refusal();
  Obey(said, "CREATE TABLE");
  Server().Exec("ALTER TABLE leaf_alloc OWNER TO leaf");
  Put("order", 1, 10);
  EXPECT_EQ(Reserve(*Open(), "order", 5).range, (Range{1, 6}));
}

TEST_F(PostgresDriverTest, ServesATableInAnotherSchema) {
  StoreOptions options = Options();
  options.table = "Elsewhere.ids";
  EXPECT_THAT(Refusal(options), HasSubstr("CREATE TABLE \"Elsewhere\".\"ids\""));
  Server().Exec(
      "CREATE SCHEMA \"Elsewhere\" AUTHORIZATION leaf; CREATE TABLE \"Elsewhere\".ids (LIKE "
      "leaf_alloc INCLUDING ALL); ALTER TABLE \"Elsewhere\".ids OWNER TO leaf; INSERT INTO "
      "\"Elsewhere\".ids VALUES ('order', 5, 10)");
  EXPECT_EQ(Reserve(*Open(options), "order", 10).range, (Range{5, 15}));
  Server().Exec("DROP SCHEMA \"Elsewhere\" CASCADE");
}

TEST_F(PostgresDriverTest, RefusesWhatIsNotTheTableItself) {
  const std::vector<std::pair<std::string, std::string>> others = {
      {"CREATE VIEW leaf_alloc AS SELECT * FROM base", "view"},
      {"CREATE MATERIALIZED VIEW leaf_alloc AS SELECT * FROM base", "no plain table"},
      {"CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL, step "
       "int) PARTITION BY HASH (biz_tag)",
       "partitioned"},
      {"CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER far FOREIGN DATA WRAPPER nowhere; "
       "CREATE FOREIGN TABLE leaf_alloc (biz_tag varchar(128), max_id bigint, step int) SERVER "
       "far",
       "foreign"}};
  Server().Exec("ALTER TABLE leaf_alloc RENAME TO base");
  for (const auto& [make, word] : others) {
    SCOPED_TRACE(make);
    Server().Exec(make);
    EXPECT_THAT(Refusal(), HasSubstr(word));
    for (const char* kind : {"VIEW", "MATERIALIZED VIEW", "FOREIGN TABLE", "TABLE"})
      Server().root().Try(std::string("DROP ") + kind + " leaf_alloc");
  }
  Server().Exec("DROP FOREIGN DATA WRAPPER nowhere CASCADE");
}

TEST_F(PostgresDriverTest, RowsOfTablesThatInheritAreNotItsOwn) {
  Put("order", 1, 10);
  Server().Exec(
      "CREATE TABLE base () INHERITS (leaf_alloc); INSERT INTO base (biz_tag, max_id, step) VALUES "
      "('order', 1000, 10), ('child', 5, 10)");
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  EXPECT_EQ(Reserve(*driver, "child", 10).error.code, Code::kNotFound);
  EXPECT_EQ(driver->List("", 10, In(kPatience))->size(), 1U);
  EXPECT_EQ(Server().root().Value("SELECT max_id FROM base WHERE biz_tag = 'order'"), "1000");
}

TEST_F(PostgresDriverTest, RefusesColumnsThatLoseIdsAndNamesTheRemedy) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"ALTER max_id TYPE int", "int4"},
      {"ALTER max_id TYPE numeric", "numeric"},
      {"ALTER max_id TYPE double precision", "float8"},
      {"ALTER step TYPE double precision", "float8"},
      {"ALTER step TYPE numeric", "numeric"},
      {"ALTER step TYPE text", "text"},
      {"ALTER max_id DROP DEFAULT, ALTER max_id TYPE text", "text"},
      {"ALTER biz_tag TYPE char(100)", "bpchar"}};
  for (const auto& [change, type] : bad) {
    SCOPED_TRACE(change);
    Alter(change);
    const std::string said = Refusal();
    EXPECT_THAT(said, HasSubstr(type));
    Obey(said, "ALTER TABLE");
    EXPECT_TRUE(Make(Options())->Open(In(kPatience)).ok()) << "the remedy works: " << said;
  }
  Server().MakeTable();
  Put("order", 500, 10);
  Server().Exec("ALTER TABLE leaf_alloc DROP step");
  const std::string no_step = Refusal();
  EXPECT_THAT(no_step, HasSubstr("no column step"));
  Obey(no_step, "ALTER TABLE");
  const Grant grant = Reserve(*Open(), "order", 10);
  EXPECT_EQ(grant.range, (Range{500, 510})) << Describe(grant);
  Alter("DROP max_id");
  const std::string no_max_id = Refusal();
  EXPECT_THAT(no_max_id, HasSubstr("above every id that was ever issued"));
  const std::string mend = no_max_id.substr(no_max_id.find("ALTER TABLE"));
  EXPECT_NE(Server().root().Try(mend), "") << "only the user knows that number: " << mend;
}

TEST_F(PostgresDriverTest, RefusesACollationThatTakesTwoNamesForOne) {
  Server().Exec(
      "CREATE COLLATION IF NOT EXISTS nocase (provider = icu, locale = 'und-u-ks-level2', "
      "deterministic = false)");
  Alter("ALTER biz_tag TYPE varchar(128) COLLATE nocase");
  const std::string said = Refusal();
  EXPECT_THAT(said, HasSubstr("nondeterministic"));
  Obey(said, "ALTER TABLE");
  EXPECT_TRUE(Make(Options())->Open(In(kPatience)).ok());
}

TEST_F(PostgresDriverTest, TakesOtherIntegerTypesOfStepAndTextNames) {
  for (const char* change : {"ALTER step TYPE bigint", "ALTER step TYPE smallint",
                             "ALTER biz_tag TYPE text", "ALTER update_time TYPE timestamptz"}) {
    Alter(change);
    Put("order", 1, 1000);
    const auto driver = Open();
    EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11})) << change;
    EXPECT_EQ((*driver->Find("order", In(kPatience)))->step, 1000) << change;
  }
}

TEST_F(PostgresDriverTest, RefusesATableWhereANameMayHaveSeveralRows) {
  const std::string no_key = "ALTER TABLE leaf_alloc DROP CONSTRAINT leaf_alloc_pkey; ";
  for (const char* key : {"", "ALTER TABLE leaf_alloc ADD PRIMARY KEY (biz_tag, max_id)",
                          "CREATE INDEX ON leaf_alloc (biz_tag)",
                          "CREATE UNIQUE INDEX ON leaf_alloc (biz_tag) WHERE max_id > 5",
                          "CREATE UNIQUE INDEX ON leaf_alloc (lower(biz_tag))"}) {
    SCOPED_TRACE(key);
    Server().MakeTable();
    Server().Exec(no_key + key);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("unique key on biz_tag"), HasSubstr("PRIMARY KEY")));
  }
  Server().MakeTable();
  Server().Exec(no_key + "CREATE UNIQUE INDEX ON leaf_alloc (biz_tag) INCLUDE (step)");
  EXPECT_TRUE(Make(Options())->Open(In(kPatience)).ok());
}

TEST_F(PostgresDriverTest, ATriggerThatPreventsTheUpdateGrantsNothing) {
  Put("order", 1, 10);
  Server().Exec(
      "CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; "
      "END $$; CREATE TRIGGER early BEFORE UPDATE ON leaf_alloc FOR EACH ROW EXECUTE FUNCTION "
      "keep()");
  const Grant grant = Reserve(*Open(), "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_EQ(MaxId("order"), 1);
}

TEST_F(PostgresDriverTest, ServesATableWithoutUpdateTimeAndDescription) {
  Alter("DROP update_time, DROP description");
  Put("order", 1, 10);
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  EXPECT_EQ((*driver->Find("order", In(kPatience)))->updated, "");
}

TEST_F(PostgresDriverTest, ARowWithoutStepIsListedAsStepZeroAndRefused) {
  Server().Exec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('odd', 3, NULL)");
  const auto driver = Open();
  const auto rows = driver->List("", 10, In(kPatience));
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].step, 0);
  const auto unreadable = *driver->Unreadable(10, In(kPatience));
  ASSERT_EQ(unreadable.size(), 1U);
  EXPECT_EQ(unreadable[0].tag, "odd");
  EXPECT_TRUE(unreadable[0].has_max_id && !unreadable[0].has_step);
  const Grant grant = Reserve(*driver, "odd", 1);
  EXPECT_EQ(grant.outcome, Outcome::kRefused);
  EXPECT_THAT(grant.error.message, HasSubstr("step NULL"));
}

TEST_F(PostgresDriverTest, RefusesATableThatForgets) {
  Alter("SET UNLOGGED");
  const std::string said = Refusal();
  EXPECT_THAT(said, HasSubstr("UNLOGGED"));
  Obey(said, "ALTER TABLE");
  Put("order", 1, 10);
  EXPECT_EQ(Reserve(*Open(), "order", 10).range, (Range{1, 11}));
}

// --- What changes while it runs.

TEST_F(PostgresDriverTest, ATableThatBecomesUnloggedIsNoticedBeforeTheNextReservationCounts) {
  Put("order", 1, 10);
  const auto driver = Open();
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().Exec("ALTER TABLE leaf_alloc SET UNLOGGED");
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_NE(grant.outcome, Outcome::kGranted) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_THAT(Refusal(), HasSubstr("UNLOGGED"));
  Server().Exec("ALTER TABLE leaf_alloc SET LOGGED");
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{21, 31})) << "it heals";
}

TEST_F(PostgresDriverTest, SettingsOfDurabilityAreToldAndAChangeIsNoticedByTheNextReservation) {
  Put("order", 1, 10);
  EXPECT_EQ(Info().durability, Durability::kPower);
  EXPECT_TRUE(Info().warnings.empty());
  for (const std::string setting : {"fsync", "full_page_writes"}) {
    SCOPED_TRACE(setting);
    const auto driver = Open();
    ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
    Server().Set(setting, "off");
    Grant grant;
    // The server hands a reload on to its sessions at its leisure; until then nothing has changed.
    EXPECT_TRUE(Eventually([&] {
      grant = Reserve(*driver, "order", 10);
      return !driver->connected();
    }));
    EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
    const Result<StoreInfo> info = driver->Open(In(kPatience));
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_EQ(info->durability, Durability::kProcess);
    EXPECT_THAT(info->warnings, Contains(HasSubstr(setting + " = off")));
    Server().Set(setting, "");
    EXPECT_TRUE(Eventually([] { return Info().durability == Durability::kPower; }));
  }
}

TEST_F(PostgresDriverTest, ARoleADatabaseOrAServerWithoutSynchronousCommitWeakensNoReservation) {
  Put("order", 1, 10);
  std::int64_t end = 1;
  for (const char* where : {"ROLE leaf", "DATABASE leaf", "SYSTEM"}) {
    SCOPED_TRACE(where);
    for (const char* value : {"off", "local", "remote_write", "on", "remote_apply"}) {
      Server().Exec(std::string("ALTER ") + where + " SET synchronous_commit = " + value);
      Server().Exec("SELECT pg_reload_conf()");
      const auto driver = Open();
      const Grant grant = Reserve(*driver, "order", 10);
      EXPECT_EQ(grant.range, (Range{end, end + 10})) << value << ": " << Describe(grant);
      end += 10;
      EXPECT_EQ(Info().durability, Durability::kPower);
    }
    Server().Exec(std::string("ALTER ") + where + " RESET synchronous_commit");
  }
  Server().Exec("SELECT pg_reload_conf()");
}

TEST_F(PostgresDriverTest, RefusesATableThatWentAway) {
  Put("order", 1, 10);
  const auto driver = Open();
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().Exec("DROP TABLE leaf_alloc");
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_EQ(grant.error.code, Code::kUnavailable);
  EXPECT_FALSE(driver->connected());
}

TEST_F(PostgresDriverTest, ASecondRowOfTheNameThatAppearsWhileItRunsGrantsNothing) {
  Put("order", 1, 10);
  const auto driver = Open(), other = Open();
  Server().Exec("ALTER TABLE leaf_alloc DROP CONSTRAINT leaf_alloc_pkey");
  Put("order", 1000, 10);
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_FALSE(other->Raise("order", 1, 10, In(kPatience)).ok());
  EXPECT_FALSE(other->connected());
  EXPECT_THAT(Refusal(), HasSubstr("unique key"));
}

TEST_F(PostgresDriverTest, AColumnThatIsChangedWhileItRunsGrantsNothingThatDoesNotFit) {
  Put("order", 2147483640, 10);
  const auto driver = Open();
  Server().Exec("ALTER TABLE leaf_alloc ALTER max_id TYPE int");
  const Grant grant = Reserve(*driver, "order", 100);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_EQ(MaxId("order"), 2147483640);
}

TEST_F(PostgresDriverTest, AColumnOfAnotherTypeThatFitsCostsOneSession) {
  Put("order", 1, 10);
  const auto driver = Open();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Reserve(*driver, "order", 10).range.first, 1 + 10 * i);
  Server().Exec("ALTER TABLE leaf_alloc ALTER step TYPE bigint");
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_NE(grant.outcome, Outcome::kGranted) << Describe(grant);
  EXPECT_FALSE(driver->connected()) << "or it would fail again and again";
  ASSERT_TRUE(driver->Open(In(kPatience)).ok());
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
}

// --- The server.

TEST_F(PostgresDriverTest, RefusesAReadOnlyServer) {
  Put("order", 1, 10);
  const auto driver = Open();
  Server().Exec("ALTER DATABASE leaf SET default_transaction_read_only = on");
  EXPECT_THAT(Refusal(), HasSubstr("default_transaction_read_only"));
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted) << "a session from before";
  Server().root().Exec("SET default_transaction_read_only = off");
  Server().root().Exec("ALTER DATABASE leaf RESET default_transaction_read_only");
}

TEST_F(PostgresDriverTest, AServerThatIsMadeReadOnlyWhileItRunsIsLeft) {
  Put("order", 1, 10);
  const auto driver = Open();
  Server().root().Exec("SET default_transaction_read_only = off");
  Server().Set("default_transaction_read_only", "on");
  Grant grant;
  EXPECT_TRUE(Eventually([&] {
    grant = Reserve(*driver, "order", 10);
    return grant.outcome != Outcome::kGranted;
  }));
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  const std::string said = Refusal();
  Server().root().Exec("ALTER SYSTEM SET default_transaction_read_only = off");
  EXPECT_THAT(said, HasSubstr("ALTER SYSTEM SET default_transaction_read_only = off"));
  Server().Set("default_transaction_read_only", "");
  EXPECT_TRUE(Eventually([&] { return driver->Open(In(kPatience)).ok(); })) << "it heals";
}

TEST_F(PostgresDriverTest, EveryIsolationLevelLetsNodesCompete) {
  for (const char* level :
       {"read uncommitted", "read committed", "repeatable read", "serializable"}) {
    SCOPED_TRACE(level);
    Server().MakeTable();
    Server().Exec(std::string("ALTER ROLE leaf SET default_transaction_isolation = '") + level +
                  "'");
    Put("order", 1, 1);
    std::vector<std::future<std::vector<Range>>> nodes;
    for (int n = 0; n < 4; ++n) {
      nodes.push_back(std::async(std::launch::async, [] {
        const auto driver = Open();
        std::vector<Range> got;
        while (got.size() < 25) {
          const Grant grant = Reserve(*driver, "order", 1, kPatience);
          // Where the rows that others move are errors, a node that always loses may be refused.
          EXPECT_NE(grant.outcome, Outcome::kUnknown) << Describe(grant);
          if (grant.outcome == Outcome::kGranted) got.push_back(grant.range);
          if (!driver->connected()) break;
        }
        return got;
      }));
    }
    std::vector<std::int64_t> all;
    for (auto& node : nodes) {
      for (const Range& range : node.get()) all.push_back(range.first);
    }
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 100U);
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(all[i], static_cast<std::int64_t>(i) + 1);
  }
  Server().Exec("ALTER ROLE leaf RESET default_transaction_isolation");
}

TEST_F(PostgresDriverTest, SettingsOfTheRoleDoNotReachAReservation) {
  Put("order", 1, 10);
  for (const char* setting :
       {"statement_timeout = '1ms'", "lock_timeout = '1ms'", "default_transaction_deferrable = on",
        "standard_conforming_strings = off", "client_encoding = 'LATIN1'", "DateStyle = 'German'",
        "search_path = public, pg_catalog", "enable_indexscan = off"}) {
    Server().Exec(std::string("ALTER ROLE leaf SET ") + setting);
    // Only reservations choose their own timeouts; the probe has what the role has.
    const Result<StoreInfo> info = Make(Options())->Open(In(kPatience));
    if (info.ok()) {
      const Grant grant = Reserve(*Open(), "order", 10);
      EXPECT_EQ(grant.outcome, Outcome::kGranted) << setting << ": " << Describe(grant);
    } else {
      EXPECT_THAT(info.error().message, HasSubstr("timeout")) << setting;
    }
    Server().Exec("ALTER ROLE leaf RESET ALL");
  }
}

// --- Privileges.

TEST_F(PostgresDriverTest, SelectAndUpdateOnTheTableAreEnoughToServe) {
  Put("order", 1, 10);
  const StoreOptions options = As("small");
  Server().Exec("GRANT SELECT, UPDATE ON leaf_alloc TO small");
  const auto driver = Open(options);
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  EXPECT_EQ(driver->List("", 10, In(kPatience))->size(), 1U);
  EXPECT_EQ(*driver->Raise("order", 50, 0, In(kPatience)), 50);
  EXPECT_TRUE(*driver->HandBack("order", {40, 50}, In(kPatience)));
  EXPECT_TRUE(driver->SetStep("order", 20, In(kPatience)).ok());
  const auto lacking = driver->LackingRights(In(kPatience));
  ASSERT_TRUE(lacking.ok()) << lacking.error().message;
  EXPECT_THAT(*lacking, testing::UnorderedElementsAre(HasSubstr("GRANT INSERT ON"),
                                                      HasSubstr("GRANT DELETE ON")));
  const Result<Row> made = driver->Create("new", 10, 1, In(kPatience));
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("permission denied"));
}

TEST_F(PostgresDriverTest, NamesTheGrantThatIsMissing) {
  StoreOptions options = As("reader");
  const std::string said = Refusal(options);
  EXPECT_THAT(said, HasSubstr("GRANT SELECT, UPDATE ON public.leaf_alloc TO \"reader\""));
  Server().Exec("GRANT SELECT ON leaf_alloc TO reader");
  EXPECT_THAT(Refusal(options), HasSubstr("GRANT SELECT, UPDATE ON"));
  Obey(said, "GRANT");
  EXPECT_TRUE(Make(options)->Open(In(kPatience)).ok());
  options.password = "wrong";
  EXPECT_THAT(Refusal(options), HasSubstr("password authentication failed"));
}

TEST_F(PostgresDriverTest, APrivilegeTakenAwayWhileItRunsIsARefusalThatEndsTheSession) {
  Put("order", 1, 10);
  const StoreOptions options = As("small");
  Server().Exec("GRANT SELECT, UPDATE ON leaf_alloc TO small");
  const auto driver = Open(options);
  Server().Exec("REVOKE UPDATE ON leaf_alloc FROM small");
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
}

// --- Values and names.

TEST_F(PostgresDriverTest, ComparesBytesWhateverTheColumnCompares) {
  for (const char* collation : {"\"C\"", "\"en-x-icu\"", "\"C.utf8\"", "\"default\""}) {
    SCOPED_TRACE(collation);
    Alter(std::string("ALTER biz_tag TYPE varchar(128) COLLATE ") + collation);
    Put("order", 1, 10);
    Put("caf\xc3\xa9", 1, 10);
    const auto driver = Open();
    for (const std::string& other :
         {std::string("ORDER"), std::string("order "), std::string("cafe\xcc\x81"),
          std::string("\xf0\x9f\x98\x80"), std::string("\xff\xfe"), std::string("order\0", 6),
          std::string()}) {
      const Grant grant = Reserve(*driver, other, 10);
      EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
      EXPECT_EQ(grant.error.code, Code::kNotFound) << Describe(grant);
      EXPECT_TRUE(driver->connected());
    }
    EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
    EXPECT_EQ(Reserve(*driver, "caf\xc3\xa9", 10).range, (Range{1, 11}));
  }
}

TEST_F(PostgresDriverTest, InADatabaseOfAnotherEncodingForeignNamesAreJustNotThere) {
  Server().Exec("DROP DATABASE IF EXISTS latin");
  Server().Exec(
      "CREATE DATABASE latin OWNER leaf ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE "
      "template0");
  StoreOptions options = Options();
  options.database = "latin";
  {
    harness::PgSession session("host=" + Server().folder() +
                               " port=" + std::to_string(Server().port()) +
                               " user=postgres dbname=latin client_encoding=UTF8");
    session.Exec(
        "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL, step "
        "int NOT NULL); ALTER TABLE leaf_alloc OWNER TO leaf; INSERT INTO leaf_alloc VALUES "
        "('caf\xc3\xa9', 1, 10)");
  }
  const auto driver = Open(options);
  EXPECT_EQ(Reserve(*driver, "caf\xc3\xa9", 10).range, (Range{1, 11}));
  EXPECT_EQ(driver->List("", 1, In(kPatience))->front().tag, "caf\xc3\xa9");
  EXPECT_EQ(Reserve(*driver, "\xe8\xae\xa2", 10).error.code, Code::kNotFound);
  EXPECT_FALSE(driver->Find("\xe8\xae\xa2", In(kPatience))->has_value());
  EXPECT_EQ(driver->Create("\xe8\xae\xa2", 10, 1, In(kPatience)).error().code, Code::kUnavailable);
  EXPECT_TRUE(driver->connected());
}

TEST_F(PostgresDriverTest, SaysWhyANameCannotBeCreated) {
  const auto driver = Open();
  ASSERT_TRUE(driver->Create("order", 10, 1, In(kPatience)).ok());
  ASSERT_TRUE(driver->Create("Order", 10, 1, In(kPatience)).ok()) << "another name";
  EXPECT_EQ(driver->Create("order", 10, 1, In(kPatience)).error().code, Code::kConflict);
  EXPECT_EQ(driver->Create(std::string("order\0", 6), 10, 1, In(kPatience)).error().code,
            Code::kUnavailable);
  EXPECT_EQ(driver->Create(std::string(200, 'x'), 10, 1, In(kPatience)).error().code,
            Code::kUnavailable)
      << "not cut";
  EXPECT_TRUE(driver->connected());
}

TEST_F(PostgresDriverTest, ConnectsByNameAddressAndSocket) {
  Put("order", 1, 10);
  const std::string port = std::to_string(Server().port());
  for (const std::string& servers : {"localhost:" + port, "127.0.0.1:" + port}) {
    StoreOptions options = Options();
    options.servers = servers;
    EXPECT_EQ(Reserve(*Open(options), "order", 10).outcome, Outcome::kGranted) << servers;
  }
  StoreOptions options = Options();
  options.servers = Server().folder();
  options.port = Server().port();
  options.parameters.clear();
  EXPECT_EQ(Reserve(*Open(options), "order", 10).outcome, Outcome::kGranted);
  options = Options();
  options.servers = "no-such-host.invalid:5432";
  EXPECT_THAT(Refusal(options), HasSubstr("no-such-host.invalid"));
  EXPECT_THAT(Refusal(Through(harness::FreePort())), HasSubstr("refused"));
}

TEST_F(PostgresDriverTest, ManyReservationsUseOneSession) {
  Put("order", 1, 1);
  const auto driver = Open();
  const std::string pid =
      "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE usename = 'leaf'";
  const std::string before = Server().root().Value(pid);
  for (int i = 0; i < 300; ++i)
    ASSERT_EQ(Reserve(*driver, "order", 1).range, (Range{1 + i, 2 + i}));
  EXPECT_EQ(Server().root().Value(pid), before);
}

}  // namespace
}  // namespace leaf
