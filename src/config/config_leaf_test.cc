#include "config/config_leaf.h"

#include <gmock/gmock.h>

#include "config/config_files.h"
#include "config/config_test_util.h"

namespace leaf::config {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSnowflakeOff = "leaf.snowflake.enable=false\n";
constexpr const char* kUsual =
    "leaf.name=com.example\n"
    "leaf.segment.enable=true\n"
    "leaf.jdbc.url=jdbc:mysql://db:3307/ids?useSSL=false\n"
    "leaf.jdbc.username=leaf\n"
    "leaf.jdbc.password=hunter2\n"
    "leaf.snowflake.enable=false\n";

class LeafPropertiesTest : public ConfigTest {
 protected:
  /// The usual file without the lines that hold `part`, and with `more`.
  void Without(std::string_view part, std::string_view more = "") {
    std::string text;
    std::string_view rest = kUsual;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n') + 1);
      if (line.find(part) == std::string_view::npos) text += line;
      rest.remove_prefix(line.size());
    }
    Leaf(text + std::string(more));
  }
  void More(std::string_view more) { Leaf(kUsual + std::string(more)); }
};

TEST_F(LeafPropertiesTest, TheStoreIsTheOneOfTheFile) {
  Leaf(kUsual);
  const Config config = Load();
  EXPECT_TRUE(config.segment.enabled);
  EXPECT_EQ(config.store.kind, "mysql");
  EXPECT_EQ(config.store.host, "db");
  EXPECT_EQ(config.store.port, 3307);
  EXPECT_EQ(config.store.database, "ids");
  EXPECT_EQ(config.store.user, "leaf");
  EXPECT_EQ(config.store.password, "hunter2");
  EXPECT_EQ(config.store.parameters.at("ssl-mode"), "disabled");
  EXPECT_FALSE(config.segment.auto_create);
  EXPECT_EQ(Item(config, "store.url").value, R"("mysql://leaf:***@db:3307/ids?ssl-mode=disabled")");
  EXPECT_EQ(Item(config, "store.url").origin, "leaf.properties:3");
}

TEST_F(LeafPropertiesTest, TheFileMeansBeLeafAndSaysSo) {
  Leaf(kUsual);
  const Config config = Load();
  EXPECT_THAT(config.server.listen, ElementsAre("0.0.0.0:8080"));
  EXPECT_TRUE(config.compat.leaf);
  EXPECT_TRUE(config.compat.cut_after_dot);
  EXPECT_TRUE(config.compat.pages_on_main);
  EXPECT_FALSE(config.compat.disabled_returns_zero);
  EXPECT_EQ(config.segment.policy, "leaf");
  EXPECT_EQ(config.store.min_durability, Durability::kProcess);
  for (const char* key : {"server.listen", "compat.leaf", "compat.cut_after_dot",
                          "compat.pages_on_main", "segment.policy", "store.min_durability"}) {
    EXPECT_THAT(config.notices, testing::Contains(HasSubstr(key)));
    EXPECT_EQ(Item(config, key).origin, "leaf.properties");
  }
  EXPECT_THAT(Warnings(), HasSubstr("leaf.properties: store.min_durability is \"process\""));
}

TEST_F(LeafPropertiesTest, StrongerSourcesOverrideWhatBeingLeafMeans) {
  Leaf(kUsual);
  environment["LEAFD_STORE_MIN_DURABILITY"] = "power";
  environment["LEAFD_COMPAT_LEAF"] = "false";
  command_line.settings = {{"--listen", "127.0.0.1:9"}, {"segment.policy", "fixed"}};
  const Config config = Load();
  EXPECT_THAT(config.server.listen, ElementsAre("127.0.0.1:9"));
  EXPECT_EQ(config.store.min_durability, Durability::kPower);
  EXPECT_EQ(config.segment.policy, "fixed");
  EXPECT_FALSE(config.compat.leaf || config.compat.cut_after_dot || config.compat.pages_on_main);
  EXPECT_THAT(config.notices, IsEmpty());
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST_F(LeafPropertiesTest, SpringsPortAndAddressAreKept) {
  More("server.port=9090\n");
  EXPECT_THAT(Load().server.listen, ElementsAre("0.0.0.0:9090"));
  EXPECT_EQ(Item(Load(), "server.listen").origin, "leaf.properties:7");
  More("server.port= 9090 \t\nserver.address=127.0.0.1\n");
  EXPECT_THAT(Load().server.listen, ElementsAre("127.0.0.1:9090")) << "numbers are trimmed";
  More("server.address=::1\n");
  EXPECT_THAT(Load().server.listen, ElementsAre("[::1]:8080"));
  for (const char* port : {"", "-1", "65536", "80x", "${PORT:8080}"}) {
    More("server.port=" + std::string(port) + "\n");
    EXPECT_EQ(Errors(), "leaf.properties:7: server.port must be a number from 0 to 65535") << port;
  }
}

TEST_F(LeafPropertiesTest, BothBranchesNamesAreRead) {
  Leaf(
      "leaf.segment.url=jdbc:mysql://db/"
      "ids\nleaf.segment.username=leaf\nleaf.segment.password=pw\n" +
      std::string(kSnowflakeOff));
  const Config config = Load();
  EXPECT_EQ(config.store.host, "db");
  EXPECT_EQ(config.store.user, "leaf");
  EXPECT_EQ(config.store.password, "pw");
}

TEST_F(LeafPropertiesTest, BothNamesWithOneValueAreFine) {
  More("leaf.segment.url=jdbc:mysql://db:3307/ids?useSSL=false\nleaf.segment.password=hunter2\n");
  EXPECT_EQ(Load().store.host, "db");
}

TEST_F(LeafPropertiesTest, BothNamesWithTwoValuesAreAConflictOfTwoLines) {
  More(
      "leaf.segment.url=jdbc:mysql://other/"
      "ids\nleaf.segment.username=root\nleaf.segment.password=swordfish\n"
      "leaf.snowflake.zk.address=a:1\nleaf.snowflake.address=b:1\n");
  const std::string errors = Errors();
  EXPECT_THAT(
      errors,
      HasSubstr("leaf.properties:3: leaf.jdbc.url and leaf.segment.url (leaf.properties:7)"));
  EXPECT_THAT(
      errors,
      HasSubstr(
          "leaf.properties:4: leaf.jdbc.username and leaf.segment.username (leaf.properties:8)"));
  EXPECT_THAT(
      errors,
      HasSubstr(
          "leaf.properties:5: leaf.jdbc.password and leaf.segment.password (leaf.properties:9)"));
  EXPECT_THAT(errors, HasSubstr("leaf.snowflake.zk.address and leaf.snowflake.address"));
  EXPECT_THAT(errors, AllOf(Not(HasSubstr("hunter2")), Not(HasSubstr("swordfish"))));
}

TEST_F(LeafPropertiesTest, AModeThatIsOnNeedsItsAddress) {
  Without("leaf.jdbc.url");
  EXPECT_EQ(Errors(),
            "leaf.properties:2: segment mode is on, but leaf.jdbc.url is missing; set it, or "
            "switch the mode off: "
            "leaf.segment.enable=false");
  Without("leaf.jdbc.url", "leaf.jdbc.url=  \n");
  EXPECT_THAT(Errors(), HasSubstr("leaf.jdbc.url is missing"));
}

TEST_F(LeafPropertiesTest, AnAbsentEnableIsTrue) {
  Leaf("leaf.name=a\n");
  EXPECT_THAT(Errors(),
              AllOf(HasSubstr("leaf.properties: segment mode is on, but leaf.jdbc.url is missing"),
                    HasSubstr("leaf.segment.enable=false"),
                    HasSubstr("leaf.properties: snowflake mode is on"),
                    HasSubstr("leaf.snowflake.zk.address is missing"),
                    HasSubstr("leaf.snowflake.enable=false")));
  Without("leaf.segment.enable");
  EXPECT_TRUE(Load().segment.enabled);
}

TEST_F(LeafPropertiesTest, AnAddressFromAStrongerSourceWillDo) {
  Without("leaf.jdbc");
  environment["LEAFD_STORE_URL"] = "mysql://other:pw@elsewhere/ids";
  const Config config = Load();
  EXPECT_EQ(config.store.host, "elsewhere");
  EXPECT_EQ(config.store.user, "other");
}

TEST_F(LeafPropertiesTest, AUrlFromAStrongerSourceBringsItsOwnCredentials) {
  Leaf(kUsual);
  environment["LEAFD_STORE_URL"] = "mysql://other@elsewhere/ids";
  const Config config = Load();
  EXPECT_EQ(config.store.user, "other");
  EXPECT_EQ(config.store.password, "");
}

TEST_F(LeafPropertiesTest, ASwitchedOffModeNeedsNothing) {
  Leaf("leaf.segment.enable=false\nleaf.snowflake.enable=false\n");
  const Config config = Load();
  EXPECT_FALSE(config.segment.enabled);
  EXPECT_FALSE(config.snowflake.enabled);
  EXPECT_THAT(Warnings(), HasSubstr("leaf.properties:1: no mode is on"));
  Leaf("leaf.segment.enable=false\nleaf.snowflake.enable=false\nleaf.jdbc.url=jdbc:oracle:x\n");
  EXPECT_THAT(Warnings(), HasSubstr("leaf.properties:3: "));
}

TEST_F(LeafPropertiesTest, BooleansAreJavas) {
  for (const char* word : {"true", "TRUE", "True"}) {
    Without("leaf.segment.enable", "leaf.segment.enable=" + std::string(word) + "\n");
    EXPECT_TRUE(Load().segment.enabled) << word;
  }
  for (const char* word : {"false", "FALSE", "yes", "1", "on", "", "true ", "tru"}) {
    Without("leaf.segment.enable", "leaf.segment.enable=" + std::string(word) + "\n");
    EXPECT_FALSE(Load().segment.enabled) << word;
  }
  EXPECT_THAT(Warnings(), HasSubstr("leaf.properties:6: leaf.segment.enable is false, as in Java, "
                                    "because it is not \"true\""));
  Without("leaf.segment.enable", "leaf.segment.enable=true \n");
  EXPECT_THAT(Warnings(), HasSubstr("because of blanks behind \"true\""));
}

TEST_F(LeafPropertiesTest, AMisspeltKeyIsAnErrorWithItsLineAndASuggestion) {
  More("leaf.segment.enabel=true\n");
  EXPECT_EQ(Errors(),
            "leaf.properties:7: unknown key \"leaf.segment.enabel\" (did you mean "
            "\"leaf.segment.enable\"?)");
  More("leaf.zk.list=a:1\n");
  EXPECT_THAT(Errors(), HasSubstr("leaf.properties:7: unknown key \"leaf.zk.list\""));
}

TEST_F(LeafPropertiesTest, KeysOfOthersWarn) {
  More("spring.freemarker.cache=false\nserver.prot=1\nlogging.level=x\n");
  EXPECT_THAT(Warnings(),
              AllOf(HasSubstr("leaf.properties:7: unknown key \"spring.freemarker.cache\""),
                    HasSubstr("leaf.properties:8: unknown key \"server.prot\" (did you mean "
                              "\"server.port\"?); not used"),
                    HasSubstr("leaf.properties:9: ")));
}

TEST_F(LeafPropertiesTest, OfARepeatedKeyTheLastCountsWithAWarning) {
  More("leaf.jdbc.username=second\n");
  EXPECT_EQ(Load().store.user, "second");
  EXPECT_THAT(Warnings(), HasSubstr("leaf.properties:7: leaf.jdbc.username is given again; this "
                                    "one counts, not that of line 4"));
}

TEST_F(LeafPropertiesTest, TheUserMustBeThere) {
  Without("username");
  EXPECT_EQ(Errors(), "leaf.properties:3: leaf.jdbc.username is missing");
}

TEST_F(LeafPropertiesTest, ThePasswordKeepsItsBlanksAndTheUrlDoesNot) {
  Leaf("leaf.jdbc.url=jdbc:mysql://db/ids \nleaf.jdbc.username=leaf\nleaf.jdbc.password=a b \n" +
       std::string(kSnowflakeOff));
  EXPECT_EQ(Load().store.password, "a b ");
  EXPECT_EQ(Load().store.database, "ids");
  EXPECT_THAT(Warnings(), AllOf(HasSubstr("leaf.properties:1: leaf.jdbc.url ends in blanks"),
                                HasSubstr("leaf.properties:3: the password ends in a blank")));
}

TEST_F(LeafPropertiesTest, VariablesAreNotExpanded) {
  Without("password", "leaf.jdbc.password=${HOME}\n");
  EXPECT_EQ(Load().store.password, "${HOME}");
}

TEST_F(LeafPropertiesTest, APasswordFileReplacesThePassword) {
  Leaf(kUsual);
  environment["LEAFD_STORE_PASSWORD_FILE"] = Write("password", "from file\n", 0400);
  EXPECT_EQ(Load().store.password, "from file");
}

TEST_F(LeafPropertiesTest, SnowflakeIsOnLeafsZooKeeperUnderLeafsNames) {
  Without("snowflake",
          "leaf.snowflake.enable=true\nleaf.snowflake.zk.address= zk1,[::1]:2182/a b%2F \n"
          "leaf.snowflake.port= 08080 \nunrelated=1\n");
  environment["LEAFD_SNOWFLAKE_IDENTITY"] = "10.0.0.7:9";
  Config config = Load();
  EXPECT_TRUE(config.snowflake.enabled);
  const RegistryOptions& registry = config.snowflake.registry;
  EXPECT_EQ(registry.kind, "zookeeper");
  EXPECT_EQ(registry.servers, "zk1:2181,[::1]:2182");
  EXPECT_EQ(registry.chroot, "/a b%2F") << "as Java reads it, without escapes";
  EXPECT_TRUE(registry.leaf_layout);
  EXPECT_FALSE(registry.private_nodes);
  EXPECT_EQ(registry.cluster, "com.example");
  EXPECT_EQ(registry.identity, "10.0.0.7:9");
  EXPECT_EQ(config.snowflake.unavailable_reason, "") << "other hosts can see this registry";
  EXPECT_THAT(Item(config, "snowflake.registry").origin, HasSubstr("leaf.properties:7"));
}

TEST_F(LeafPropertiesTest, ThisServersNodeIsItsAddressAndLeafsPort) {
  Without("snowflake", "leaf.snowflake.zk.address=zk\nleaf.snowflake.port= 08080 \n");
  const std::vector<std::string> addresses = HostAddresses();
  if (addresses.empty()) {
    EXPECT_THAT(Errors(), HasSubstr("LEAFD_SNOWFLAKE_IDENTITY=ADDRESS:PORT"));
    return;
  }
  EXPECT_EQ(Load().snowflake.registry.identity, addresses.front() + ":8080");
  EXPECT_EQ(addresses.size() > 1,
            Warnings().find("this host has several addresses") != std::string::npos);
}

TEST_F(LeafPropertiesTest, AClusterWithoutANameIsCalledNullAsLeafsIs) {
  std::string text = "leaf.snowflake.zk.address=zk:1/\nleaf.snowflake.port=1\n";
  text += "leaf.segment.enable=false\n";
  Leaf(text);
  environment["LEAFD_SNOWFLAKE_IDENTITY"] = "10.0.0.7:9";
  EXPECT_EQ(Load().snowflake.registry.cluster, "null");
  EXPECT_EQ(Load().snowflake.registry.chroot, "");
  EXPECT_THAT(Warnings(), HasSubstr("leaf.properties: leaf.name is missing: the cluster is called "
                                    "\"null\", as Leaf's is then"));
  environment["LEAFD_SNOWFLAKE_NAME"] = "ids";
  EXPECT_EQ(Load().snowflake.registry.cluster, "ids");
  EXPECT_EQ(Warnings(), "");
}

TEST_F(LeafPropertiesTest, TheEnvironmentReplacesWhatLeafsFileLacks) {
  Leaf("leaf.name=a\nleaf.segment.enable=false\n");
  environment["LEAFD_SNOWFLAKE_REGISTRY"] = "fixed:5";
  EXPECT_THAT(Errors(),
              AllOf(HasSubstr("leaf.snowflake.port is missing"), Not(HasSubstr("zk.address"))));
  environment["LEAFD_SNOWFLAKE_IDENTITY"] = "h:1";
  EXPECT_EQ(Load().snowflake.registry.worker, 5);
  Leaf("leaf.name=a\nleaf.segment.enable=false\nleaf.snowflake.zk.address=a b\n");
  EXPECT_EQ(Load().snowflake.registry.kind, "fixed");
  environment["LEAFD_SNOWFLAKE_REGISTRY"] = "zookeeper://zk/?layout=native";
  EXPECT_FALSE(Load().snowflake.registry.leaf_layout);
}

TEST_F(LeafPropertiesTest, SnowflakesAddressAndPortAreValidated) {
  Without("snowflake", "leaf.snowflake.enable=true\n");
  EXPECT_THAT(
      Errors(),
      AllOf(
          HasSubstr(
              "leaf.properties:6: snowflake mode is on, but leaf.snowflake.zk.address is missing"),
          HasSubstr("leaf.snowflake.port is missing"), HasSubstr("leaf.snowflake.enable=false")));
  Without("snowflake", "leaf.snowflake.address=zk:x\nleaf.snowflake.port=eighty\n");
  EXPECT_THAT(Errors(),
              AllOf(HasSubstr("leaf.properties:6: leaf.snowflake.address must be HOST:PORT"),
                    HasSubstr("leaf.properties:7: leaf.snowflake.port must be a number")));
  for (const char* address :
       {",", "a,", ":2181", "a:0", "a:65536", "a::1", "a b", "[::1", "/chroot"}) {
    Without("snowflake",
            "leaf.snowflake.zk.address=" + std::string(address) + "\nleaf.snowflake.port=1\n");
    EXPECT_THAT(Errors(), HasSubstr("must be HOST:PORT")) << address;
  }
}

TEST_F(LeafPropertiesTest, SnowflakeCanBeSwitchedOffFromOutside) {
  Without("snowflake");
  environment["LEAFD_SNOWFLAKE_ENABLED"] = "false";
  EXPECT_EQ(Load().snowflake.disabled_reason, "switched off by configuration");
  EXPECT_THAT(Warnings(), Not(HasSubstr("snowflake")));
}

TEST_F(LeafPropertiesTest, APublicFileWithAPasswordWarns) {
  Leaf(kUsual, 0644);
  EXPECT_THAT(Warnings(),
              HasSubstr("leaf.properties:5: every user of this host can read the password"));
  Leaf(kUsual, 0640);
  EXPECT_THAT(Warnings(), Not(HasSubstr("every user")));
}

TEST_F(LeafPropertiesTest, NoOutputHoldsThePassword) {
  More("leaf.segment.password=\\u0068unter2\nleaf.unknown=hunter2\nserver.port=hunter2\n");
  EXPECT_THAT(Errors(), Not(HasSubstr("hunter2")));
  Leaf(kUsual, 0644);
  const Config config = Load();
  for (const auto& item : config.items)
    EXPECT_THAT(item.value + item.origin, Not(HasSubstr("hunter2")));
  EXPECT_THAT(Warnings() + Notices(), Not(HasSubstr("hunter2")));
  EXPECT_THAT(config.store.display_url, Not(HasSubstr("hunter2")));
}

/// The same file as Windows and Java tools write it.
TEST_F(LeafPropertiesTest, EveryFormOfTheSameFileMeansTheSame) {
  const std::string url = "jdbc:mysql://db:3307/ids?useSSL=false";
  const std::string rest =
      "leaf.jdbc.username=leaf\nleaf.jdbc.password=caf\\u00e9\nleaf.snowflake.enable=false";
  const auto crlf = [](std::string text, const std::string& end) {
    std::string result;
    for (const char c : text) result += c == '\n' ? end : std::string(1, c);
    return result;
  };
  const std::string plain = "leaf.jdbc.url=" + url + "\n" + rest;
  const std::vector<std::string> forms = {
      plain,
      plain + "\n",
      "\xEF\xBB\xBF" + plain,
      "\xEF\xBB\xBF" + crlf(plain, "\r\n"),
      crlf(plain, "\r\n"),
      crlf(plain, "\r"),
      "leaf.jdbc.url : " + url + "\n" + rest,
      "leaf.jdbc.url " + url + "\n" + rest,
      "leaf.jdbc.url=jdbc:mysql://db:3307/\\\n    ids?useSSL=false\n" + rest,
      "leaf.jdbc.url=jdbc\\:mysql\\://db\\:3307/ids?useSSL\\=false\n" + rest,
      "leaf.jdbc.url=first\nleaf.jdbc.url=" + url + "\n" + rest};
  for (const std::string& form : forms) {
    Leaf(form);
    const Config config = Load();
    EXPECT_EQ(config.store.display_url, "mysql://leaf:***@db:3307/ids?ssl-mode=disabled")
        << testing::PrintToString(form);
    EXPECT_EQ(config.store.password, "caf\u00e9") << testing::PrintToString(form);
  }
}

TEST_F(LeafPropertiesTest, AFileOfAnotherEncodingIsRefusedWithItsLine) {
  Leaf(std::string("\xFF\xFEl\0e\0", 6));
  EXPECT_THAT(Errors(), HasSubstr("leaf.properties:1: the file is UTF-16"));
  Leaf(std::string("leaf.name=a\nleaf.jdbc.url=\0", 27));
  EXPECT_THAT(Errors(), HasSubstr("leaf.properties:2: a NUL byte"));
}

}  // namespace
}  // namespace leaf::config
