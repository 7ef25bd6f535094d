#include "config/config_snowflake.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "config/config_files.h"
#include "config/config_test_util.h"

namespace leaf::config {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SnowflakeConfigTest : public ConfigTest {
 protected:
  void Set(const std::string& key, const std::string& value) {
    command_line.settings.emplace_back(key, value);
  }
  /// What is wrong with one value of one key.
  std::string ErrorOf(const std::string& key, const std::string& value) {
    command_line.settings = {{key, value}};
    return Errors();
  }
  RegistryOptions RegistryOf(const std::string& url) {
    command_line.settings = {{"snowflake.registry", url}, {"snowflake.identity", "h:1"}};
    return Load().snowflake.registry;
  }
  std::string Reason(const std::vector<std::pair<std::string, std::string>>& settings) {
    command_line.settings = settings;
    return Load().snowflake.unavailable_reason;
  }
};

TEST_F(SnowflakeConfigTest, ByDefaultWorkersAreKeptInTheStore) {
  const Config config = Load();
  EXPECT_TRUE(config.snowflake.enabled);
  EXPECT_EQ(config.snowflake.layout, kLeafLayout);
  EXPECT_EQ(config.snowflake.registry.kind, "store");
  EXPECT_EQ(config.snowflake.registry.cluster, "leaf");
  EXPECT_EQ(config.snowflake.registry.identity, HostName() + ":8080");
  EXPECT_EQ(config.snowflake.lease, seconds(600));
  EXPECT_EQ(config.snowflake.drift, seconds(5));
  EXPECT_EQ(config.snowflake.wait, seconds(3));
  EXPECT_EQ(config.snowflake.max_count, 10000);
  EXPECT_TRUE(KeepsWorkersInStore(config));
}

TEST_F(SnowflakeConfigTest, EveryKeyIsReadFromToml) {
  Toml(R"([snowflake]
layout = "custom"
bits = "39/8/16"
epoch_ms = 1577836800000
tick = "10ms"
registry = "zookeeper://leaf:${PW}@zk1,zk2:2182/ids?layout=native"
name = "orders"
identity = "10.0.0.7:80"
lease = "90s"
drift = "250ms"
wait = "1s"
max_count = 77
)");
  environment["PW"] = "p";
  Set("store.timeout", "700ms");
  const Config config = Load();
  EXPECT_EQ(config.snowflake.layout, (Layout{"custom", 1577836800000, 39, 8, 16, 10}));
  const RegistryOptions& registry = config.snowflake.registry;
  EXPECT_EQ(registry.kind, "zookeeper");
  EXPECT_EQ(registry.servers, "zk1:2181,zk2:2182");
  EXPECT_EQ(registry.chroot, "/ids");
  EXPECT_EQ(registry.user, "leaf");
  EXPECT_EQ(registry.password, "p");
  EXPECT_FALSE(registry.leaf_layout);
  EXPECT_TRUE(registry.private_nodes) << "as there is a user";
  EXPECT_EQ(registry.timeout, milliseconds(700));
  EXPECT_EQ(registry.cluster, "orders");
  EXPECT_EQ(registry.identity, "10.0.0.7:80");
  EXPECT_EQ(config.snowflake.lease, seconds(90));
  EXPECT_EQ(config.snowflake.drift, milliseconds(250));
  EXPECT_EQ(config.snowflake.wait, seconds(1));
  EXPECT_EQ(config.snowflake.max_count, 77);
  EXPECT_FALSE(KeepsWorkersInStore(config));
}

TEST_F(SnowflakeConfigTest, BoundsAreKept) {
  for (const auto& [key, value] : {std::pair{"snowflake.lease", "999ms"},
                                   {"snowflake.lease", "25h"},
                                   {"snowflake.lease", "600"},
                                   {"snowflake.drift", "61m"},
                                   {"snowflake.wait", "0s"},
                                   {"snowflake.wait", "11m"},
                                   {"snowflake.max_count", "0"},
                                   {"snowflake.max_count", "100001"},
                                   {"snowflake.max_count", "1e3"},
                                   {"snowflake.tick", "0s"},
                                   {"snowflake.tick", "61s"},
                                   {"snowflake.epoch_ms", "-1"},
                                   {"snowflake.layout", "leaf64"},
                                   {"snowflake.enabled", "yes"}}) {
    EXPECT_THAT(ErrorOf(key, value), HasSubstr("flag --set: " + std::string(key))) << value;
  }
}

TEST_F(SnowflakeConfigTest, ACustomLayoutNeedsItsBits) {
  EXPECT_EQ(ErrorOf("snowflake.layout", "custom"),
            "flag --set: snowflake.layout = \"custom\" needs snowflake.bits = "
            "\"TIME/WORKER/SEQUENCE\"");
  for (const char* bits : {"41", "41/10", "41/10/12/1", "0/10/12", "41/0/12", "41/10/0", "42/10/12",
                           "30/21/12", "30/10/23", "a/b/c", "41/10/12 ", "-1/10/12", "41//12"}) {
    command_line.settings = {{"snowflake.layout", "custom"}, {"snowflake.bits", bits}};
    EXPECT_THAT(Errors(), HasSubstr("flag --set: snowflake.bits: ")) << bits;
  }
  command_line.settings = {
      {"snowflake.layout", "custom"}, {"snowflake.bits", "40/20/3"}, {"snowflake.tick", "1500us"}};
  EXPECT_EQ(Errors(), "flag --set: snowflake.tick must be whole milliseconds");
  command_line.settings = {{"snowflake.layout", "custom"}, {"snowflake.bits", "40/20/3"}};
  EXPECT_EQ(Load().snowflake.layout, (Layout{"custom", 1288834974657, 40, 20, 3, 1}));
}

TEST_F(SnowflakeConfigTest, ANamedLayoutHasNoBitsOfYours) {
  command_line.settings = {{"snowflake.layout", "js53"}};
  EXPECT_EQ(Load().snowflake.layout, kJs53Layout);
  for (const auto& [key, value] : {std::pair{"snowflake.bits", "41/5/7"},
                                   {"snowflake.epoch_ms", "5"},
                                   {"snowflake.tick", "2ms"}}) {
    command_line.settings = {{"snowflake.layout", "js53"}, {key, value}};
    EXPECT_EQ(Errors(), "flag --set: " + std::string(key) +
                            " belongs to snowflake.layout = \"custom\", and the layout is "
                            "\"js53\"");
  }
}

TEST_F(SnowflakeConfigTest, AFixedWorkerIsOneOfTheLayouts) {
  EXPECT_EQ(RegistryOf("fixed:1023").worker, 1023);
  EXPECT_EQ(ErrorOf("snowflake.registry", "fixed:1024"),
            "flag --set: snowflake.registry: the layout holds workers 0 to 1023");
  command_line.settings = {{"snowflake.registry", "fixed:32"}, {"snowflake.layout", "js53"}};
  EXPECT_THAT(Errors(), HasSubstr("the layout holds workers 0 to 31"));
  command_line.settings = {{"snowflake.registry", "fixed:1048575"},
                           {"snowflake.layout", "custom"},
                           {"snowflake.bits", "40/20/3"}};
  EXPECT_EQ(Load().snowflake.registry.worker, 1048575);
}

TEST_F(SnowflakeConfigTest, AVariableMakesAFixedWorkerInTomlOnly) {
  Toml("snowflake.registry = \"fixed:${WORKER}\"\n");
  EXPECT_THAT(Errors(), HasSubstr("leafd.toml:1: snowflake.registry: the variable WORKER"));
  environment["WORKER"] = "12";
  EXPECT_EQ(Load().snowflake.registry.worker, 12);
  for (const char* worker : {"", "-1", "1024", " 1", "1e3", "0x10", "\xEF\xBC\x91"}) {
    environment["WORKER"] = worker;
    EXPECT_THAT(Errors(), HasSubstr("leafd.toml:1: snowflake.registry: ")) << worker;
  }
  environment["LEAFD_SNOWFLAKE_REGISTRY"] = "fixed:${WORKER}";
  environment["WORKER"] = "12";
  EXPECT_THAT(Errors(), HasSubstr("environment LEAFD_SNOWFLAKE_REGISTRY: snowflake.registry: "
                                  "fixed:N needs a worker"));
}

TEST_F(SnowflakeConfigTest, ZooKeeperHasItsNativeLayoutUnlessAskedOtherwise) {
  EXPECT_FALSE(RegistryOf("zookeeper://zk/").leaf_layout);
  EXPECT_TRUE(RegistryOf("zookeeper://zk/?layout=leaf").leaf_layout);
  EXPECT_FALSE(RegistryOf("zookeeper://zk/").private_nodes);
  EXPECT_TRUE(RegistryOf("zookeeper://u:p@zk/").private_nodes);
  EXPECT_FALSE(RegistryOf("zookeeper://u:p@zk/?acl=world").private_nodes);
}

TEST_F(SnowflakeConfigTest, ANameIsOnePartOfAPath) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("a\nb"),
        std::string("\x7F"), std::string("\xFF"), std::string(129, 'a')}) {
    EXPECT_THAT(ErrorOf("snowflake.name", name),
                HasSubstr("flag --set: snowflake.name must be 1 to 128 bytes of UTF-8"));
  }
  for (const std::string& name :
       {std::string("com.example"), std::string("caf\xC3\xA9 1"), std::string(128, 'a')}) {
    command_line.settings = {{"snowflake.name", name}};
    EXPECT_EQ(Load().snowflake.registry.cluster, name);
  }
}

