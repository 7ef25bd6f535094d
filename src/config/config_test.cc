#include "config/config.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>

#include "config/config_test_util.h"

namespace leaf::config {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using LoadTest = ConfigTest;

TEST_F(LoadTest, WithoutAnySourceLeafdRunsOnSqlite) {
  const Config config = Load();
  EXPECT_THAT(config.server.listen, ElementsAre("127.0.0.1:8080"));
  EXPECT_EQ(config.server.admin_listen, "127.0.0.1:8081");
  EXPECT_EQ(config.server.state_dir, folder + "/state");
  EXPECT_EQ(config.store.kind, "sqlite");
  EXPECT_EQ(config.store.path, folder + "/state/leafd.db");
  EXPECT_EQ(config.store.min_durability, Durability::kPower);
  EXPECT_TRUE(config.segment.auto_create);
  EXPECT_EQ(config.segment.policy, "leaf");
  EXPECT_TRUE(config.snowflake.enabled);
  EXPECT_EQ(config.snowflake.disabled_reason, "");
  EXPECT_EQ(config.snowflake.unavailable_reason, "");
  EXPECT_FALSE(config.compat.leaf || config.compat.disabled_returns_zero);
  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_THAT(config.notices, IsEmpty());
}

TEST_F(LoadTest, EveryTypeIsReadFromToml) {
  Toml(R"(
[server]
listen = ["127.0.0.1:1", "unix:/run/leafd.sock"]
threads = 4
probes_on_main = true
max_body = "1MiB"
max_header = 4096
drain = "1m30s"
[store]
url = "mysql://leaf:pw@db/ids"
failover_skip = 5000
min_durability = "replicated"
[log]
format = "json"
level = "warn"
)");
  const Config config = Load();
  EXPECT_THAT(config.server.listen, ElementsAre("127.0.0.1:1", "unix:/run/leafd.sock"));
  EXPECT_EQ(config.server.threads, 4);
  EXPECT_TRUE(config.server.probes_on_main);
  EXPECT_EQ(config.server.max_body, 1 << 20);
  EXPECT_EQ(config.server.max_header, 4096);
  EXPECT_EQ(config.server.drain, seconds(90));
  EXPECT_EQ(config.failover_skip, 5000);
  EXPECT_EQ(config.store.min_durability, Durability::kReplicated);
  EXPECT_EQ(config.log.format, log::Format::kJson);
  EXPECT_EQ(config.log.level, log::Level::kWarn);
  EXPECT_EQ(config.store.host, "db");
  EXPECT_FALSE(config.segment.auto_create) << "not on a shared store";
}

TEST_F(LoadTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  Toml("segment.step = 1\nsegment.wait = \"1100ms\"\nsegment.max_list = 11\n");
  environment["LEAFD_SEGMENT_STEP"] = "2";
  environment["LEAFD_SEGMENT_WAIT"] = "1200ms";
  command_line.settings = {{"segment.step", "3"}};
  const Config config = Load();
  EXPECT_EQ(config.segment.step, 3);
  EXPECT_EQ(config.segment.wait, milliseconds(1200));
  EXPECT_EQ(config.segment.max_list, 11);
  EXPECT_EQ(config.segment.max_count, 1000000);
  EXPECT_EQ(Item(config, "segment.step").origin, "flag --set");
  EXPECT_EQ(Item(config, "segment.wait").origin, "environment LEAFD_SEGMENT_WAIT");
  EXPECT_EQ(Item(config, "segment.max_list").origin, "leafd.toml:3");
  EXPECT_EQ(Item(config, "segment.max_count").origin, "default");
}

TEST_F(LoadTest, TheShortFlagsAreTheirKeys) {
  command_line.settings = {
      {"--listen", "127.0.0.1:1"}, {"--store", "sqlite:/tmp/a.db"}, {"--listen", "127.0.0.1:2"}};
  const Config config = Load();
  EXPECT_THAT(config.server.listen, ElementsAre("127.0.0.1:1", "127.0.0.1:2"));
  EXPECT_EQ(config.store.path, "/tmp/a.db");
  EXPECT_EQ(Item(config, "server.listen").origin, "flag --listen");
}

TEST_F(LoadTest, ListsAreCommaSeparatedInTheEnvironment) {
  environment["LEAFD_SERVER_LISTEN"] = "127.0.0.1:1, [::1]:1";
  EXPECT_THAT(Load().server.listen, ElementsAre("127.0.0.1:1", "[::1]:1"));
}

TEST_F(LoadTest, AnEmptyAdminListenerIsOff) {
  environment["LEAFD_SERVER_ADMIN_LISTEN"] = "";
  EXPECT_EQ(Load().server.admin_listen, "");
}

TEST_F(LoadTest, EveryFindingIsReportedWithItsPlace) {
  Toml(
      "segmnt.step = 1\n[server]\nthreads = \"4\"\ndrain = 10\nmax_body = \"1GB\"\n[log]\nlevel = "
      "\"loud\"\n[segment]\n"
      "step = 0\n");
  environment["LEAFD_SEGMENT_WAIT"] = "3";
  command_line.settings = {{"segment.polcy", "leaf"}, {"store.table", "a;b"}};
  const std::string errors = Errors();
  EXPECT_THAT(
      errors,
      HasSubstr("leafd.toml:1: unknown key \"segmnt.step\" (did you mean \"segment.step\"?)"));
  EXPECT_THAT(errors, HasSubstr("leafd.toml:3: server.threads is a string, needs an integer"));
  EXPECT_THAT(
      errors,
      HasSubstr("leafd.toml:4: server.drain is an integer, needs a duration such as \"10s\""));
  EXPECT_THAT(errors, HasSubstr("leafd.toml:5: server.max_body needs a size such as \"64KiB\""));
  EXPECT_THAT(errors, HasSubstr("leafd.toml:7: log.level must be one of debug, info, warn, error"));
  EXPECT_THAT(errors, HasSubstr("leafd.toml:9: segment.step must be between 1 and 1000000000"));
  EXPECT_THAT(errors, HasSubstr("environment LEAFD_SEGMENT_WAIT: segment.wait needs a duration"));
  EXPECT_THAT(
      errors,
      HasSubstr("flag --set: unknown key \"segment.polcy\" (did you mean \"segment.policy\"?)"));
  EXPECT_THAT(errors, HasSubstr("flag --set: store.table must be"));
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 8) << errors;
}

