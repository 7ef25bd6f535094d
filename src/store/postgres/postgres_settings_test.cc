#include "store/postgres/postgres_settings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "store/postgres/postgres_errors.h"

namespace leaf {
namespace {

using Parameters = std::map<std::string, std::string>;

StoreOptions Options(Parameters parameters = {}) {
  StoreOptions options;
  options.kind = "postgres";
  options.servers = "db.example";
  options.database = "leaf";
  options.user = "u";
  options.parameters = std::move(parameters);
  return options;
}

PostgresSettings Parse(const StoreOptions& options) {
  const auto settings = ParsePostgresSettings(options);
  EXPECT_TRUE(settings.ok()) << (settings.ok() ? "" : settings.error().message);
  return settings.ok() ? *settings : PostgresSettings{};
}

std::string Refusal(const StoreOptions& options) {
  const auto settings = ParsePostgresSettings(options);
  EXPECT_FALSE(settings.ok());
  if (settings.ok()) return "";
  EXPECT_EQ(settings.error().code, Code::kInvalidArgument);
  return settings.error().message;
}

TEST(PostgresSettingsTest, TakesSeveralHostsInTheirOrder) {
  StoreOptions options = Options();
  options.servers = "a,b:6432,[::1]:7,[fe80::1]";
  const auto servers = Parse(options).servers;
  ASSERT_EQ(servers.size(), 4U);
  EXPECT_EQ(ToString(servers[0]), "a:5432");
  EXPECT_EQ(ToString(servers[1]), "b:6432");
  EXPECT_EQ(ToString(servers[2]), "[::1]:7");
  EXPECT_EQ(ToString(servers[3]), "[fe80::1]:5432");
  for (const char* bad : {"", "a,,b", "a:0", "a:70000", "a:x", "[::1"}) {
    options.servers = bad;
    EXPECT_NE(Refusal(options), "") << bad;
  }
}

TEST(PostgresSettingsTest, APathIsTheFolderOfAUnixSocket) {
  StoreOptions options = Options();
  options.servers = "/var/run/postgresql";
  options.port = 5433;
  const PostgresSettings settings = Parse(options);
  ASSERT_EQ(settings.servers.size(), 1U);
  EXPECT_EQ(settings.servers[0].host, "/var/run/postgresql");
  EXPECT_EQ(settings.servers[0].port, 5433);
}

TEST(PostgresSettingsTest, NeedsADatabaseAndAUser) {
  StoreOptions options = Options();
  options.database = "";
  EXPECT_NE(Refusal(options).find("database"), std::string::npos);
  options = Options();
  options.user = "";
  EXPECT_NE(Refusal(options).find("user"), std::string::npos);
}

TEST(PostgresSettingsTest, TakesTheSchemaFromTheTablesName) {
  StoreOptions options = Options();
  EXPECT_EQ(QuotedTable(Parse(options)), "\"leaf_alloc\"");
  options.table = "Ids.leaf_2";
  EXPECT_EQ(QuotedTable(Parse(options)), "\"Ids\".\"leaf_2\"");
  EXPECT_TRUE(LeafTableDdl(Parse(options)).starts_with("CREATE TABLE \"Ids\".\"leaf_2\" ("));
}

TEST(PostgresSettingsTest, AQuoteInANameEndsNoName) {
  EXPECT_EQ(QuotedName("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(QuotedName(""), "\"\"");
}

TEST(PostgresSettingsTest, VerifiesTheNameAsSoonAsThereIsAnAuthority) {
  EXPECT_EQ(Parse(Options()).sslmode, "prefer");
  EXPECT_EQ(Parse(Options({{"sslrootcert", "/ca.pem"}})).sslmode, "verify-full");
  for (const char* mode : {"disable", "prefer", "require"}) {
    EXPECT_EQ(Parse(Options({{"sslmode", mode}})).sslmode, mode);
    EXPECT_NE(Refusal(Options({{"sslmode", mode}, {"sslrootcert", "/ca.pem"}})).find("no effect"),
              std::string::npos)
        << mode;
  }
  for (const char* mode : {"verify-ca", "verify-full"}) {
    EXPECT_EQ(Parse(Options({{"sslmode", mode}, {"sslrootcert", "/ca.pem"}})).sslmode, mode);
    EXPECT_NE(Refusal(Options({{"sslmode", mode}})).find("needs sslrootcert"), std::string::npos);
  }
}

TEST(PostgresSettingsTest, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(Refusal(Options({{"ssl-mode", "require"}})).find("ssl-mode"), std::string::npos);
  EXPECT_NE(Refusal(Options({{"sslmode", "allow"}})).find("not allow"), std::string::npos);
  EXPECT_NE(Refusal(Options({{"options", "-c fsync=off"}})).find("options"), std::string::npos);
}

TEST(PostgresSettingsTest, AClientCertificateAndItsKeyBelongTogether) {
  EXPECT_NE(Refusal(Options({{"sslcert", "/c.pem"}})).find("together"), std::string::npos);
  EXPECT_NE(Refusal(Options({{"sslkey", "/c.key"}})).find("together"), std::string::npos);
  const PostgresSettings settings = Parse(Options({{"sslcert", "/c.pem"}, {"sslkey", "/c.key"}}));
  EXPECT_EQ(settings.sslcert, "/c.pem");
  EXPECT_EQ(settings.sslkey, "/c.key");
}

// --- Errors.

TEST(PostgresErrorsTest, OnlyAServersClearWordIsDefinite) {
  for (const char* state : {"55P03", "57014", "40001", "40P01", "23505", "22003", "25006", "42P01",
                            "42501", "53100", "P0001", "XX000"}) {
    EXPECT_TRUE(IsDefinite(state, "ERROR")) << state;
  }
  for (const char* state : {"08006", "08P01", "08007", "58030", "58000", "40003", "57P01", "57P02",
                            "57P05", "", "5703"}) {
    EXPECT_FALSE(IsDefinite(state, "ERROR")) << state;
  }
}

TEST(PostgresErrorsTest, TheEndOfASessionIsNeverDefinite) {
  for (const char* severity : {"FATAL", "PANIC", "", "WARNING"}) {
    for (const char* state : {"57P01", "55P03", "40001", "53300"})
      EXPECT_FALSE(IsDefinite(state, severity)) << severity << " " << state;
  }
}

TEST(PostgresErrorsTest, ALockIsNoMatterOfTheWholeStore) {
  for (const char* state : {"55P03", "57014", "40001", "40P01", "23505", "22003", "P0001", ""})
    EXPECT_FALSE(ConcernsStore(state)) << state;
  for (const char* state :
       {"25006", "53100", "57P03", "42P01", "3F000", "42703", "42501", "42804", "42809", "55000"}) {
    EXPECT_TRUE(ConcernsStore(state)) << state;
  }
}

TEST(PostgresErrorsTest, KnowsWhatAnErrorIsAbout) {
  EXPECT_TRUE(IsDuplicateKey("23505"));
  EXPECT_FALSE(IsDuplicateKey("23514"));
  EXPECT_TRUE(IsMissingTable("42P01"));
  EXPECT_FALSE(IsMissingTable("42501"));
  EXPECT_TRUE(IsDenied("42501"));
  EXPECT_FALSE(IsDenied("28P01"));
  EXPECT_TRUE(IsForeignCharacter("22P05"));
  EXPECT_TRUE(IsForeignCharacter("22021"));
  EXPECT_FALSE(IsForeignCharacter("22001"));
}

}  // namespace
}  // namespace leaf