TEST_F(SnowflakeConfigTest, AnIdentityIsOneWord) {
  for (const std::string& identity :
       {std::string(), std::string("a b"), std::string("a/b"), std::string("a\"b"),
        std::string("a\\b"), std::string("a\tb"), std::string("\xFF"), std::string(201, 'a')}) {
    EXPECT_THAT(ErrorOf("snowflake.identity", identity),
                HasSubstr("flag --set: snowflake.identity must be 1 to 200 bytes"));
  }
  for (const std::string& identity : {std::string("10.0.0.1:8080"), std::string("node-7"),
                                      std::string("[::1]:1"), std::string(200, 'a')}) {
    command_line.settings = {{"snowflake.identity", identity}};
    EXPECT_EQ(Load().snowflake.registry.identity, identity);
  }
}

TEST_F(SnowflakeConfigTest, TheIdentityIsTheHostAndTheFirstPort) {
  command_line.settings = {{"server.listen", "unix:/run/a:7,[::1]:81,127.0.0.1:82"}};
  EXPECT_EQ(Load().snowflake.registry.identity, HostName() + ":81");
  command_line.settings = {{"server.listen", "unix:/run/a"}};
  EXPECT_EQ(Load().snowflake.registry.identity, HostName());
  EXPECT_THAT(ErrorOf("server.listen", "8080"), Not(HasSubstr("identity")));
  EXPECT_THAT(ErrorOf("server.listen", "http://h:80/"), Not(HasSubstr("identity")));
}

