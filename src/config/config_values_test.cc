#include "config/config_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leaf::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

Raw Plain(std::string text) { return {Raw::Form::kPlain, std::move(text), {}}; }
Raw String(std::string text) { return {Raw::Form::kString, std::move(text), {}}; }
Raw Number(std::string text) { return {Raw::Form::kInteger, std::move(text), {}}; }

std::string ErrorOf(Type type, const Raw& raw, const Bounds& bounds = {0, 100, {}}) {
  const auto value = ReadValue(type, raw, bounds);
  return value.ok() ? "" : value.error().message;
}

TEST(ConfigValuesTest, DurationsAreNumbersWithUnitsLargestFirst) {
  EXPECT_EQ(*ParseDuration("10s"), seconds(10));
  EXPECT_EQ(*ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(*ParseDuration("250us"), std::chrono::microseconds(250));
  EXPECT_EQ(*ParseDuration("1h30m"), minutes(90));
  EXPECT_EQ(*ParseDuration("1d2h"), hours(26));
  EXPECT_EQ(*ParseDuration("90s"), seconds(90));
  EXPECT_EQ(*ParseDuration("0"), Duration::zero());
  EXPECT_EQ(*ParseDuration("0s"), Duration::zero());
}

TEST(ConfigValuesTest, ADurationWithoutUnitOrInAnotherFormIsRefused) {
  for (const char* text : {"", "10", "s", "1.5s", "-1s", "+1s", " 1s", "1s ", "1 s", "1s1s", "1m1h",
                           "1S", "1w", "1e3s", "0x1s", "ten"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(ConfigValuesTest, ADurationThatOverflowsIsRefused) {
  EXPECT_FALSE(ParseDuration("9223372036854775807s").ok());
  EXPECT_FALSE(ParseDuration("99999999999999999999s").ok());
  EXPECT_FALSE(ParseDuration("106751d23h59m").ok());
  EXPECT_TRUE(ParseDuration("106751d").ok());
}

TEST(ConfigValuesTest, DurationsPrintAsTheyAreRead) {
  for (const char* text : {"0s", "1us", "10s", "1m", "1m30s", "1h30m", "36h", "1s500ms"}) {
    EXPECT_EQ(FormatDuration(*ParseDuration(text)), text);
  }
}

TEST(ConfigValuesTest, SizesAreBytesOrBinaryUnits) {
  EXPECT_EQ(*ParseSize("64KiB"), 65536);
  EXPECT_EQ(*ParseSize("1MiB"), 1048576);
  EXPECT_EQ(*ParseSize("2GiB"), 2147483648);
  EXPECT_EQ(*ParseSize("100B"), 100);
  EXPECT_EQ(*ParseSize("100"), 100);
  for (const char* text :
       {"", "KiB", "64KB", "64k", "64kib", "1.5MiB", "-1", "64 KiB", "9223372036854775807KiB"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

TEST(ConfigValuesTest, IntegersFillTheirText) {
  EXPECT_EQ(*ParseInteger("42"), 42);
  EXPECT_EQ(*ParseInteger("-1"), -1);
  for (const char* text :
       {"", "4x", "4 ", " 4", "+4", "4.0", "1e3", "99999999999999999999", "0x10"}) {
    EXPECT_FALSE(ParseInteger(text).ok()) << text;
  }
}

TEST(ConfigValuesTest, TomlTypesMustSuitTheKey) {
  EXPECT_EQ(ErrorOf(Type::kInteger, String("10")), "is a string, needs an integer");
  EXPECT_THAT(ErrorOf(Type::kDuration, Number("10")),
              HasSubstr(R"(is an integer, needs a duration such as "10s")"));
  EXPECT_EQ(ErrorOf(Type::kBool, String("true")), "is a string, needs true or false");
  EXPECT_EQ(ErrorOf(Type::kText, Number("10")), "is an integer, needs a string");
  EXPECT_EQ(ErrorOf(Type::kInteger, {Raw::Form::kOther, "a float", {}}),
            "is a float, needs an integer");
  EXPECT_EQ(ErrorOf(Type::kList, {Raw::Form::kTable, "", {}}),
            "is a table, needs an array of strings");
  EXPECT_EQ(ErrorOf(Type::kSize, Number("64")), "");
  EXPECT_EQ(ErrorOf(Type::kSize, String("64B")), "");
}

TEST(ConfigValuesTest, BoundsAreInclusiveAndNamedInTheUnitOfTheKey) {
  EXPECT_EQ(ErrorOf(Type::kInteger, Plain("0")), "");
  EXPECT_EQ(ErrorOf(Type::kInteger, Plain("100")), "");
  EXPECT_EQ(ErrorOf(Type::kInteger, Plain("101")), "must be between 0 and 100");
  EXPECT_EQ(ErrorOf(Type::kInteger, Plain("-1")), "must be between 0 and 100");
  EXPECT_EQ(ErrorOf(Type::kDuration, Plain("2m"), {1'000'000'000, 60'000'000'000, {}}),
            "must be between 1s and 1m");
  EXPECT_EQ(ErrorOf(Type::kSize, Plain("1"), {1024, 65536, {}}), "must be between 1KiB and 64KiB");
}

TEST(ConfigValuesTest, AutoIsAWordOrAnInteger) {
  const Bounds bounds{1, 100, {}};
  EXPECT_EQ(ReadValue(Type::kAutoInteger, Plain("auto"), bounds)->number, 0);
  EXPECT_EQ(ReadValue(Type::kAutoInteger, String("auto"), bounds)->number, 0);
  EXPECT_EQ(ReadValue(Type::kAutoInteger, Number("7"), bounds)->number, 7);
  EXPECT_EQ(ErrorOf(Type::kAutoInteger, Number("0"), bounds), "must be between 1 and 100");
  EXPECT_THAT(ErrorOf(Type::kAutoInteger, String("7"), bounds), HasSubstr("is a string"));
}

TEST(ConfigValuesTest, AChoiceIsOneOfItsWords) {
  const Bounds bounds{0, 0, "text|json"};
  EXPECT_EQ(ReadValue(Type::kChoice, Plain("json"), bounds)->text, "json");
  for (const char* word : {"", "tex", "textjson", "text|json", "JSON", "|"}) {
    EXPECT_EQ(ErrorOf(Type::kChoice, Plain(word), bounds), "must be one of text, json") << word;
  }
}

TEST(ConfigValuesTest, AListIsCommaSeparatedOutsideToml) {
  EXPECT_THAT(ReadValue(Type::kList, Plain("a, b ,c"), {})->list, ElementsAre("a", "b", "c"));
  EXPECT_THAT(ReadValue(Type::kList, {Raw::Form::kStrings, "", {"a,b"}}, {})->list,
              ElementsAre("a,b"));
  EXPECT_THAT(ReadValue(Type::kList, String("a,b"), {})->list, ElementsAre("a,b"));
  for (const char* text : {"", "a,", ",a", "a,,b", " "}) {
    EXPECT_EQ(ErrorOf(Type::kList, Plain(text)), "has an empty element") << text;
  }
}

TEST(ConfigValuesTest, AnErrorNeverRepeatsTheValue) {
  for (const Type type : {Type::kBool, Type::kInteger, Type::kAutoInteger, Type::kDuration,
                          Type::kSize, Type::kChoice}) {
    EXPECT_THAT(ErrorOf(type, Plain("hunter2"), {0, 1, "a|b"}), testing::Not(HasSubstr("hunter2")));
  }
}

TEST(ConfigValuesTest, ValuesPrintAsToml) {
  const auto print = [](Type type, std::string text) {
    return FormatValue(type, *ReadValue(type, Plain(std::move(text)), {0, 1 << 20, "word"}));
  };
  EXPECT_EQ(print(Type::kText, "a\"b\\c\n\x7F"), R"("a\"b\\c\u000A\u007F")");
  EXPECT_EQ(print(Type::kList, "a,b"), R"(["a", "b"])");
  EXPECT_EQ(print(Type::kBool, "true"), "true");
  EXPECT_EQ(print(Type::kInteger, "5"), "5");
  EXPECT_EQ(print(Type::kAutoInteger, "auto"), R"("auto")");
  EXPECT_EQ(print(Type::kAutoInteger, "5"), "5");
  EXPECT_EQ(print(Type::kDuration, "0"), R"("0s")");
  EXPECT_EQ(print(Type::kSize, "65536"), R"("64KiB")");
  EXPECT_EQ(print(Type::kSize, "100"), "100");
  EXPECT_EQ(print(Type::kChoice, "word"), R"("word")");
}

}  // namespace
}  // namespace leaf::config