TEST_F(LoadTest, ASyntaxErrorHasLineAndColumnAndTheRestIsStillChecked) {
  Toml("segment.step = 1\nsegment.wait = 3s\n");
  command_line.settings = {{"segment.stepp", "1"}};
  EXPECT_THAT(Errors(),
              AllOf(HasSubstr("leafd.toml:2:17: "), HasSubstr("unknown key \"segment.stepp\"")));
  Toml("a = 1\na = 2\n");
  EXPECT_THAT(Errors(), HasSubstr("leafd.toml:2:"));
}

TEST_F(LoadTest, ASyntaxErrorRepeatsNoSecret) {
  for (const char* text :
       {"store.url = mysql://leaf:hunter2@db/ids", "store.url = \"mysql://leaf:hunter2@db/ids",
        "store.url = \"mysql://leaf:hunter2@db/ids\" hunter2", "store.url = \"\\hunter2\"",
        "hunter2", "store.url = hunter2"}) {
    Toml(text);
    EXPECT_THAT(Errors(), AllOf(HasSubstr("leafd.toml:1:"), Not(HasSubstr("hunter2")))) << text;
  }
}

TEST_F(LoadTest, AKeyIsGivenOnceAFile) {
  Toml("\"segment.step\" = 1\n[segment]\nstep = 2\n");
  EXPECT_EQ(Errors(), "leafd.toml:3: segment.step is given twice");
}