TEST_F(SnowflakeConfigTest, LeafsNodeNeedsAnAddress) {
  EXPECT_EQ(ErrorOf("snowflake.registry", "zookeeper://zk/?layout=leaf"),
            "flag --set: ZooKeeper in Leaf's layout needs snowflake.identity = \"ADDRESS:PORT\", "
            "the name of this server's node");
  for (const char* identity : {"h", ":1", "h:"}) {
    command_line.settings = {{"snowflake.registry", "zookeeper://zk/?layout=leaf"},
                             {"snowflake.identity", identity}};
    EXPECT_THAT(Errors(), HasSubstr("snowflake.identity must be ADDRESS:PORT")) << identity;
  }
  EXPECT_EQ(RegistryOf("zookeeper://zk/?layout=leaf").identity, "h:1");
}

TEST_F(SnowflakeConfigTest, ALocalRegistryIsNotTakenByDefaultWhereOtherHostsCome) {
  const std::pair<std::string, std::string> open = {"server.listen", "127.0.0.1:1,0.0.0.0:2"};
  EXPECT_THAT(Reason({open}), HasSubstr("Set snowflake.registry"));
  EXPECT_THAT(Reason({open, {"--store", "memory:"}, {"store.min_durability", "volatile"}}),
              HasSubstr("Set snowflake.registry"));
  EXPECT_THAT(Reason({{"server.listen", "[::]:1"}}), HasSubstr("Set snowflake.registry"));
  EXPECT_EQ(Reason({{"server.listen", "127.0.0.1:1,[::1]:1,unix:/a,localhost:2"}}), "");
  EXPECT_EQ(Reason({open, {"snowflake.registry", "store"}}), "");
  EXPECT_EQ(Reason({open, {"snowflake.registry", "fixed:1"}}), "");
  EXPECT_EQ(Reason({open, {"snowflake.registry", "zookeeper://zk/"}}), "");
  EXPECT_EQ(Reason({open, {"--store", "mysql://u:p@h/d"}}), "");
  EXPECT_EQ(Reason({open, {"snowflake.enabled", "false"}}), "");
  environment["LEAFD_SNOWFLAKE_REGISTRY"] = "store";
  EXPECT_EQ(Reason({open}), "");
}

