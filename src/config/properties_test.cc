#include "config/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace leaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

MATCHER_P3(Is, key, value, line, "") {
  return arg.key == key && arg.value == value && arg.line == line;
}

std::vector<Property> Entries(std::string_view bytes) {
  const PropertiesFile file = ParseProperties(bytes);
  EXPECT_THAT(file.errors, IsEmpty());
  return file.entries;
}

std::string ValueOf(std::string_view line) {
  const auto entries = Entries(line);
  EXPECT_THAT(entries, SizeIs(1));
  return entries.empty() ? "" : entries[0].value;
}

TEST(PropertiesTest, KeyAndValueAreSeparatedByEqualsColonOrBlanks) {
  EXPECT_THAT(Entries("a=1\nb:2\nc 3\nd = 4\ne : 5\nf\t6\ng\f7\n"),
              ElementsAre(Is("a", "1", 1), Is("b", "2", 2), Is("c", "3", 3), Is("d", "4", 4),
                          Is("e", "5", 5), Is("f", "6", 6), Is("g", "7", 7)));
}

TEST(PropertiesTest, OnlyTheFirstSeparatorSeparates) {
  EXPECT_EQ(ValueOf("url=jdbc:mysql://h:1/d?a=b"), "jdbc:mysql://h:1/d?a=b");
  EXPECT_EQ(ValueOf("k==v"), "=v");
  EXPECT_EQ(ValueOf("k=:v"), ":v");
  EXPECT_EQ(ValueOf("k = = v"), "= v");
}

TEST(PropertiesTest, EmptyValuesAndKeysAreEntries) {
  EXPECT_THAT(Entries("a\nb=\nc:\n=d\n"),
              ElementsAre(Is("a", "", 1), Is("b", "", 2), Is("c", "", 3), Is("", "d", 4)));
}

TEST(PropertiesTest, LeadingBlanksGoAndTrailingOnesStay) {
  EXPECT_THAT(Entries("  \t a =  \t1 2 \t \n"), ElementsAre(Is("a", "1 2 \t ", 1)));
}

TEST(PropertiesTest, CommentsAndEmptyLinesAreNoEntries) {
  EXPECT_THAT(Entries("#a=1\n!b=2\n  # c=3\n\n \t\f\nd=4 # kept\n"),
              ElementsAre(Is("d", "4 # kept", 6)));
}

TEST(PropertiesTest, ACommentIsNotContinued) {
  EXPECT_THAT(Entries("# a \\\nb=1\n"), ElementsAre(Is("b", "1", 2)));
}

TEST(PropertiesTest, LinesEndWithLfCrOrCrlf) {
  for (const char* text :
       {"a=1\nb=2\n", "a=1\rb=2\r", "a=1\r\nb=2\r\n", "a=1\r\nb=2", "a=1\rb=2", "a=1\nb=2"}) {
    EXPECT_THAT(Entries(text), ElementsAre(Is("a", "1", 1), Is("b", "2", 2))) << text;
  }
  EXPECT_THAT(Entries("a=1\n\rb=2"), ElementsAre(Is("a", "1", 1), Is("b", "2", 3)));
}

TEST(PropertiesTest, AnOddNumberOfBackslashesContinuesALine) {
  EXPECT_THAT(Entries("a=1\\\n   2\\\r\n\t3\nb=4"),
              ElementsAre(Is("a", "123", 1), Is("b", "4", 4)));
  EXPECT_THAT(Entries("a=1\\\\\nb=2"), ElementsAre(Is("a", "1\\", 1), Is("b", "2", 2)));
  EXPECT_THAT(Entries("a=1\\\\\\\n2"), ElementsAre(Is("a", "1\\2", 1)));
  EXPECT_THAT(Entries("ke\\\n  y=1"), ElementsAre(Is("key", "1", 1)));
}

TEST(PropertiesTest, AContinuedLineMayLookLikeACommentOrBeEmpty) {
  EXPECT_THAT(Entries("a=1\\\n#2"), ElementsAre(Is("a", "1#2", 1)));
  EXPECT_THAT(Entries("a=1\\\n\nb=2"), ElementsAre(Is("a", "1", 1), Is("b", "2", 3)));
  EXPECT_THAT(Entries("a=1\\\n   \nb=2"), ElementsAre(Is("a", "1", 1), Is("b", "2", 3)));
  EXPECT_THAT(Entries("\\\n\nb=2"), ElementsAre(Is("b", "2", 3)));
}

TEST(PropertiesTest, ABackslashAtTheEndOfTheFileGoes) {
  EXPECT_THAT(Entries("a=1\\"), ElementsAre(Is("a", "1", 1)));
}

