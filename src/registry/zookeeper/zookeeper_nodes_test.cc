#include "registry/zookeeper/zookeeper_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "registry/flat_json.h"

namespace leaf {
namespace {

using testing::HasSubstr;

TEST(LeafNameTest, ReadsWhatLeafMakes) {
  const auto name = ParseLeafName("192.0.2.2:8082-0000000001");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->identity, "192.0.2.2:8082");
  EXPECT_EQ(name->counter, 1);
}

TEST(LeafNameTest, TheLastDashCounts) {
  const auto name = ParseLeafName("node-7-a:8080-0000001023");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->identity, "node-7-a:8080");
  EXPECT_EQ(name->counter, 1023);
  EXPECT_TRUE(ParseLeafName("2001:db8::1:8080-0000000000"));
}

TEST(LeafNameTest, OtherShapesAreNone) {
  for (const char* text : {"", "-", "lock", "192.0.2.2:8082", "192.0.2.2:8082-", "192.0.2.2:8082-1",
                           "192.0.2.2:8082-000000001x", "192.0.2.2-0000000001",
                           "192.0.2.2:-0000000001", "192.0.2.2:8082-00000000001", "-0000000001",
                           "192.0.2.2:8082--000000001", "192.0.2.2:8082_0000000001"}) {
    EXPECT_FALSE(ParseLeafName(text)) << text;
  }
}

TEST(LeafTextTest, IsWhatLeafWritesByteByByte) {
  EXPECT_EQ(LeafText("192.0.2.2:8080", 1796071753590),
            R"({"ip":"192.0.2.2","port":"8080","timestamp":1796071753590})");
  EXPECT_EQ(LeafText("2001:db8::1:8080", 1), R"({"ip":"2001:db8::1","port":"8080","timestamp":1})");
}

TEST(LeafTextTest, ReadsBackAlsoWithBlanksAndInAnotherOrder) {
  const auto time = ParseLeafText(
      " {\"timestamp\" : 1796071753590,\n\"port\":\"8080\", \"ip\":\"a\\u002eb\"} ", "/n");
  ASSERT_TRUE(time.ok()) << time.error().message;
  EXPECT_EQ(*time, 1796071753590);
}

TEST(LeafTextTest, AnErrorNamesNodeAndValue) {
  for (const char* text :
       {"", "abc", "{", R"({"ip":"192.0.2.2","port":"8080","timest)",
        R"({"ip":"192.0.2.2","port":"8080"})", R"({"ip":"a","port":"1","timestamp":"1"})",
        R"({"ip":"a","port":"1","timestamp":-1})", R"({"ip":"a","port":"1","timestamp":1.5})",
        R"({"ip":"a","port":"1","timestamp":1e3})", R"({"ip":"a","port":"1","timestamp":01})",
        R"({"ip":"a","port":"1","timestamp":9223372036854775807})",
        R"({"ip":"a","port":"1","timestamp":99999999999999999999})",
        R"({"ip":"a","port":"1","timestamp":1,"worker":1})", R"({"ip":"a","ip":"b","timestamp":1})",
        R"({"ip":"a","port":"1","timestamp":1}x)", R"({"ip":"a","port":"1","timestamp":1,})",
        R"({"ip":"\q","port":"1","timestamp":1})", R"({"ip":"\ud800","port":"1","timestamp":1})"}) {
    const auto time = ParseLeafText(text, "/snowflake/x/forever/y");
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_EQ(time.error().code, Code::kUnavailable);
    EXPECT_THAT(time.error().message, HasSubstr("/snowflake/x/forever/y")) << text;
    EXPECT_THAT(time.error().message, HasSubstr(QuoteJson(text))) << text;
  }
}

TEST(NativeNodeTest, ReadsBackWhatItWrites) {
  NativeRow row;
  row.record = {7, 3, std::string(32, 'a'), "ho\"st\\\n:1", 1796071753590, ""};
  row.layout = "41/10/12@1288834974657";
  const auto read = ParseNativeText(NativeText(row), 7, "/n");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->record.generation, 3);
  EXPECT_EQ(read->record.owner, row.record.owner);
  EXPECT_EQ(read->record.identity, row.record.identity);
  EXPECT_EQ(read->record.limit_ms, row.record.limit_ms);
  EXPECT_EQ(read->layout, row.layout);
}

TEST(NativeNodeTest, NamesHaveFourDigitsOrMore) {
  const ZkPaths paths("c");
  EXPECT_EQ(paths.NativeNode(7), "/snowflake/c/workers/0007");
  EXPECT_EQ(paths.NativeNode(12345), "/snowflake/c/workers/12345");
  EXPECT_EQ(ParseNativeName("0007"), 7);
  EXPECT_EQ(ParseNativeName("12345"), 12345);
  for (const char* text : {"", "7", "00007", "-007", "000x", " 007"}) {
    EXPECT_FALSE(ParseNativeName(text)) << text;
  }
}

}  // namespace
}  // namespace leaf
