#include "config/config_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace leaf::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<TomlEntry> Entries(std::string_view document) {
  const TomlFile file = ParseToml(document);
  EXPECT_FALSE(file.problem.has_value()) << document << ": " << file.problem->text;
  return file.entries;
}

Raw RawOf(std::string_view value) {
  const auto entries = Entries("k = " + std::string(value));
  EXPECT_EQ(entries.size(), 1U);
  return entries.empty() ? Raw() : entries[0].raw;
}

/// "LINE:COLUMN TEXT".
std::string ProblemOf(std::string_view document) {
  const TomlFile file = ParseToml(document);
  EXPECT_TRUE(file.problem.has_value()) << document;
  EXPECT_THAT(file.entries, IsEmpty());
  if (!file.problem) return "";
  return std::to_string(file.problem->line) + ":" + std::to_string(file.problem->column) + " " +
         file.problem->text;
}

TEST(ConfigTomlTest, KeysAreWholeAndInTheOrderOfTheirLines) {
  std::vector<std::string> seen;
  for (const TomlEntry& entry :
       Entries("z.a = 1\n\n[m]\nq = 2\n[a.b]\n\"c\" = 3\n'd' = {e = 4}\n")) {
    seen.push_back(entry.key + ":" + std::to_string(entry.line));
  }
  EXPECT_THAT(seen, ElementsAre("z.a:1", "m.q:4", "a.b.c:6", "a.b.d.e:7"));
}

TEST(ConfigTomlTest, TypesAreKept) {
  EXPECT_EQ(RawOf("\"a\\tb\"").text, "a\tb");
  EXPECT_EQ(RawOf("'a\\tb'").text, "a\\tb");
  EXPECT_EQ(RawOf("0x1F").text, "31");
  EXPECT_EQ(RawOf("1_000").form, Raw::Form::kInteger);
  EXPECT_EQ(RawOf("true").form, Raw::Form::kBool);
  EXPECT_THAT(RawOf("[\"a\",\n# between\n 'b',]").list, ElementsAre("a", "b"));
  EXPECT_EQ(RawOf("[]").form, Raw::Form::kStrings);
  EXPECT_EQ(RawOf("[1]").form, Raw::Form::kOther);
  EXPECT_EQ(RawOf("1.5").text, "a float");
  EXPECT_EQ(RawOf("2020-01-01").text, "a date");
  EXPECT_EQ(RawOf("{}").form, Raw::Form::kTable);
}

TEST(ConfigTomlTest, StringsHoldAnyCharacterAndNothingElseDoes) {
  EXPECT_EQ(RawOf("\"caf\u00e9 \U0001F343\"").text, "caf\u00e9 \U0001F343");
  EXPECT_EQ(RawOf("'caf\u00e9 \\ \"'").text, "caf\u00e9 \\ \"");
  EXPECT_EQ(RawOf("\"\\\\\u00e9\"").text, "\\\u00e9");
  EXPECT_EQ(RawOf("1 # caf\u00e9").text, "1");
  EXPECT_EQ(Entries("\"\u00e9\" = 1\n")[0].key, "\u00e9");
  EXPECT_THAT(ProblemOf("a = 1\n\u00e9 = 1\n"), HasSubstr("2:1 a character beyond ASCII"));
  EXPECT_THAT(ProblemOf("a = 1\u00a0\n"), HasSubstr("1:6 a character beyond ASCII"));
  EXPECT_THAT(ProblemOf("a = \"\\\u00e9\""), HasSubstr("unknown escape"));
}

TEST(ConfigTomlTest, TheFileIsUtf8) {
  EXPECT_EQ(Entries("\xEF\xBB\xBF"
                    "a = 1")[0]
                .key,
            "a");
  EXPECT_THAT(ProblemOf(std::string("\xFF\xFE"
                                    "a\0",
                                    4)),
              HasSubstr("UTF-16"));
  for (const char* bytes : {"\xE9", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                            "\xF8\x88\x80\x80\x80", "\xE2\x82"}) {
    EXPECT_THAT(ProblemOf("a = 1\nb = \"" + std::string(bytes) + "\"\n"),
                HasSubstr("2:5 the file is not UTF-8"));
  }
}

TEST(ConfigTomlTest, MistakesHaveTheirPlace) {
  EXPECT_THAT(ProblemOf("a = 1\n[.b]\n"), HasSubstr("2:1 a table needs a name"));
  EXPECT_THAT(ProblemOf("[\n"), HasSubstr("1:1 a table needs a name"));
  EXPECT_THAT(ProblemOf("[[ ]]\n"), HasSubstr("1:1 a table needs a name"));
  EXPECT_THAT(ProblemOf("a = \"b\nc = 1\n"), HasSubstr("1:5 a string has no closing quote"));
  EXPECT_THAT(ProblemOf("a = \"\"\"b\"\"\"\n"), HasSubstr("1:5 strings of several lines"));
  EXPECT_THAT(ProblemOf("a = 1\na = 2\n"), HasSubstr("2:"));
  EXPECT_THAT(ProblemOf("a = 1\nb = 1979-05-27Tx\n"), HasSubstr("2:"));
  EXPECT_THAT(ProblemOf("a = 1\nb = 1979-05-27Tl://u:p07:32\nc = 1\n"), HasSubstr("2:"));
  EXPECT_THAT(ProblemOf("a = \n"), HasSubstr("1:"));
  EXPECT_THAT(ProblemOf("a\n"), HasSubstr("1:"));
}

TEST(ConfigTomlTest, DeepNestingIsAProblemAndNoCrash) {
  ProblemOf("a = " + std::string(100000, '['));
  std::string keys = "a";
  for (int i = 0; i < 100000; ++i) keys += ".a";
  EXPECT_THAT(ProblemOf(keys + " = 1"), HasSubstr("too many parts"));
  EXPECT_THAT(ProblemOf("[" + keys + "]"), HasSubstr("too many parts"));
}

TEST(ConfigTomlTest, AnyBytesEndInEntriesOrAProblemWithAPlace) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string whole =
      "[server]\nlisten = [\"127.0.0.1:8080\", 'unix:/\u00e9']\nthreads = 4 # \u00e9\ndrain = "
      "\"1h30m\"\n[a.b]\nc = {x = 1, y = [1.5, "
      "2020-01-01]}\n[[t]]\nd = 1979-05-27T07:32:00-08:00\n";
  const std::string marks = "\\/?#@:%&=[](){},.'\"\n\r-+_TZ \xC3\xA9";
  for (int round = 0; round < 20000; ++round) {
    std::string document = whole;
    for (auto edits = 1 + random() % 4; edits > 0; --edits) {
      const auto at = random() % document.size();
      if (random() % 2 == 0) document.erase(at, 1 + random() % 8);
      document.insert(std::min(at, document.size()), 1, marks[random() % marks.size()]);
    }
    const TomlFile file = ParseToml(document);
    if (!file.problem) continue;
    ASSERT_GE(file.problem->line, 1) << document;
    ASSERT_GE(file.problem->column, 1) << document;
  }
}

}  // namespace
}  // namespace leaf::config