TEST_F(SnowflakeConfigTest, AnAdminListenerForOtherHostsServesNoIds) {
  EXPECT_EQ(Reason({{"server.admin_listen", "0.0.0.0:1"}}), "");
}

TEST_F(SnowflakeConfigTest, AShortLeaseWarns) {
  command_line.settings = {{"snowflake.lease", "9999ms"}};
  EXPECT_THAT(Warnings(),
              HasSubstr("flag --set: snowflake.lease is 9s999ms: snowflake mode fails"));
  command_line.settings = {{"snowflake.lease", "10s"}};
  EXPECT_EQ(Warnings(), "");
  command_line.settings = {{"snowflake.lease", "2s"}, {"snowflake.enabled", "false"}};
  EXPECT_EQ(Warnings(), "");
}

TEST_F(SnowflakeConfigTest, RegistryNameAndIdentityOfAModeThatIsOffAreNotJudged) {
  command_line.settings = {{"snowflake.enabled", "false"},
                           {"snowflake.registry", "zookeeper://u:hunter2@"},
                           {"snowflake.name", ""},
                           {"snowflake.identity", "me"}};
  const Config config = Load();
  EXPECT_FALSE(config.snowflake.enabled);
  EXPECT_EQ(config.snowflake.disabled_reason, "switched off by configuration");
  EXPECT_FALSE(KeepsWorkersInStore(config));
  EXPECT_EQ(Item(config, "snowflake.registry").value, "\"***\"");
  EXPECT_EQ(Item(config, "snowflake.identity").value, "\"me\"");
  command_line.settings[1].second = "zookeeper://u:hunter2@zk/";
  EXPECT_EQ(Item(Load(), "snowflake.registry").value, R"("zookeeper://u:***@zk:2181/")");
}

TEST_F(SnowflakeConfigTest, ItemsShowTheIdentityAndHideThePassword) {
  Toml("snowflake.registry = \"zookeeper://u:hunter2@zk/?layout=native\"\n");
  const Config config = Load();
  EXPECT_EQ(Item(config, "snowflake.registry").value,
            R"("zookeeper://u:***@zk:2181/?layout=native")");
  EXPECT_EQ(Item(config, "snowflake.registry").origin, "leafd.toml:1");
  EXPECT_EQ(Item(config, "snowflake.identity").value, "\"" + HostName() + ":8080\"");
  for (const auto& item : config.items) EXPECT_THAT(item.value, Not(HasSubstr("hunter2")));
}

TEST_F(SnowflakeConfigTest, APasswordThatWasHiddenWarns) {
  Toml("snowflake.registry = \"zookeeper://u:***@zk/\"\n");
  EXPECT_THAT(Warnings(), HasSubstr("leafd.toml:1: the password of snowflake.registry is \"***\""));
}

TEST_F(SnowflakeConfigTest, APublicFileWithThePasswordOfARegistryWarns) {
  const std::string hint = "every user of this host can read the password of snowflake.registry";
  Toml("snowflake.registry = \"zookeeper://u:hunter2@zk/\"\n", 0644);
  EXPECT_THAT(Warnings(), AllOf(HasSubstr("leafd.toml:1: " + hint), Not(HasSubstr("hunter2"))));
  Toml("snowflake.registry = \"zookeeper://u:hunter2@zk/\"\n", 0640);
  EXPECT_EQ(Warnings(), "");
  Toml("snowflake.registry = \"zookeeper://u:${PW}@zk/\"\n", 0644);
  environment["PW"] = "hunter2";
  EXPECT_EQ(Warnings(), "");
}

}  // namespace
}  // namespace leaf::config
