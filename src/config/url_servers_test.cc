#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/url.h"

namespace leaf {
namespace {

using testing::HasSubstr;

StoreUrl Url(std::string_view text) {
  auto url = ParseStoreUrl(text);
  EXPECT_TRUE(url.ok()) << text << ": " << (url.ok() ? "" : url.error().message);
  return url.ok() ? *url : StoreUrl{};
}

std::string ErrorOf(std::string_view text) {
  const auto url = ParseStoreUrl(text);
  EXPECT_FALSE(url.ok()) << text;
  if (url.ok()) return "";
  EXPECT_EQ(url.error().code, Code::kInvalidArgument);
  return url.error().message;
}

TEST(PostgresUrl, NamesServersUserAndDatabase) {
  const StoreUrl url = Url("postgres://leaf:p%2Fw@db1,[::1]:6000/ids");
  EXPECT_EQ(url.kind, "postgres");
  EXPECT_EQ(url.servers, "db1:5432,[::1]:6000");
  EXPECT_EQ(url.user, "leaf");
  EXPECT_EQ(url.password, "p/w");
  EXPECT_EQ(url.database, "ids");
  EXPECT_EQ(url.parameters.at("sslmode"), "prefer");
  EXPECT_EQ(Url("postgresql://u@h/d").servers, "h:5432");
}

TEST(PostgresUrl, MayNameASocketsFolder) {
  const StoreUrl url = Url("postgres://u@%2Frun%2Fpostgresql:6000/d");
  EXPECT_EQ(url.servers, "/run/postgresql");
  EXPECT_EQ(url.port, 6000);
  EXPECT_EQ(url.parameters.at("sslmode"), "disable");
  EXPECT_THAT(ErrorOf("postgres://u@%2Frun,h/d"), HasSubstr("alone"));
  EXPECT_THAT(ErrorOf("postgres://u@%2Frun/d?sslmode=require"), HasSubstr("no TLS"));
}

TEST(PostgresUrl, WhatIsMissingOrWrongIsNamed) {
  EXPECT_THAT(ErrorOf("postgres:h/d"), HasSubstr("postgres://USER:PASSWORD@HOST"));
  EXPECT_THAT(ErrorOf("postgres://h/d"), HasSubstr("user is missing"));
  EXPECT_THAT(ErrorOf("postgres://u@/d"), HasSubstr("host is missing"));
  EXPECT_THAT(ErrorOf("postgres://u@h"), HasSubstr("database is missing"));
  EXPECT_THAT(ErrorOf("postgres://u@h,/d"), HasSubstr("host is missing"));
  EXPECT_THAT(ErrorOf("postgres://u@h:0/d"), HasSubstr("port"));
  EXPECT_THAT(ErrorOf("postgres://u@h/d?ssl-mode=require"), HasSubstr("did you mean \"sslmode\""));
  EXPECT_THAT(ErrorOf("postgres://u@h/d?sslmode=on"), HasSubstr("must be one of"));
  EXPECT_THAT(ErrorOf("postgres://u@h/d?sslmode=verify-full"), HasSubstr("needs sslrootcert"));
  EXPECT_THAT(ErrorOf("postgres://u@h/d?sslmode=require&sslrootcert=/a"), HasSubstr("no effect"));
  EXPECT_THAT(ErrorOf("postgres://u@h/d?sslcert=/a"), HasSubstr("need each other"));
  EXPECT_EQ(Url("postgres://u@h/d?sslrootcert=/ca").parameters.at("sslmode"), "verify-full")
      << "who names an authority wants it used";
}

TEST(EtcdUrl, NamesServersAndAPrefix) {
  const StoreUrl url = Url("etcd://h1,h2:1,[::1]/a/b/");
  EXPECT_EQ(url.kind, "etcd");
  EXPECT_EQ(url.servers, "h1:2379,h2:1,[::1]:2379");
  EXPECT_EQ(url.path, "/a/b");
  EXPECT_EQ(url.parameters.at("ssl-mode"), "disabled");
  EXPECT_EQ(Url("etcd://h").path, "/leafd");
  EXPECT_EQ(Url("etcd://u:p@h/x").user, "u");
  EXPECT_EQ(Url("etcd://h/x?ssl-ca=/ca").parameters.at("ssl-mode"), "verify-identity");
  EXPECT_EQ(Url("etcd://h/x?ssl-mode=required").parameters.at("ssl-mode"), "required");
}

TEST(EtcdUrl, WhatIsMissingOrWrongIsNamed) {
  EXPECT_THAT(ErrorOf("etcd:h"), HasSubstr("etcd://HOST:PORT"));
  EXPECT_THAT(ErrorOf("etcd:///a"), HasSubstr("host is missing"));
  EXPECT_THAT(ErrorOf("etcd://h/a//b"), HasSubstr("prefix"));
  EXPECT_THAT(ErrorOf("etcd://h/a%20b"), HasSubstr("prefix"));
  EXPECT_THAT(ErrorOf("etcd://%2Frun/a"), HasSubstr("socket"));
  EXPECT_THAT(ErrorOf("etcd://h/a?ssl-mode=preferred"), HasSubstr("no choice"));
  EXPECT_THAT(ErrorOf("etcd://h/a?ssl-cert=/c"), HasSubstr("need each other"));
  EXPECT_THAT(ErrorOf("etcd://h/a?sslmode=require"), HasSubstr("did you mean \"ssl-mode\""));
  EXPECT_THAT(ErrorOf("etcd://:p@h/a"), HasSubstr("USER:PASSWORD"));
}

TEST(ServersUrl, TheDisplayHidesThePasswordAndCanBeReadAgain) {
  for (const char* text :
       {"postgres://u:***@h1:5432,[::1]:6000/d?sslmode=prefer",
        "postgres://u@%2Frun%2Fpg:6000/d?sslmode=disable",
        "etcd://u:***@h:2379/a/b?ssl-mode=required", "etcd://h:2379/leafd?ssl-mode=disabled"}) {
    EXPECT_EQ(DisplayUrl(Url(text)), text);
  }
  EXPECT_EQ(DisplayUrl(Url("postgres://u:hunter2@h/d")),
            "postgres://u:***@h:5432/d?sslmode=prefer");
}

}  // namespace
}  // namespace leaf
