#include "config/config_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace leaf::config {
namespace {

using testing::Contains;

TEST(ConfigKeysTest, EveryKeyIsWhole) {
  std::set<std::string> names, variables;
  for (const Key& key : Keys()) {
    const std::string name(key.name);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(variables.insert(EnvironmentName(key)).second)
        << "two keys have the variable of " << name;
    EXPECT_NE(key.name.find('.'), std::string_view::npos) << name;
    EXPECT_EQ(FindKey(name), &key);
    if (key.availability == Availability::kLater) continue;
    EXPECT_NE(key.apply, nullptr) << name;
    EXPECT_TRUE(
        ReadValue(key.type, {Raw::Form::kPlain, std::string(key.fallback), {}}, key.bounds).ok())
        << name;
  }
  EXPECT_EQ(FindKey("server"), nullptr);
  EXPECT_EQ(FindKey(""), nullptr);
}

/// The structure has its defaults for code that is built without configuration.
TEST(ConfigKeysTest, TheDefaultsOfTheTableAreThoseOfTheStructure) {
  const Config fresh;
  Config config;
  for (const Key& key : Keys()) {
    if (key.availability != Availability::kLater) key.apply(config, Fallback(key));
  }
  EXPECT_EQ(config.server.listen, fresh.server.listen);
  EXPECT_EQ(config.server.admin_listen, fresh.server.admin_listen);
  EXPECT_EQ(config.server.probes_on_main, fresh.server.probes_on_main);
  EXPECT_EQ(config.server.threads, fresh.server.threads);
  EXPECT_EQ(config.server.drain, fresh.server.drain);
  EXPECT_EQ(config.server.drain_delay, fresh.server.drain_delay);
  EXPECT_EQ(config.server.max_connections, fresh.server.max_connections);
  EXPECT_EQ(config.server.max_connections_per_ip, fresh.server.max_connections_per_ip);
  EXPECT_EQ(config.server.max_request_line, fresh.server.max_request_line);
  EXPECT_EQ(config.server.max_header, fresh.server.max_header);
  EXPECT_EQ(config.server.max_header_fields, fresh.server.max_header_fields);
  EXPECT_EQ(config.server.max_body, fresh.server.max_body);
  EXPECT_EQ(config.server.header_timeout, fresh.server.header_timeout);
  EXPECT_EQ(config.server.idle_timeout, fresh.server.idle_timeout);
  EXPECT_EQ(config.store.table, fresh.store.table);
  EXPECT_EQ(config.store.timeout, fresh.store.timeout);
  EXPECT_EQ(config.store.min_durability, fresh.store.min_durability);
  EXPECT_EQ(config.failover_skip, fresh.failover_skip);
  EXPECT_EQ(config.segment.enabled, fresh.segment.enabled);
  EXPECT_EQ(config.segment.policy, fresh.segment.policy);
  EXPECT_EQ(config.segment.require_marks, fresh.segment.require_marks);
  EXPECT_EQ(config.segment.waste, fresh.segment.waste);
  EXPECT_EQ(config.segment.wait, fresh.segment.wait);
  EXPECT_EQ(config.segment.refresh, fresh.segment.refresh);
  EXPECT_EQ(config.segment.max_waiters, fresh.segment.max_waiters);
  EXPECT_EQ(config.segment.max_list, fresh.segment.max_list);
  EXPECT_EQ(config.segment.max_count, fresh.segment.max_count);
  EXPECT_EQ(config.segment.step, fresh.segment.step);
  EXPECT_EQ(config.segment.auto_create, fresh.segment.auto_create);
  EXPECT_EQ(config.segment.auto_create_limit, fresh.segment.auto_create_limit);
  EXPECT_EQ(config.snowflake.enabled, fresh.snowflake.enabled);
  EXPECT_EQ(config.compat.leaf, fresh.compat.leaf);
  EXPECT_EQ(config.compat.disabled_returns_zero, fresh.compat.disabled_returns_zero);
  EXPECT_EQ(config.log.format, fresh.log.format);
  EXPECT_EQ(config.log.level, fresh.log.level);
}

TEST(ConfigKeysTest, TheVariableOfAKeyIsItsNameInCapitals) {
  EXPECT_EQ(EnvironmentName(*FindKey("store.url")), "LEAFD_STORE_URL");
  EXPECT_EQ(EnvironmentName(*FindKey("server.max_connections_per_ip")),
            "LEAFD_SERVER_MAX_CONNECTIONS_PER_IP");
}

TEST(ConfigKeysTest, LeafsNamesOfBothBranchesAreInTheTable) {
  for (const char* name :
       {"leaf.name", "leaf.segment.enable", "leaf.jdbc.url", "leaf.jdbc.username",
        "leaf.jdbc.password", "leaf.segment.url", "leaf.segment.username", "leaf.segment.password",
        "leaf.snowflake.enable", "leaf.snowflake.zk.address", "leaf.snowflake.address",
        "leaf.snowflake.port", "server.port"}) {
    EXPECT_THAT(LeafNames(), Contains(name));
  }
}

TEST(ConfigKeysTest, AMisspeltKeyFindsItsNeighbour) {
  EXPECT_EQ(SuggestKey("segmnt.step"), " (did you mean \"segment.step\"?)");
  EXPECT_EQ(SuggestKey("segment.setp"), " (did you mean \"segment.step\"?)");
  EXPECT_EQ(SuggestKey("store.uri"), " (did you mean \"store.url\"?)");
  EXPECT_EQ(SuggestKey("server.listne"), " (did you mean \"server.listen\"?)");
  EXPECT_EQ(SuggestKey("listen"), " (did you mean \"server.listen\"?)");
  EXPECT_EQ(SuggestKey("store.wait"), " (did you mean \"segment.wait\"?)");
}

TEST(ConfigKeysTest, WhatResemblesNothingHasNoSuggestion) {
  for (const std::string& word : {std::string(), std::string("x"), std::string("kafka.bootstrap"),
                                  std::string(100000, 'a')}) {
    EXPECT_EQ(SuggestKey(word), "") << word.substr(0, 20);
  }
}

TEST(ConfigKeysTest, SectionsAreKnown) {
  EXPECT_TRUE(IsSection("server"));
  EXPECT_TRUE(IsSection("tls"));
  EXPECT_FALSE(IsSection("serve"));
  EXPECT_FALSE(IsSection("server.listen"));
  EXPECT_FALSE(IsSection(""));
}

}  // namespace
}  // namespace leaf::config
