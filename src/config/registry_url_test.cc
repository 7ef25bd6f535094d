#include "config/registry_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leaf {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RegistryUrl Parsed(std::string_view text) {
  auto url = ParseRegistryUrl(text);
  EXPECT_TRUE(url.ok()) << text << ": " << (url.ok() ? "" : url.error().message);
  return url.ok() ? std::move(url).value() : RegistryUrl();
}

std::string ErrorOf(std::string_view text) {
  const auto url = ParseRegistryUrl(text);
  EXPECT_FALSE(url.ok()) << text;
  if (url.ok()) return "";
  EXPECT_EQ(url.error().code, Code::kInvalidArgument);
  return url.error().message;
}

TEST(RegistryUrlTest, TheStoreIsOneWord) {
  EXPECT_EQ(Parsed("store").kind, "store");
  EXPECT_EQ(DisplayUrl(Parsed("store")), "store");
  for (const char* text : {"", "Store", "store:", "store ", " store", "stores", "zookeeper", "zk",
                           "zookeeper:", "zookeeper:/h", "mysql://h/d", "fixed", "${X}"}) {
    EXPECT_EQ(ErrorOf(text),
              "snowflake.registry is store, zookeeper://HOST:PORT,HOST:PORT/, "
              "etcd://HOST:PORT/PREFIX or fixed:N");
  }
}

TEST(RegistryUrlTest, AFixedWorkerIsDecimalDigits) {
  for (const auto& [text, worker] :
       {std::pair{"fixed:0", 0}, {"fixed:39", 39}, {"fixed:1048575", 1048575}}) {
    EXPECT_EQ(Parsed(text).kind, "fixed");
    EXPECT_EQ(Parsed(text).worker, worker) << text;
    EXPECT_EQ(DisplayUrl(Parsed(text)), "fixed:" + std::to_string(worker));
  }
  for (const char* text : {"fixed:", "fixed:-1", "fixed:-0", "fixed:010", "fixed:+1", "fixed:1e3",
                           "fixed:0x10", "fixed:1.0", "fixed: 1", "fixed:1 ", "fixed:1\n",
                           "fixed:\xEF\xBC\x91", "fixed:${X}", "fixed:a", "fixed:1,2", "fixed://1",
                           "fixed:1048576", "fixed:9999999", "fixed:99999999999999999999"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("fixed:N needs a worker in decimal digits")) << text;
  }
  EXPECT_THAT(ErrorOf(std::string_view("fixed:1\0", 8)), HasSubstr("fixed:N needs"));
}

TEST(RegistryUrlTest, ZooKeeperServersHaveTheirPorts) {
  EXPECT_EQ(Parsed("zookeeper://h").servers, "h:2181");
  EXPECT_EQ(Parsed("zookeeper://h1:1,h2,10.0.0.1:65535/").servers, "h1:1,h2:2181,10.0.0.1:65535");
  EXPECT_EQ(Parsed("zookeeper://[::1],[fe80::1]:2182/").servers, "[::1]:2181,[fe80::1]:2182");
  EXPECT_EQ(ErrorOf("zookeeper://"), "snowflake.registry: the servers of zookeeper:// are missing");
  EXPECT_THAT(ErrorOf("zookeeper:///a"), HasSubstr("are missing"));
  for (const char* servers : {",", "h,", ",h", "h,,i", ":2181", "h:", "h:0", "h:65536", "h:-1",
                              "h:+1", "h:x", "::1", "[::1", "[]", "[h]:1", "h i", "h;i"}) {
    EXPECT_THAT(ErrorOf("zookeeper://" + std::string(servers) + "/"),
                HasSubstr("zookeeper:// needs HOST:PORT,HOST:PORT"))
        << servers;
  }
}

TEST(RegistryUrlTest, TheChrootIsAPathOfZooKeeper) {
  EXPECT_EQ(Parsed("zookeeper://h").chroot, "");
  EXPECT_EQ(Parsed("zookeeper://h/").chroot, "");
  EXPECT_EQ(Parsed("zookeeper://h/a/b").chroot, "/a/b");
  EXPECT_EQ(Parsed("zookeeper://h/a/b/").chroot, "/a/b");
  EXPECT_EQ(Parsed("zookeeper://h/caf%C3%A9%20x?layout=leaf").chroot, "/caf\xC3\xA9 x");
  for (const char* path : {"/a//b", "//a", "/./a", "/a/..", "/a/../b", "/a%00", "/a%0A", "/%2Fa"}) {
    EXPECT_THAT(ErrorOf("zookeeper://h" + std::string(path)), HasSubstr("snowflake.registry: the "
                                                                        "path"))
        << path;
  }
  EXPECT_THAT(ErrorOf("zookeeper://h/a%zz"), HasSubstr("bad escape"));
}

TEST(RegistryUrlTest, AUserHasAPasswordAndBothAreDecodedOnce) {
  const RegistryUrl url = Parsed("zookeeper://le%40f:p%40s%2Fs%3Aw%2541@h1,h2/x");
  EXPECT_EQ(url.user, "le@f");
  EXPECT_EQ(url.password, "p@s/s:w%41");
  EXPECT_EQ(url.servers, "h1:2181,h2:2181");
  EXPECT_EQ(DisplayUrl(url), "zookeeper://le%40f:***@h1:2181,h2:2181/x");
  EXPECT_EQ(Parsed("zookeeper://u:a:b@h/").password, "a:b");
  EXPECT_EQ(Parsed("zookeeper://u:a@b@h/").password, "a@b");
  for (const char* info : {"u", "u:", ":p", ":", "", "u:%zz", "%:p"}) {
    EXPECT_THAT(ErrorOf("zookeeper://" + std::string(info) + "@h/"),
                HasSubstr("write zookeeper://USER:PASSWORD@HOST:PORT/"))
        << info;
  }
  EXPECT_THAT(ErrorOf("zookeeper://a%3Ab:p@h/"), HasSubstr("cannot have a ':'"));
}

