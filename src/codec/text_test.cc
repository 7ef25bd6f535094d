#include "codec/text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace leaf {
namespace {

std::string Json(std::string_view text) {
  std::string out;
  AppendJson(text, out);
  return out;
}

TEST(TextTest, JsonKeepsPlainTextAndUtf8) {
  EXPECT_EQ(Json("order:1"), "\"order:1\"");
  EXPECT_EQ(Json("caf\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80"),
            "\"caf\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80\"");
}

TEST(TextTest, JsonEscapesWhatWouldEndOrBreakAString) {
  EXPECT_EQ(Json("a\"b\\c\n\r\t\x01\x7F"), "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u007f\"");
  EXPECT_EQ(Json(std::string_view("\0", 1)), "\"\\u0000\"");
}

TEST(TextTest, JsonIsValidUtf8WhateverComesIn) {
  EXPECT_EQ(Json("\xFF"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(Json("\xC3"), "\"\xEF\xBF\xBD\"");
  for (const char* bad : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE4\xB8", "a\x80z",
                          "\xF8\x88\x80\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(bad));
    EXPECT_TRUE(IsUtf8(Json(bad))) << Json(bad);
  }
}

TEST(TextTest, HtmlIsInert) {
  std::string out;
  AppendHtml("<b title='x' id=\"y\">&</b>", out);
  EXPECT_EQ(out, "&lt;b title=&#39;x&#39; id=&quot;y&quot;&gt;&amp;&lt;/b&gt;");
  out.clear();
  AppendHtml("\xC3\xA9\xFF<", out);
  EXPECT_EQ(out, "\xC3\xA9\xEF\xBF\xBD&lt;") << "the pages say that they are UTF-8";
}

TEST(TextTest, DecimalHoldsEveryNumber) {
  std::string out;
  AppendDecimal(INT64_MIN, out);
  out += ' ';
  AppendDecimal(0, out);
  out += ' ';
  AppendDecimal(INT64_MAX, out);
  EXPECT_EQ(out, "-9223372036854775808 0 9223372036854775807");
}

}  // namespace
}  // namespace leaf
