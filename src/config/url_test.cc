#include "config/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace leaf {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

StoreUrl Url(std::string_view text) {
  auto url = ParseStoreUrl(text);
  EXPECT_TRUE(url.ok()) << text << ": " << url.error().message;
  return url.ok() ? std::move(url).value() : StoreUrl();
}

std::string ErrorOf(std::string_view text) {
  const auto url = ParseStoreUrl(text);
  EXPECT_FALSE(url.ok()) << text;
  return url.ok() ? "" : url.error().message;
}

TEST(UrlTest, SqliteHasAPath) {
  EXPECT_EQ(Url("sqlite:leafd.db").path, "leafd.db");
  EXPECT_EQ(Url("sqlite:/var/lib/leafd/ids.db").path, "/var/lib/leafd/ids.db");
  EXPECT_EQ(Url("sqlite:///var/ids.db").path, "/var/ids.db");
  EXPECT_EQ(Url("sqlite:////var/ids.db").path, "/var/ids.db");
  EXPECT_EQ(Url("sqlite:a b%20c.db").path, "a b%20c.db") << "a path is taken as it is";
  for (const char* text : {"sqlite:", "sqlite:folder/", "sqlite://host/a.db", "sqlite::memory:",
                           "sqlite:~/a.db", "sqlite:a.db?mode=ro", "sqlite:a\nb"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("store.url")) << text;
  }
}

TEST(UrlTest, MemoryHasNothingElse) {
  EXPECT_EQ(Url("memory:").kind, "memory");
  EXPECT_EQ(Url("memory://").kind, "memory");
  ErrorOf("memory:x");
  ErrorOf("memory");
}

TEST(UrlTest, MysqlIsTakenApart) {
  const StoreUrl url = Url("mysql://leaf:pw@db.example:3307/ids?ssl-mode=required");
  EXPECT_EQ(url.kind, "mysql");
  EXPECT_EQ(url.user, "leaf");
  EXPECT_EQ(url.password, "pw");
  EXPECT_EQ(url.host, "db.example");
  EXPECT_EQ(url.port, 3307);
  EXPECT_EQ(url.database, "ids");
  EXPECT_THAT(url.parameters, ElementsAre(Pair("ssl-mode", "required")));
}

TEST(UrlTest, PortAndPasswordMayBeMissing) {
  EXPECT_EQ(Url("mysql://leaf@db/ids").port, 3306);
  EXPECT_FALSE(Url("mysql://leaf@db/ids").password.has_value());
  EXPECT_EQ(Url("mysql://leaf:@db/ids").password, "");
}

TEST(UrlTest, HostsAreNamesAddressesOrSockets) {
  EXPECT_EQ(Url("mysql://u@[::1]:3306/d").host, "::1");
  EXPECT_EQ(Url("mysql://u@[fe80::1%eth0]/d").host, "fe80::1%eth0");
  EXPECT_EQ(Url("mysql://u@10.0.0.1/d").host, "10.0.0.1");
  EXPECT_EQ(Url("mysql://u@my_db-1.example/d").host, "my_db-1.example");
  EXPECT_EQ(Url("mysql://u@%2Frun%2Fmysqld.sock/d").host, "/run/mysqld.sock");
  EXPECT_EQ(Url("mysql://u@/d?socket=/run/mysqld.sock").host, "/run/mysqld.sock");
  for (const char* host :
       {"", "[::1", "[::1]x", "[::1]:", "[1]", "[db]", "::1", "a b", "a%00", "a%2", "10.0.0.300",
        "h:0", "h:65536", "h:", "h:x", "h:-1", "h:1:2", "h1,h2"}) {
    ErrorOf("mysql://u@" + std::string(host) + "/d");
  }
  ErrorOf("mysql://u@h/d?socket=/run/mysqld.sock");
  ErrorOf("mysql://u@/d?socket=run/mysqld.sock");
}

TEST(UrlTest, EscapesAreDecodedOnce) {
  const StoreUrl url = Url("mysql://a%40b:p%2Fq%3Ar%2541@h/d%5Fb");
  EXPECT_EQ(url.user, "a@b");
  EXPECT_EQ(url.password, "p/q:r%41");
  EXPECT_EQ(url.database, "d_b");
}

TEST(UrlTest, APasswordMayHoldColonsAndAts) {
  EXPECT_EQ(Url("mysql://u:a:b@c@h/d").password, "a:b@c");
}

TEST(UrlTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(ErrorOf("mysql://h/d"), HasSubstr("the user is missing"));
  EXPECT_THAT(ErrorOf("mysql://u@h"), HasSubstr("the database is missing"));
  EXPECT_THAT(ErrorOf("mysql://u@h/"), HasSubstr("the database is missing"));
  EXPECT_THAT(ErrorOf("mysql://u@/d"), HasSubstr("the host is missing"));
  EXPECT_THAT(ErrorOf("mysql:h/d"), HasSubstr("mysql://USER"));
  for (const char* database : {"a/b", "a b", "a`b", "caf%C3%A9", "a.b"}) {
    EXPECT_THAT(ErrorOf("mysql://u@h/" + std::string(database)), HasSubstr("the database must be"))
        << database;
  }
  EXPECT_EQ(Url("mysql://u@h/my-ids_1$").database, "my-ids_1$");
}