TEST_F(LoadTest, AFlagIsGivenOnce) {
  command_line.settings = {{"segment.step", "1"}, {"segment.step", "2"}};
  EXPECT_EQ(Errors(), "flag --set: segment.step is given twice");
  command_line.settings = {{"--store", "sqlite:a"}, {"store.url", "sqlite:b"}};
  EXPECT_EQ(Errors(), "flag --set: store.url is given twice");
  command_line.settings = {{"server.listen", "127.0.0.1:1"}, {"--listen", "127.0.0.1:2"}};
  EXPECT_EQ(Errors(), "flag --listen: server.listen is given twice");
}

TEST_F(LoadTest, SectionsMayBeEmptyAndAreNoKeys) {
  Toml("[segment]\n[tls]\n");
  Load();
  Toml("segment = 5\n");
  EXPECT_EQ(Errors(), "leafd.toml:1: segment is a section, not a key");
  Toml("[segments]\n");
  EXPECT_THAT(Errors(), HasSubstr("leafd.toml:1: unknown key \"segments\""));
  Toml("[segment.step]\n");
  EXPECT_THAT(Errors(), HasSubstr("leafd.toml:1: segment.step is a table, needs an integer"));
  Toml("[[segment]]\nstep = 1\n");
  EXPECT_THAT(Errors(), HasSubstr("leafd.toml:1: segment is a section, not a key"));
}

TEST_F(LoadTest, AnUnknownVariableIsAWarning) {
  environment["LEAFD_SEGMENT_STEPP"] = "hunter2";
  environment["LEAFD_PORT_8080_TCP_ADDR"] = "10.0.0.1";
  environment["NOT_LEAFD_X"] = "";
  EXPECT_THAT(
      Warnings(),
      AllOf(
          HasSubstr("environment LEAFD_SEGMENT_STEPP: no key has this name; not used (did you mean "
                    "\"LEAFD_SEGMENT_STEP\"?)"),
          HasSubstr("LEAFD_PORT_8080_TCP_ADDR"), Not(HasSubstr("NOT_LEAFD")),
          Not(HasSubstr("hunter2"))));
}

TEST_F(LoadTest, WhatALaterVersionHasIsRefusedByName) {
  Toml(
      "segment.headroom = \"10m\"\ntls.cert = \"/a\"\nauth.tokens_file = "
      "\"/a\"\n");
  command_line.settings = {{"segment.policy", "headroom"}, {"tls.key", "/a"}};
  EXPECT_EQ(Errors(),
            "leafd.toml:1: not in this version: segment.headroom\n"
            "leafd.toml:2: not in this version: tls.cert\n"
            "leafd.toml:3: not in this version: auth.tokens_file\n"
            "flag --set: not in this version: segment.policy headroom\n"
            "flag --set: not in this version: tls.key");
}

TEST_F(LoadTest, LaterListenersAreRefusedByName) {
  command_line.settings = {{"--listen", "tls://0.0.0.0:1"}, {"--listen", "resp://0.0.0.0:2"}};
  EXPECT_EQ(Errors(),
            "flag --listen: not in this version: server.listen tls://\n"
            "flag --listen: not in this version: server.listen resp://");
}

TEST_F(LoadTest, SnowflakeCanBeSwitchedOff) {
  Toml("snowflake.enabled = false\n");
  EXPECT_FALSE(Load().snowflake.enabled);
  EXPECT_EQ(Load().snowflake.disabled_reason, "switched off by configuration");
}

TEST_F(LoadTest, MemoryMustBeWanted) {
  command_line.settings = {{"--store", "memory:"}};
  EXPECT_THAT(Errors(), AllOf(HasSubstr("flag --store: memory:"),
                              HasSubstr("store.min_durability = \"volatile\"")));
  command_line.settings.emplace_back("store.min_durability", "volatile");
  EXPECT_EQ(Load().store.kind, "memory");
  EXPECT_TRUE(Load().segment.auto_create);
}

TEST_F(LoadTest, SqliteIsNeverReplicated) {
  command_line.settings = {{"store.min_durability", "replicated"}};
  EXPECT_THAT(Errors(), HasSubstr("sqlite keeps one copy"));
}

