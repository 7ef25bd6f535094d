#include "codec/http1/query.h"

#include <gtest/gtest.h>

#include "codec/http1/percent.h"

namespace leaf::http1 {
namespace {

TEST(PercentTest, DecodesOnceAndLeavesPlusAlone) {
  std::string out;
  EXPECT_TRUE(PercentDecode("a%23b+c%2525%c3%A9", out));
  EXPECT_EQ(out, "a#b+c%25\xC3\xA9");
}

TEST(PercentTest, RefusesBadEscapesAndNul) {
  for (const char* raw : {"%", "%2", "a%zz", "%0g", "%00", "x%", "%%41", "% 1", "%+1"}) {
    std::string out;
    EXPECT_FALSE(PercentDecode(raw, out)) << raw;
  }
}

TEST(PercentTest, FindsEncodedSlashes) {
  EXPECT_TRUE(HasEncodedSlash("a%2Fb"));
  EXPECT_TRUE(HasEncodedSlash("a%2f"));
  EXPECT_TRUE(HasEncodedSlash("%5Cb"));
  EXPECT_TRUE(HasEncodedSlash("%20%5c"));
  for (const char* raw : {"", "a/b", "%252F", "%2", "%20", "%"})
    EXPECT_FALSE(HasEncodedSlash(raw)) << raw;
}

TEST(QueryTest, FindsAParameterAmongOthers) {
  const Parameter n = FindParameter("x=1&n=5&&y", "n");
  EXPECT_EQ(n.count, 1);
  EXPECT_EQ(n.value, "5");
  EXPECT_EQ(FindParameter("y&x=1", "y").count, 1);
  EXPECT_EQ(FindParameter("y&x=1", "y").value, "");
  EXPECT_EQ(FindParameter("", "n").count, 0);
  EXPECT_EQ(FindParameter("nn=1&N=2", "n").count, 0);
}

TEST(QueryTest, DecodesNamesAndValues) {
  EXPECT_EQ(FindParameter("%6e=%31%2B+2", "n").value, "1+ 2");
  EXPECT_EQ(FindParameter("n=a=b", "n").value, "a=b");
}

TEST(QueryTest, CountsRepeatsAndTellsBadEscapes) {
  EXPECT_EQ(FindParameter("n=1&%6E=2", "n").count, 2);
  EXPECT_EQ(FindParameter("n=1&n=2", "n").value, "1");
  const Parameter bad = FindParameter("n=%zz", "n");
  EXPECT_EQ(bad.count, 0);
  EXPECT_TRUE(bad.bad);
  EXPECT_FALSE(FindParameter("%zz=1", "n").bad);
}

}  // namespace
}  // namespace leaf::http1
