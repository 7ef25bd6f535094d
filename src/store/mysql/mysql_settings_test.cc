#include "store/mysql/mysql_settings.h"

#include <gtest/gtest.h>

#include <string>

#include "base/utf8.h"
#include "store/mysql/mysql_errors.h"

namespace leaf {
namespace {

using Tls = MysqlSettings::Tls;

StoreOptions Options() {
  StoreOptions options;
  options.host = "db.example";
  options.database = "leaf";
  options.user = "u";
  return options;
}

std::string Refusal(const StoreOptions& options) {
  const auto settings = ParseMysqlSettings(options);
  EXPECT_FALSE(settings.ok());
  if (settings.ok()) return "";
  EXPECT_EQ(settings.error().code, Code::kInvalidArgument);
  return settings.error().message;
}

Tls TlsOf(StoreOptions options) {
  const auto settings = ParseMysqlSettings(options);
  EXPECT_TRUE(settings.ok()) << (settings.ok() ? "" : settings.error().message);
  return settings.ok() ? settings->tls : Tls::kDisabled;
}

TEST(MysqlSettingsTest, TakesTheTableFromTheDatabaseOrFromItsOwnName) {
  StoreOptions options = Options();
  EXPECT_EQ(QuotedTable(*ParseMysqlSettings(options)), "`leaf`.`leaf_alloc`");
  options.table = "ids.my$table_2";
  EXPECT_EQ(QuotedTable(*ParseMysqlSettings(options)), "`ids`.`my$table_2`");
}

TEST(MysqlSettingsTest, RefusesNamesThatWouldNeedEscaping) {
  for (const char* name :
       {"a`b", "a b", "a;b", "a'b", "", "a.b.c", ".x", "x.", "caf\xc3\xa9", "a\\"}) {
    StoreOptions options = Options();
    options.table = name;
    EXPECT_NE(Refusal(options), "") << name;
  }
  StoreOptions options = Options();
  options.database = "";
  EXPECT_NE(Refusal(options).find("no database"), std::string::npos);
}

TEST(MysqlSettingsTest, APathIsAUnixSocketWithoutTls) {
  StoreOptions options = Options();
  options.host = "/run/mysqld/mysqld.sock";
  const auto settings = ParseMysqlSettings(options);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->unix_socket, "/run/mysqld/mysqld.sock");
  EXPECT_EQ(settings->tls, Tls::kDisabled);
  options.parameters["ssl-mode"] = "required";
  EXPECT_NE(Refusal(options).find("unix socket"), std::string::npos);
}

TEST(MysqlSettingsTest, VerifiesTheNameAsSoonAsThereIsAnAuthority) {
  StoreOptions options = Options();
  EXPECT_EQ(TlsOf(options), Tls::kPreferred);
  options.parameters["ssl-ca"] = "/ca.pem";
  EXPECT_EQ(TlsOf(options), Tls::kVerifyIdentity);
  options.parameters["ssl-mode"] = "verify-ca";
  EXPECT_EQ(TlsOf(options), Tls::kVerifyCa);
  options.parameters["ssl-mode"] = "required";
  EXPECT_NE(Refusal(options).find("does not verify"), std::string::npos);
}

TEST(MysqlSettingsTest, RefusesWhatItDoesNotKnow) {
  StoreOptions options = Options();
  options.parameters["ssl-mod"] = "required";
  EXPECT_NE(Refusal(options).find("'ssl-mod'"), std::string::npos);
  options.parameters.clear();
  options.parameters["ssl-mode"] = "maybe";
  EXPECT_NE(Refusal(options).find("'maybe'"), std::string::npos);
  options.parameters.clear();
  options.parameters["ssl-cert"] = "/cert.pem";
  EXPECT_NE(Refusal(options), "");
  options.parameters.clear();
  options.port = 0;
  EXPECT_NE(Refusal(options), "");
}

TEST(MysqlErrorsTest, OnlyAServersClearWordIsDefinite) {
  for (const unsigned number :
       {1205U, 1213U, 1290U, 1690U, 1836U, 1969U, 3024U, 1142U, 1146U, 4025U}) {
    EXPECT_TRUE(IsDefinite(number)) << number;
  }
  for (const unsigned number :
       {0U, 2006U, 2013U, 2026U, 5001U, 1053U, 1180U, 1317U, 1927U, 4031U}) {
    EXPECT_FALSE(IsDefinite(number)) << number;
  }
}

TEST(MysqlErrorsTest, ALockIsNoMatterOfTheWholeStore) {
  for (const unsigned number : {1205U, 1213U, 1969U, 1062U})
    EXPECT_FALSE(ConcernsStore(number)) << number;
  for (const unsigned number : {1290U, 1146U, 1142U, 1021U, 1047U})
    EXPECT_TRUE(ConcernsStore(number)) << number;
}

TEST(MysqlUtf8Test, KnowsWhatCanBeAName) {
  for (const char* good : {"", "order", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc3", "a\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
                          "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "\xc3\xc3\xa9"}) {
    EXPECT_FALSE(IsUtf8(bad)) << testing::PrintToString(bad);
  }
  EXPECT_TRUE(IsUtf8(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace leaf
