#include "codec/http1/accept.h"

#include <gtest/gtest.h>

namespace leaf::http1 {
namespace {

constexpr const char* kBrowser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

TEST(AcceptTest, AnIdIsTextWithoutAWish) {
  for (const char* accept : {"", "*/*", " */* ", "text/plain", "text/*", "image/png",
                             "application/*", "nonsense", ",,", "a/", "/b"}) {
    EXPECT_EQ(IdContentType(accept), "text/plain;charset=UTF-8") << accept;
  }
}

TEST(AcceptTest, AnIdHasTheTypeThatAcceptLikesBest) {
  EXPECT_EQ(IdContentType("application/json"), "application/json;charset=UTF-8");
  EXPECT_EQ(IdContentType("APPLICATION/JSON"), "application/json;charset=UTF-8");
  EXPECT_EQ(IdContentType("application/xml"), "application/xml;charset=UTF-8");
  EXPECT_EQ(IdContentType(kBrowser), "text/html;charset=UTF-8");
  EXPECT_EQ(IdContentType("*/*, application/json"), "application/json;charset=UTF-8");
  EXPECT_EQ(IdContentType("application/json;q=0.5, text/html;q=0.6"), "text/html;charset=UTF-8");
  EXPECT_EQ(IdContentType("application/json, text/plain, */*"), "application/json;charset=UTF-8");
  EXPECT_EQ(IdContentType("application/json;q=0, text/xml;q=0.001"), "text/xml;charset=UTF-8");
}

TEST(AcceptTest, NoByteOfTheRequestGetsIntoTheContentType) {
  EXPECT_EQ(IdContentType("application/json\x01"), "text/plain;charset=UTF-8");
  EXPECT_EQ(IdContentType("application/json;charset=x"), "application/json;charset=UTF-8");
}

TEST(AcceptTest, SuffixesThatMakeSenseForDigitsName) {
  EXPECT_EQ(SuffixContentType("json"), "application/json;charset=UTF-8");
  EXPECT_EQ(SuffixContentType("HTML"), "text/html;charset=UTF-8");
  EXPECT_EQ(SuffixContentType("png"), "");
  EXPECT_EQ(SuffixContentType(""), "");
}

TEST(AcceptTest, PagesAreForThoseWhoNameHtml) {
  EXPECT_TRUE(PrefersHtml("text/html"));
  EXPECT_TRUE(PrefersHtml("text/html,*/*;q=0.8"));
  EXPECT_TRUE(PrefersHtml(kBrowser));
  for (const char* accept :
       {"", "*/*", "application/json", "text/plain", "text/*", "application/json, text/html",
        "text/html;q=0", "text/html;q=0.3, */*;q=0.4"}) {
    EXPECT_FALSE(PrefersHtml(accept)) << accept;
  }
}

TEST(AcceptTest, LinesAreForThoseWhoLikeTextBetterThanJson) {
  EXPECT_TRUE(PrefersText("text/plain"));
  EXPECT_TRUE(PrefersText("text/*"));
  EXPECT_TRUE(PrefersText("text/plain, */*"));
  EXPECT_TRUE(PrefersText("*/*, text/plain"));
  for (const char* accept : {"", "*/*", "application/json", "application/json, text/plain, */*",
                             "text/plain;q=0.2, application/json", "text/plain;q=0", "text/html"}) {
    EXPECT_FALSE(PrefersText(accept)) << accept;
  }
}

TEST(AcceptTest, JavasOwnClientIsUnderstood) {
  constexpr const char* kJava = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
  EXPECT_EQ(AcceptOf(kJava, "application", "json").weight, 200);
  EXPECT_EQ(AcceptOf("*", "application", "json").weight, 1000);
  EXPECT_EQ(IdContentType(kJava), "text/html;charset=UTF-8");
  for (const char* bad : {"*/*;q=.", "*/*;q=", "*/*;q=..2", "*/*;q=.2000", "*/*;q=1.001", "*x"})
    EXPECT_EQ(AcceptOf(bad, "application", "json").weight, 0) << bad;
}

TEST(AcceptTest, TheMostSpecificRangeDecides) {
  EXPECT_EQ(AcceptOf("*/*, application/json;q=0", "application", "json").weight, 0);
  EXPECT_EQ(AcceptOf("application/*;q=0.25, */*;q=0.5", "application", "json").weight, 250);
  EXPECT_EQ(AcceptOf("text/html", "application", "json").weight, 0);
  EXPECT_EQ(AcceptOf("", "application", "json").weight, 1000);
}

TEST(AcceptTest, AWeightThatCannotBeReadVoidsItsRange) {
  for (const char* accept :
       {"application/json;q=2", "application/json;q=1.001", "application/json;q=-1",
        "application/json;q=", "application/json;q=0.1234", "application/json;q=a"}) {
    EXPECT_EQ(AcceptOf(accept, "application", "json").weight, 0) << accept;
  }
}

}  // namespace
}  // namespace leaf::http1