TEST_F(LoadTest, AutoCreateCanBeSetOnAnyStore) {
  command_line.settings = {{"--store", "mysql://u:p@h/d"}, {"segment.auto_create", "true"}};
  EXPECT_TRUE(Load().segment.auto_create);
  command_line.settings = {{"segment.auto_create", "false"}};
  EXPECT_FALSE(Load().segment.auto_create);
}

TEST_F(LoadTest, TheTableHasAPlainName) {
  for (const char* name : {"", "a b", "a`b", "a;b", "a.b.c", ".a", "a.", "caf\u00e9", "\"a\""}) {
    command_line.settings = {{"store.table", name}, {"--store", "mysql://u:p@h/d"}};
    EXPECT_THAT(Errors(), HasSubstr("store.table must be")) << name;
  }
  command_line.settings = {{"store.table", "ids.leaf_alloc"}, {"--store", "mysql://u:p@h/d"}};
  EXPECT_EQ(Load().store.table, "ids.leaf_alloc");
  command_line.settings = {{"store.table", "main.leaf_alloc"}};
  EXPECT_THAT(Errors(), HasSubstr("SCHEMA.TABLE for postgres only"));
}

TEST_F(LoadTest, TheSchemaOfAJdbcUrlIsThatOfATableWithoutOne) {
  command_line.settings = {{"--store", "jdbc:postgresql://h/d?user=u&currentSchema=ids"}};
  EXPECT_EQ(Load().store.table, "ids.leaf_alloc");
  command_line.settings.push_back({"store.table", "other.leaf_alloc"});
  EXPECT_EQ(Load().store.table, "other.leaf_alloc");
}

TEST_F(LoadTest, ListenersAreChecked) {
  for (const char* text : {"127.0.0.1:0", "localhost:8080", "[::]:80", "[fe80::1%eth0]:80",
                           "unix:/run/leafd.sock", "db-1.example:1"}) {
    command_line.settings = {{"--listen", text}};
    EXPECT_THAT(Load().server.listen, ElementsAre(text));
  }
  for (const char* text : {"8080",
                           ":8080",
                           "*:8080",
                           "127.0.0.1",
                           "127.0.0.1:",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "127.0.0.1:+1",
                           "127.0.0.1:x",
                           "::1:80",
                           "[::1]",
                           "[::1]80",
                           "[db]:80",
                           "[::1:80",
                           "300.0.0.1:80",
                           "a b:80",
                           "unix:",
                           "unix:relative",
                           "http://127.0.0.1:80",
                           "127.0.0.1:80/"}) {
    command_line.settings = {{"--listen", text}};
    EXPECT_THAT(Errors(), HasSubstr("flag --listen: server.listen")) << text;
  }
  command_line.settings = {{"--listen", "unix:/" + std::string(107, 'a')}};
  EXPECT_THAT(Errors(), HasSubstr("longer than 107 bytes"));
}

TEST_F(LoadTest, AListenerIsGivenOnce) {
  command_line.settings = {{"server.listen", "127.0.0.1:1,127.0.0.1:1"},
                           {"server.admin_listen", "127.0.0.1:1"}};
  EXPECT_EQ(Errors(),
            "flag --set: server.listen: \"127.0.0.1:1\" is given twice\n"
            "flag --set: server.admin_listen: \"127.0.0.1:1\" is in server.listen as well");
  command_line.settings = {{"server.listen", "127.0.0.1:0,127.0.0.1:0"},
                           {"server.admin_listen", "127.0.0.1:0"}};
  Load();
}

TEST_F(LoadTest, AtLeastOneListenerIsNeeded) {
  Toml("server.listen = []\n");
  EXPECT_EQ(Errors(), "leafd.toml:1: server.listen needs 1 to 64 addresses");
}

