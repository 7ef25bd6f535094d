#include "config/config_jdbc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leaf {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

StoreUrl Jdbc(std::string_view text) {
  auto url = ParseStoreUrl(text);
  EXPECT_TRUE(url.ok()) << text << ": " << url.error().message;
  return url.ok() ? std::move(url).value() : StoreUrl();
}

std::string ErrorOf(std::string_view text) {
  const auto url = ParseStoreUrl(text);
  EXPECT_FALSE(url.ok()) << text;
  return url.ok() ? "" : url.error().message;
}

StoreUrl With(std::string_view parameters) {
  return Jdbc("jdbc:mysql://h/d?" + std::string(parameters));
}
std::string ModeOf(std::string_view parameters) {
  return With(parameters).parameters.at("ssl-mode");
}

TEST(JdbcUrlTest, HostPortAndDatabaseAreTaken) {
  const StoreUrl url = Jdbc("jdbc:mysql://db.example:3307/ids");
  EXPECT_EQ(url.kind, "mysql");
  EXPECT_EQ(url.host, "db.example");
  EXPECT_EQ(url.port, 3307);
  EXPECT_EQ(url.database, "ids");
  EXPECT_THAT(url.warnings, IsEmpty());
  EXPECT_EQ(Jdbc("jdbc:mariadb://db/ids").port, 3306);
  EXPECT_EQ(Jdbc("jdbc:mysql:///ids").host, "localhost");
  EXPECT_EQ(Jdbc("jdbc:mysql://[2001:db8::1]:3306/ids").host, "2001:db8::1");
}

TEST(JdbcUrlTest, PostgresqlIsReadWithItsUserAsParameter) {
  const StoreUrl url =
      Jdbc("jdbc:postgresql://h:6000/d?user=u&password=p%26w&sslmode=require&prepareThreshold=5");
  EXPECT_EQ(url.kind, "postgres");
  EXPECT_EQ(url.servers, "h:6000");
  EXPECT_EQ(url.user, "u");
  EXPECT_EQ(url.password, "p&w");
  EXPECT_EQ(url.parameters.at("sslmode"), "require");
  EXPECT_THAT(url.warnings, ElementsAre(HasSubstr("prepareThreshold")));
}

TEST(JdbcUrlTest, PostgresqlsTlsIsWhatItsDriverMakesOfIt) {
  const std::string ca = "&sslrootcert=/ca.pem";
  const auto mode = [](const std::string& query) {
    return Jdbc("jdbc:postgresql://h/d?" + query).parameters.at("sslmode");
  };
  EXPECT_EQ(mode("ssl=true" + ca), "verify-full");
  EXPECT_EQ(mode("ssl" + ca), "verify-full");
  EXPECT_EQ(mode("sslmode=verify-ca&ssl=true" + ca), "verify-ca");
  EXPECT_EQ(mode("ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory"), "require");
  EXPECT_EQ(mode("ssl=false"), "prefer");
  EXPECT_THAT(ErrorOf("jdbc:postgresql://h/d?ssl=true"), HasSubstr("needs sslrootcert"));
  EXPECT_THAT(ErrorOf("jdbc:postgresql://h/d?ssl=maybe"), HasSubstr("true or false"));
}

TEST(JdbcUrlTest, PostgresqlsSchemaIsTaken) {
  EXPECT_EQ(Jdbc("jdbc:postgresql://h/d?currentSchema=ids").schema, "ids");
  EXPECT_THAT(ErrorOf("jdbc:postgresql://h/d?currentSchema=ids,public"), HasSubstr("store.table"));
  EXPECT_THAT(ErrorOf("jdbc:postgresql://h/d?options=-c%20search_path=ids"),
              HasSubstr("store.table"));
}

TEST(JdbcUrlTest, WhatIsNotAUrlOfMysqlIsRefused) {
  for (const char* text :
       {"jdbc:", "jdbc:mysql", "jdbc:mysql:", "jdbc:mysql:h/d", "jdbc:oracle:thin:@h:1521:d",
        "jdbc:mysql://h", "jdbc:mysql://h/", "jdbc:mysql://h:x/d", "jdbc:mysql://h:0/d",
        "jdbc:mysql://address=(host=h)(port=1)/d", "jdbc:mysql://h/d?a=%zz",
        "jdbc:mysql+srv://h/d"}) {
    ErrorOf(text);
  }
}

TEST(JdbcUrlTest, UserAndPasswordMayStandInTheUrl) {
  const StoreUrl by_query = With("user=leaf&password=p%26q%40");
  EXPECT_EQ(by_query.user, "leaf");
  EXPECT_EQ(by_query.password, "p&q@");
  const StoreUrl by_authority = Jdbc("jdbc:mysql://leaf:pw@h/d");
  EXPECT_EQ(by_authority.user, "leaf");
  EXPECT_EQ(by_authority.password, "pw");
}

TEST(JdbcUrlTest, OfSeveralHostsTheFirstIsUsedWithAWarning) {
  for (const char* text :
       {"jdbc:mysql://h1:3307,h2:3308/d", "jdbc:mysql:replication://h1:3307,h2/d",
        "jdbc:mariadb:sequential://h1:3307,h2/d"}) {
    const StoreUrl url = Jdbc(text);
    EXPECT_EQ(url.host, "h1");
    EXPECT_EQ(url.port, 3307);
    EXPECT_THAT(url.warnings, ElementsAre(HasSubstr("only the first is used")));
  }
}

