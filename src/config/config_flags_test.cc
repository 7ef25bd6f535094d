#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "config/config.h"

namespace leaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

Result<CommandLine> Parse(std::initializer_list<const char*> flags) {
  std::vector<const char*> arguments = {"leafd"};
  arguments.insert(arguments.end(), flags);
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

std::string UsageError(std::initializer_list<const char*> flags) {
  const auto parsed = Parse(flags);
  EXPECT_FALSE(parsed.ok());
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(ConfigFlagsTest, NoFlagsAreNoSettings) {
  const auto parsed = Parse({});
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->config_file.empty());
  EXPECT_FALSE(parsed->check || parsed->print_config || parsed->version || parsed->help);
  EXPECT_TRUE(parsed->settings.empty());
}

TEST(ConfigFlagsTest, EveryFlagIsKnownInBothForms) {
  const auto parsed =
      Parse({"--config", "a.toml", "--listen=127.0.0.1:1", "--store", "memory:", "--set",
             "segment.step=5", "--check", "--print-config", "--version", "--help"});
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->config_file, "a.toml");
  EXPECT_TRUE(parsed->check && parsed->print_config && parsed->version && parsed->help);
  EXPECT_THAT(parsed->settings, ElementsAre(Pair("--listen", "127.0.0.1:1"),
                                            Pair("--store", "memory:"), Pair("segment.step", "5")));
}

TEST(ConfigFlagsTest, ASecondCommandLineStartsAfresh) {
  ASSERT_TRUE(Parse({"--check"}).ok());
  const auto parsed = Parse({"--help"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->help);
  EXPECT_FALSE(parsed->check);
}

TEST(ConfigFlagsTest, TheValueOfASetMayHoldEqualsSigns) {
  const auto parsed = Parse({"--set", "store.url=mysql://u@h/d?ssl-mode=required"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(parsed->settings, ElementsAre(Pair("store.url", "mysql://u@h/d?ssl-mode=required")));
}

TEST(ConfigFlagsTest, WhatIsNotAFlagIsAUsageError) {
  EXPECT_THAT(UsageError({"--lisen", "x"}),
              HasSubstr("unknown flag --lisen (did you mean \"--listen\"?)"));
  EXPECT_THAT(UsageError({"-x"}), HasSubstr("unknown flag -x"));
  EXPECT_THAT(UsageError({"--check=1"}), HasSubstr("--check takes no value"));
  EXPECT_THAT(UsageError({"--config"}), HasSubstr("--config needs a value"));
  EXPECT_THAT(UsageError({"--config="}), HasSubstr("--config needs a file"));
  EXPECT_THAT(UsageError({"--config", "a", "--config", "b"}), HasSubstr("--config is given twice"));
  EXPECT_THAT(UsageError({"--set", "segment.step"}), HasSubstr("--set needs KEY=VALUE"));
  EXPECT_THAT(UsageError({"--set", "=5"}), HasSubstr("--set needs KEY=VALUE"));
  EXPECT_THAT(UsageError({"leaf.toml"}), HasSubstr("takes no arguments"));
  EXPECT_THAT(UsageError({"--", "leaf.toml"}), HasSubstr("takes no arguments"));
}

TEST(ConfigFlagsTest, AUsageErrorRepeatsNoSecret) {
  constexpr const char* kUrl = "mysql://leaf:hunter2@db/leaf";
  EXPECT_THAT(UsageError({"--stroe=mysql://leaf:hunter2@db/leaf"}), Not(HasSubstr("hunter2")));
  EXPECT_THAT(UsageError({"--set", kUrl}), Not(HasSubstr("hunter2")));
  EXPECT_THAT(UsageError({kUrl}), Not(HasSubstr("hunter2")));
}

TEST(ConfigFlagsTest, TheHelpNamesEveryFlag) {
  for (const char* flag : {"--config", "--listen", "--store", "--set", "--check", "--print-config",
                           "--version", "--help"}) {
    EXPECT_THAT(HelpText(), HasSubstr(flag));
  }
}

}  // namespace
}  // namespace leaf