TEST(UrlTest, ParametersAreKnownSingleAndFilled) {
  EXPECT_THAT(ErrorOf("mysql://u@h/d?ssl_mode=required"), HasSubstr("did you mean \"ssl-mode\""));
  EXPECT_THAT(ErrorOf("mysql://u@h/d?zzz=1"),
              AllOf(HasSubstr("unknown parameter \"zzz\""), HasSubstr("ssl-ca")));
  EXPECT_THAT(ErrorOf("mysql://u@h/d?ssl-mode"), HasSubstr("needs a value"));
  EXPECT_THAT(ErrorOf("mysql://u@h/d?ssl-mode="), HasSubstr("needs a value"));
  EXPECT_THAT(ErrorOf("mysql://u@h/d?ssl-mode=required&ssl-mode=disabled"), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf("mysql://u@h/d?ssl-mode=on"), HasSubstr("must be one of"));
}

TEST(UrlTest, TlsParametersAgree) {
  EXPECT_EQ(Url("mysql://u@h/d").parameters.at("ssl-mode"), "preferred");
  EXPECT_EQ(Url("mysql://u@h/d?ssl-ca=/ca.pem").parameters.at("ssl-mode"), "verify-identity")
      << "who names a CA wants it used";
  EXPECT_EQ(Url("mysql://u@h/d?ssl-ca=/ca.pem&ssl-mode=verify-ca").parameters.at("ssl-mode"),
            "verify-ca");
  ErrorOf("mysql://u@h/d?ssl-ca=/ca.pem&ssl-mode=required");
  ErrorOf("mysql://u@h/d?ssl-cert=/c.pem");
  ErrorOf("mysql://u@/d?socket=/run/m.sock&ssl-mode=required");
  ErrorOf("mysql://u@/d?socket=/run/m.sock&ssl-ca=/ca.pem");
  ErrorOf("mysql://u@h/d?ssl-key=/k.pem");
  ErrorOf("mysql://u@h/d?ssl-cert=/c.pem&ssl-key=/k.pem&ssl-mode=disabled");
}

TEST(UrlTest, AnUnknownSchemeIsRefusedWithASuggestion) {
  EXPECT_THAT(ErrorOf("mysq://u:p@h/d"), HasSubstr("did you mean mysql:?"));
  EXPECT_THAT(ErrorOf("redis://h"), HasSubstr("unknown scheme"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("unknown scheme"));
}

TEST(UrlTest, TheDisplayHidesThePasswordAndCanBeReadAgain) {
  for (const char* text : {"mysql://leaf:***@db:3306/ids?ssl-mode=preferred",
                           "mysql://leaf@[::1]:3307/ids?ssl-mode=required",
                           "mysql://a%40b:***@%2Frun%2Fm.sock/ids?ssl-mode=preferred",
                           "mysql://u@h:3306/ids?ssl-ca=/a%26b.pem&ssl-mode=verify-ca",
                           "memory:", "sqlite:/var/ids.db"}) {
    EXPECT_EQ(DisplayUrl(Url(text)), text);
  }
  EXPECT_EQ(DisplayUrl(Url("mysql://leaf:hunter2@db/ids")),
            "mysql://leaf:***@db:3306/ids?ssl-mode=preferred");
}

TEST(UrlTest, NoOutputHoldsAPieceOfAnUnescapedPassword) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string marks = "/?#@:&=%[],;.+-1";
  const char* forms[] = {"mysql://leaf:",    "jdbc:mysql://leaf:", "mysq://leaf:",
                         "postgres://leaf:", "etcd://leaf:",       "mysql:leaf:"};
  for (int round = 0; round < 20000; ++round) {
    std::string password;
    for (auto i = random() % 6; i > 0; --i) password += marks[random() % marks.size()];
    password.insert(random() % (password.size() + 1), "SECRET");
    for (auto i = random() % 3; i > 0; --i) password += marks[random() % marks.size()];
    const std::string text =
        forms[random() % std::size(forms)] + password + "@db:3306/ids?ssl-mode=required";
    const auto url = ParseStoreUrl(text);
    std::string output = url.ok() ? DisplayUrl(*url) : url.error().message;
    if (url.ok()) {
      for (const std::string& warning : url->warnings) output += warning;
    }
    ASSERT_THAT(output, Not(HasSubstr("SECRET"))) << text;
  }
}

TEST(UrlTest, PercentEncodingIsReversible) {
  std::string bytes;
  for (int i = 1; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(PercentDecode(PercentEncode(bytes)), bytes);
  EXPECT_EQ(PercentDecode("%00"), std::nullopt);
  EXPECT_EQ(PercentDecode("%4"), std::nullopt);
  EXPECT_EQ(PercentDecode("%"), std::nullopt);
  EXPECT_EQ(PercentDecode("%zz"), std::nullopt);
  EXPECT_EQ(PercentDecode("%41+"), "A+");
}

}  // namespace
}  // namespace leaf