TEST(JdbcUrlTest, HostsThatShareTheWritingAreRefused) {
  ErrorOf("jdbc:mysql:loadbalance://h1,h2/d");
  EXPECT_THAT(ErrorOf("jdbc:mysql://h1,h2/d?failOverReadOnly=false"),
              HasSubstr("another host's copy"));
  EXPECT_THAT(Jdbc("jdbc:mysql://h1/d?failOverReadOnly=false").warnings, IsEmpty());
  EXPECT_THAT(ErrorOf("jdbc:mysql://a:SECRET@h1,b:SECRET@h2/d"), Not(HasSubstr("SECRET")));
}

TEST(JdbcUrlTest, ParametersThatOnlyMatterToJavaAreDropped) {
  EXPECT_THAT(
      With("useUnicode=true&characterEncoding=utf8&serverTimezone=Asia/Shanghai&autoReconnect=true"
           "&zeroDateTimeBehavior=convertToNull&allowMultiQueries=true&rewriteBatchedStatements="
           "true&tinyInt1isBit=false"
           "&useServerPrepStmts=true&SERVERTIMEZONE=UTC")
          .warnings,
      IsEmpty());
}

TEST(JdbcUrlTest, UnknownAndUnusedParametersWarn) {
  EXPECT_THAT(With("useSLL=false").warnings,
              ElementsAre(AllOf(HasSubstr("\"useSLL\""), HasSubstr("did you mean \"useSSL\"?"))));
  EXPECT_THAT(With("flavour=sweet").warnings, ElementsAre(HasSubstr("\"flavour\" is unknown")));
  EXPECT_THAT(
      With("connectTimeout=1&socketTimeout=2").warnings,
      ElementsAre(HasSubstr("connectTimeout is not used"), HasSubstr("socketTimeout is not used")));
  EXPECT_THAT(With("sessionVariables=sql_mode=ANSI").warnings,
              ElementsAre(HasSubstr("sessionVariables")));
}

TEST(JdbcUrlTest, AnAmpersandFromXmlIsRead) {
  const StoreUrl url = With("useUnicode=true&amp;useSSL=false");
  EXPECT_EQ(url.parameters.at("ssl-mode"), "disabled");
  EXPECT_THAT(url.warnings, ElementsAre(HasSubstr("&amp;")));
}

TEST(JdbcUrlTest, TlsIsAsStrictAsTheDriverWouldBe) {
  EXPECT_EQ(Jdbc("jdbc:mysql://h/d").parameters.at("ssl-mode"), "preferred");
  EXPECT_EQ(ModeOf("useSSL=false"), "disabled");
  EXPECT_EQ(ModeOf("useSSL=false&requireSSL=true"), "disabled");
  EXPECT_EQ(ModeOf("useSSL=true"), "verify-ca");
  EXPECT_EQ(ModeOf("useSSL=TRUE&verifyServerCertificate=true"), "verify-ca");
  EXPECT_EQ(ModeOf("useSSL=true&verifyServerCertificate=false"), "preferred");
  EXPECT_EQ(ModeOf("useSSL=true&verifyServerCertificate=false&requireSSL=true"), "required");
  EXPECT_EQ(ModeOf("requireSSL=true"), "required");
  EXPECT_EQ(ModeOf("verifyServerCertificate=true"), "verify-ca");
  EXPECT_EQ(ModeOf("sslMode=DISABLED&useSSL=true"), "disabled");
  EXPECT_EQ(ModeOf("sslMode=REQUIRED"), "required");
  EXPECT_EQ(ModeOf("sslMode=VERIFY_CA"), "verify-ca");
  EXPECT_EQ(ModeOf("sslMode=VERIFY_IDENTITY"), "verify-identity");
  EXPECT_EQ(ModeOf("sslMode=verify-full"), "verify-identity");
  EXPECT_EQ(ModeOf("sslMode=trust"), "required");
  ErrorOf("jdbc:mysql://h/d?sslMode=maybe");
  ErrorOf("jdbc:mysql://h/d?useSSL=maybe");
}

TEST(JdbcUrlTest, MariadbsDriverVerifiesTheName) {
  EXPECT_EQ(Jdbc("jdbc:mariadb://h/d?useSsl=true").parameters.at("ssl-mode"), "verify-identity");
  EXPECT_EQ(
      Jdbc("jdbc:mariadb://h/d?useSsl=true&trustServerCertificate=true").parameters.at("ssl-mode"),
      "required");
  const StoreUrl url = Jdbc("jdbc:mariadb://h/d?useSsl=true&serverSslCert=/etc/ca.pem");
  EXPECT_EQ(url.parameters.at("ssl-mode"), "verify-identity");
  EXPECT_EQ(url.parameters.at("ssl-ca"), "/etc/ca.pem");
}

TEST(JdbcUrlTest, TheKeyOfTheServerIsTaken) {
  EXPECT_EQ(With("serverRSAPublicKeyFile=/etc/k.pem").parameters.at("server-public-key"),
            "/etc/k.pem");
}

TEST(JdbcUrlTest, AJavaKeyStoreWarnsAndVerificationStays) {
  const StoreUrl url = With(
      "useSSL=true&verifyServerCertificate=true&trustCertificateKeyStoreUrl=file:/a.jks"
      "&trustCertificateKeyStorePassword=SECRET");
  EXPECT_EQ(url.parameters.at("ssl-mode"), "verify-ca");
  EXPECT_THAT(url.warnings,
              ElementsAre(AllOf(HasSubstr("key stores cannot be read"), Not(HasSubstr("SECRET")))));
}

}  // namespace
}  // namespace leaf