TEST(PropertiesTest, EscapesAreResolvedInKeysAndValues) {
  EXPECT_EQ(ValueOf(R"(a=\t\n\r\f\\\q\"\ )"), "\t\n\r\f\\q\" ");
  EXPECT_THAT(Entries(R"(a\ b\:c\=d=1)"), ElementsAre(Is("a b:c=d", "1", 1)));
  EXPECT_THAT(Entries(R"(\#a=1)"), ElementsAre(Is("#a", "1", 1)));
  EXPECT_EQ(ValueOf(R"(a=\u0041\u00e9\u20AC)"), "A\u00e9\u20ac");
  EXPECT_EQ(ValueOf(R"(a=\uD83C\uDF43)"), "\U0001F343");
  EXPECT_EQ(ValueOf(R"(a=\\u0041)"), "\\u0041");
  EXPECT_THAT(Entries(R"(\u006c\u0065af=1)"), ElementsAre(Is("leaf", "1", 1)));
}

TEST(PropertiesTest, AnEscapeThatJavaRefusesIsAnErrorWithItsLine) {
  for (const char* escape : {"\\u", "\\u12", "\\u12g4", "\\u000", "\\u0000", "\\uD83C", "\\uD83Cx",
                             "\\uD83C\\u0041", "\\uDF43"}) {
    const PropertiesFile file = ParseProperties("a=1\nb=" + std::string(escape) + "\nc=2");
    ASSERT_THAT(file.errors, SizeIs(1)) << escape;
    EXPECT_EQ(file.errors[0].line, 2);
    EXPECT_THAT(file.errors[0].text, HasSubstr("\\uXXXX"));
    EXPECT_THAT(file.entries, ElementsAre(Is("a", "1", 1), Is("c", "2", 3)));
  }
}

TEST(PropertiesTest, BytesAreIso88591) {
  const PropertiesFile file = ParseProperties("a=caf\xE9\n");
  ASSERT_THAT(file.entries, ElementsAre(Is("a", "caf\u00e9", 1)));
  ASSERT_THAT(file.warnings, SizeIs(1));
  EXPECT_EQ(file.warnings[0].line, 1);
  EXPECT_THAT(ParseProperties("a=caf\\u00e9").warnings, IsEmpty());
}

TEST(PropertiesTest, AByteOrderMarkIsSkipped) {
  EXPECT_THAT(Entries("\xEF\xBB\xBFleaf.jdbc.url=x"), ElementsAre(Is("leaf.jdbc.url", "x", 1)));
  EXPECT_THAT(Entries("\xEF\xBB\xBF#leaf\na=1"), ElementsAre(Is("a", "1", 2)));
}

TEST(PropertiesTest, Utf16IsRefused) {
  using std::string_literals::operator""s;
  for (const std::string& bytes : {"\xFF\xFE"s + "a\0=\0"s, "\xFE\xFF"s + "\0a\0="s, "\xFF\xFE"s}) {
    const PropertiesFile file = ParseProperties(bytes);
    ASSERT_THAT(file.errors, SizeIs(1));
    EXPECT_EQ(file.errors[0].line, 1);
    EXPECT_THAT(file.errors[0].text, HasSubstr("UTF-16"));
    EXPECT_THAT(file.entries, IsEmpty());
  }
}

TEST(PropertiesTest, ANulIsRefusedWithItsLine) {
  using std::string_literals::operator""s;
  const auto line_of = [](const std::string& bytes) {
    const PropertiesFile file = ParseProperties(bytes);
    return file.errors.size() == 1 && file.entries.empty() ? file.errors[0].line : -1;
  };
  EXPECT_EQ(line_of("\0"s), 1);
  EXPECT_EQ(line_of("a=1\nb=\0"s), 2);
  EXPECT_EQ(line_of("a=1\r\nb=2\r\n\0"s), 3);
  EXPECT_EQ(line_of("a=1\rb=2\r\0"s), 3);
}

TEST(PropertiesTest, RepeatedKeysAreAllHandedOver) {
  EXPECT_THAT(Entries("a=1\na=2"), ElementsAre(Is("a", "1", 1), Is("a", "2", 2)));
}

TEST(PropertiesTest, AnEmptyFileHasNoEntries) {
  for (const char* text : {"", "\n", "\\", "\xEF\xBB\xBF", "#", "\\\n\\\n"})
    EXPECT_THAT(Entries(text), IsEmpty()) << text;
}

TEST(PropertiesTest, AnyBytesEndInEntriesWithinTheirLines) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string alphabet("ab=: \t\f\r\n\\#!u01dD8\xE9", 20);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = alphabet[random() % alphabet.size()];
    const PropertiesFile file = ParseProperties(bytes);
    const auto lines = 1 + std::count_if(bytes.begin(), bytes.end(),
                                         [](char c) { return c == '\r' || c == '\n'; });
    int before = 0;
    for (const Property& property : file.entries) {
      ASSERT_GT(property.line, before) << testing::PrintToString(bytes);
      ASSERT_LE(property.line, lines) << testing::PrintToString(bytes);
      before = property.line;
    }
  }
}

}  // namespace
}  // namespace leaf