TEST_F(LoadTest, AnAdminListenerForOtherHostsWarns) {
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1"}) {
    command_line.settings = {{"server.admin_listen", text}};
    EXPECT_THAT(Warnings(), HasSubstr("server.admin_listen: other hosts can read")) << text;
  }
  for (const char* text : {"127.0.0.1:1", "127.1.2.3:1", "localhost:1", "[::1]:1", "unix:/a"}) {
    command_line.settings = {{"server.admin_listen", text}};
    EXPECT_EQ(Warnings(), "") << text;
  }
}

TEST_F(LoadTest, TheStateFolderIsAbsolute) {
  command_line.settings = {{"server.state_dir", "state"}};
  EXPECT_THAT(Errors(), HasSubstr("flag --set: server.state_dir needs an absolute path"));
  command_line.settings = {{"server.state_dir", "/srv/leafd"}, {"store.url", "sqlite:sub/a.db"}};
  EXPECT_EQ(Load().store.path, "/srv/leafd/sub/a.db");
  EXPECT_EQ(Load().store.display_url, "sqlite:/srv/leafd/sub/a.db");
}

TEST_F(LoadTest, NothingIsCreated) {
  Load();
  EXPECT_FALSE(std::filesystem::exists(folder + "/state"));
}

TEST_F(LoadTest, ZeroForADisabledModeWarnsLoudly) {
  command_line.settings = {{"compat.disabled_returns_zero", "true"}};
  EXPECT_TRUE(Load().compat.disabled_returns_zero);
  EXPECT_THAT(Warnings(), HasSubstr("flag --set: DANGER"));
}

TEST_F(LoadTest, BeingLeafBringsItsPartsUnlessTheyAreSet) {
  Toml("compat.leaf = true\n");
  EXPECT_TRUE(Load().compat.cut_after_dot && Load().compat.pages_on_main);
  EXPECT_THAT(Load().server.listen, ElementsAre("127.0.0.1:8080"));
  Toml("compat.leaf = true\ncompat.cut_after_dot = false\n");
  EXPECT_FALSE(Load().compat.cut_after_dot);
  EXPECT_TRUE(Load().compat.pages_on_main);
}

TEST_F(LoadTest, ConnectionsStayBelowTheLimitOfOpenFiles) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  EXPECT_EQ(Load().server.max_connections, 192);
  EXPECT_THAT(Item(Load(), "server.max_connections").origin,
              HasSubstr("default, reduced to the limit of open files"));
  EXPECT_EQ(Warnings(), "");
  command_line.settings = {{"server.max_connections", "193"}};
  EXPECT_EQ(Load().server.max_connections, 192);
  EXPECT_THAT(Warnings(), HasSubstr("flag --set: server.max_connections is reduced to 192"));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(LoadTest, AWaitWithoutASecondTryWarns) {
  command_line.settings = {{"store.timeout", "3s"}};
  EXPECT_THAT(Warnings(), HasSubstr("segment.wait (3s) is not longer than store.timeout (3s)"));
}

TEST_F(LoadTest, AMissingFileIsAnError) {
  command_line.config_file = folder + "/none.toml";
  EXPECT_EQ(Errors(), "none.toml: cannot be opened: No such file or directory");
  command_line.config_file = folder;
  Errors();
}