TEST(RegistryUrlTest, ParametersAreLayoutAndAcl) {
  EXPECT_EQ(Parsed("zookeeper://h/").leaf_layout, std::nullopt);
  EXPECT_EQ(Parsed("zookeeper://h?layout=leaf").leaf_layout, true);
  EXPECT_EQ(Parsed("zookeeper://h/?layout=native&acl=world").leaf_layout, false);
  EXPECT_EQ(Parsed("zookeeper://h/?layout=native&acl=world").private_nodes, false);
  EXPECT_EQ(Parsed("zookeeper://u:p@h/a?acl=creator").private_nodes, true);
  for (const char* text : {"zookeeper://h:2181/a?layout=leaf", "zookeeper://h:2181/?acl=world",
                           "zookeeper://h:2181/?layout=native&acl=world",
                           "zookeeper://u:***@h:2181/?layout=leaf&acl=creator"}) {
    EXPECT_EQ(DisplayUrl(Parsed(text)), text);
  }
  EXPECT_THAT(ErrorOf("zookeeper://h/?acl=creator"), HasSubstr("acl=creator needs USER:PASSWORD@"));
  EXPECT_THAT(ErrorOf("zookeeper://h/?layuot=leaf"),
              AllOf(HasSubstr("unknown parameter \"layuot\""), HasSubstr("did you mean "
                                                                         "\"layout\"?")));
  EXPECT_THAT(ErrorOf("zookeeper://h/?layout=leaf&layout=leaf"), HasSubstr("is given twice"));
  for (const char* query : {"layout", "layout=", "layout=Leaf", "layout=js53", "layout=leaf%20"})
    EXPECT_THAT(ErrorOf("zookeeper://h/?" + std::string(query)), HasSubstr("is leaf or native"));
  for (const char* query : {"acl", "acl=", "acl=none"})
    EXPECT_THAT(ErrorOf("zookeeper://h/?" + std::string(query)), HasSubstr("is creator or world"));
}

TEST(RegistryUrlTest, OtherRegistriesAreRefusedByName) {
  EXPECT_THAT(ErrorOf("zk://h/"), HasSubstr("write zookeeper:// in place of zk://"));
}

TEST(RegistryUrlTest, EtcdIsReadAsAStoreIs) {
  const RegistryUrl url = Parsed("etcd://u:p%40w@h1,[::1]:1/workers?ssl-ca=/ca.pem");
  EXPECT_EQ(url.kind, "etcd");
  EXPECT_EQ(url.servers, "h1:2379,[::1]:1");
  EXPECT_EQ(url.chroot, "/workers");
  EXPECT_EQ(url.user + " " + url.password, "u p@w");
  EXPECT_EQ(url.parameters.at("ssl-mode"), "verify-identity");
  EXPECT_EQ(DisplayUrl(url),
            "etcd://u:***@h1:2379,[::1]:1/workers?ssl-ca=/ca.pem&ssl-mode=verify-identity");
}

TEST(RegistryUrlTest, NoPasswordIsRepeatedByAnError) {
  for (const char* text :
       {"zookeeper://u:hunter2", "zookeeper://u:hunter2@", "zookeeper://u:hunter2/x@h/",
        "zookeeper://u:hunter2?x@h/", "zookeeper://u:12/hunter2@h/", "zookeeper://u:12?hunter2@h/",
        "zookeeper://u:12?hunter2&x@h/", "zookeeper://u:12?layout=hunter2@h/",
        "zookeeper://u:hunter2%@h/", "zookeeper://u:hunter2@h:x/", "zookeeper://u:hunter2@h//a/",
        "zookeeper://u:hunter2@h/?acl=x", "zk://u:hunter2@h/", "etcd://u:hunter2/x@h/",
        "etcd://u:hunter2@h/?x=hunter2", "zookeeper:/u:hunter2@h/", "hunter2"}) {
    EXPECT_THAT(ErrorOf(text), AllOf(HasSubstr("snowflake.registry"), Not(HasSubstr("hunter2")),
                                     Not(HasSubstr("store.url"))))
        << text;
  }
  EXPECT_THAT(ErrorOf("zookeeper://u:12?x@h/"), HasSubstr("'?' %3F"));
}

TEST(RegistryUrlTest, LeafsAddressIsAListOfServersAndMayHaveAChroot) {
  for (const char* text : {"h", "h:1", "h:1,i", "h/a", "h:1,i:2/a/b", "[::1]:1", "10.0.0.1:2181"})
    EXPECT_TRUE(IsZooKeeperAddress(text)) << text;
  for (const char* text : {"", ",", "h,", "/a", "h:0", "h:x", "h i", "::1", "u:p@h:1", "h:1;i:1"})
    EXPECT_FALSE(IsZooKeeperAddress(text)) << text;
}

}  // namespace
}  // namespace leaf