TEST_F(LoadTest, AHugeFileIsRefused) {
  Toml(std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(Errors(), HasSubstr("is larger than 1048576 bytes"));
}

TEST_F(LoadTest, VariablesAreExpandedInTomlOnly) {
  environment["DB"] = "db.example";
  environment["PW"] = "p@s/s:w%41?#";
  Toml("store.url = \"mysql://leaf:${PW}@${DB}:3307/ids\"\nserver.listen = [\"${ADDRESS}:1\"]\n");
  EXPECT_EQ(Errors(), "leafd.toml:2: server.listen: the variable ADDRESS is not set");
  environment["ADDRESS"] = "127.0.0.1";
  EXPECT_EQ(Load().store.password, "p@s/s:w%41?#") << "a variable in the password needs no escapes";
  EXPECT_EQ(Load().store.host, "db.example");
  EXPECT_THAT(Load().server.listen, ElementsAre("127.0.0.1:1"));
  environment["LEAFD_STORE_TABLE"] = "${DB}";
  EXPECT_THAT(Errors(), HasSubstr("store.table must be"));
}

TEST_F(LoadTest, APasswordFileGivesThePassword) {
  const std::string path = Write("password", "s3cret\n", 0640);
  Toml("store.url = \"mysql://leaf@db/ids\"\nstore.password_file = \"" + path + "\"\n");
  EXPECT_EQ(Load().store.password, "s3cret");
  EXPECT_THAT(Load().store.display_url, HasSubstr("leaf:***@"));
  Write("password", "s3cret\n", 0644);
  EXPECT_THAT(Errors(), AllOf(HasSubstr("leafd.toml:2: store.password_file: "), HasSubstr("0640"),
                              Not(HasSubstr("s3cret"))));
}

TEST_F(LoadTest, APasswordIsGivenInOnePlace) {
  const std::string path = Write("password", "s3cret", 0600);
  Toml("store.url = \"mysql://leaf:pw@db/ids\"\nstore.password_file = \"" + path + "\"\n");
  EXPECT_THAT(Errors(), HasSubstr("keep one"));
  Toml("store.password_file = \"" + path + "\"\n");
  EXPECT_THAT(Errors(), HasSubstr("a sqlite store has no password"));
}

TEST_F(LoadTest, FilesOfTlsMustBeThere) {
  const std::string ca = Write("ca.pem", "x");
  command_line.settings = {{"--store", "mysql://u:p@h/d?ssl-ca=" + ca}};
  EXPECT_EQ(Load().store.parameters.at("ssl-ca"), ca);
  command_line.settings = {{"--store", "mysql://u:p@h/d?ssl-ca=" + folder + "/none.pem"}};
  EXPECT_THAT(Errors(), HasSubstr("flag --store: store.url: the file of ssl-ca cannot be found"));
}

TEST_F(LoadTest, APasswordThatWasHiddenWarns) {
  Toml("store.url = \"mysql://leaf:***@db/ids\"\n");
  EXPECT_THAT(Warnings(), HasSubstr("leafd.toml:1: the password is \"***\""));
}

TEST_F(LoadTest, APublicFileWithAPasswordWarns) {
  Toml("store.url = \"mysql://leaf:pw@db/ids\"\n", 0644);
  EXPECT_THAT(Warnings(), HasSubstr("leafd.toml:1: every user of this host can read the password"));
  Toml("store.url = \"mysql://leaf:${PW}@db/ids\"\n", 0644);
  environment["PW"] = "pw";
  EXPECT_EQ(Warnings(), "");
}

TEST_F(LoadTest, EveryItemIsListedAndNoneShowsASecret) {
  Toml("store.url = \"mysql://leaf:hunter2@db/ids\"\n");
  const Config config = Load();
  EXPECT_GE(config.items.size(), 40U);
  for (const auto& item : config.items)
    EXPECT_THAT(item.value + item.origin, Not(HasSubstr("hunter2")));
  EXPECT_EQ(Item(config, "store.url").value,
            R"("mysql://leaf:***@db:3306/ids?ssl-mode=preferred")");
}

TEST_F(LoadTest, WhatIsPrintedCanBeReadAgain) {
  command_line.settings = {
      {"segment.wait", "1m30s"}, {"server.max_body", "100000"}, {"store.failover_skip", "7"}};
  const Config before = Load();
  std::string text;
  for (const auto& item : before.items)
    text += item.key + " = " + item.value + "  # " + item.origin + "\n";
  command_line.settings.clear();
  Toml(text);
  const Config after = Load();
  ASSERT_EQ(after.items.size(), before.items.size());
  for (std::size_t i = 0; i < after.items.size(); ++i)
    EXPECT_EQ(after.items[i].value, before.items[i].value);
}

}  // namespace
}  // namespace leaf::config
