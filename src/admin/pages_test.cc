#include "admin/pages.h"

#include <gtest/gtest.h>

#include "admin/admin_fixture_testing.h"

namespace leaf {
namespace {

/// The texts of a page's cells, row after row, each between bars.
std::string Cells(const std::string& page) {
  std::string cells;
  for (std::size_t at = 0;;) {
    const std::size_t th = page.find("<th>", at), td = page.find("<td>", at);
    const std::size_t begin = std::min(th, td);
    if (begin == std::string::npos) return cells + "|";
    const std::size_t end = page.find("</t", begin);
    cells += "|" + page.substr(begin + 4, end - begin - 4);
    at = end;
  }
}

constexpr const char* kCacheHead = "|name|init|next|pos|value0|max0|step0|value1|max1|step1";

TEST(PagesTest, NumbersAreGrouped) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(500004), "500,004");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(-1234567), "-1,234,567");
  EXPECT_EQ(Grouped(-123), "-123");
  EXPECT_EQ(Grouped(INT64_MAX), "9,223,372,036,854,775,807");
}

TEST(PagesTest, CacheShowsTheCurrentSegmentAsSlot0AndItsSuccessorAsSlot1) {
  TagView idle, one, two, spent;
  idle.name = "idle";
  one.name = "one";
  one.refills = 1;
  one.lease = 1000;
  one.segments = {{{500001, 501000}, 500004}};
  two.name = "two";
  two.refills = 2;
  two.lease = 200;
  two.segments = {{{1, 101}, 12}, {{101, 301}, 101}};
  spent.name = "<b>spent</b>";
  spent.refills = 1;
  spent.mark = 2001;
  spent.lease = 2000;
  EXPECT_EQ(
      Cells(CachePage({spent, idle, one, two}, 0)),
      std::string(kCacheHead) + "|&lt;b&gt;spent&lt;/b&gt;|true|false|0|2,001|2,001|2,000|0|0|0" +
          "|idle|false|false|0|0|0|0|0|0|0" + "|one|true|false|0|500,004|501,000|1,000|0|0|0" +
          "|two|true|true|0|12|101|100|101|301|200|");
}

TEST(PagesTest, PagesAreLeafsTable) {
  const std::string page = CachePage({}, 0);
  EXPECT_NE(page.find("<title>Leaf</title>"), std::string::npos);
  EXPECT_NE(page.find("class=\"table table-hover\""), std::string::npos);
  EXPECT_NE(page.find("/css/bootstrap.min.css"), std::string::npos);
  EXPECT_EQ(page.find("more"), std::string::npos);
  EXPECT_NE(CachePage({}, 5).find("and 5 more"), std::string::npos);
}

TEST(PagesTest, DbShowsTheRowsWithTheFractionThatJavaPrints) {
  EXPECT_EQ(Cells(DbPage({{"a", 501000, 1000, "2026-11-30 20:46:06"},
                          {"b<", 1, 50, "2026-11-30 20:46:06.0"},
                          {"c", 1, 1, ""}},
                         false)),
            "|tag|max|step|update|a|501,000|1,000|2026-11-30 20:46:06.0|b&lt;|1|50|2026-11-30 "
            "20:46:06.0|c|1|1||");
  EXPECT_NE(DbPage({}, true).find("and more rows"), std::string::npos);
}

TEST(PagesTest, OnlyTheFirstTagsByNameAreKept) {
  FirstTags first;
  TagView tag;
  for (std::size_t i = kPageRows + 7; i-- > 0;) {
    tag.name = std::to_string(1'000'000 + i);
    first.Add(tag);
  }
  tag.state = TagState::kAbsent;
  tag.name = "0";
  first.Add(tag);
  EXPECT_EQ(first.more(), 7U);
  const auto tags = std::move(first).Take();
  ASSERT_EQ(tags.size(), kPageRows);
  EXPECT_EQ(tags.front().name, "1000000");
  EXPECT_EQ(tags.back().name, std::to_string(1'000'000 + kPageRows - 1));
  EXPECT_TRUE(
      std::is_sorted(tags.begin(), tags.end(), [](auto& a, auto& b) { return a.name < b.name; }));
}

class PagesOfAServerTest : public AdminTest {};

TEST_F(PagesOfAServerTest, CacheIsSortedAndFollowsTheEngine) {
  Take("user");
  EXPECT_EQ(Cells(AdminGet("/cache").body),
            std::string(kCacheHead) +
                "|order|false|false|0|0|0|0|0|0|0|user|true|false|0|2|51|50|0|0|0|");
}

TEST_F(PagesOfAServerTest, DbReadsTheWholeTablePageByPage) {
  for (int i = 0; i < 2500; ++i) rig_.store.Put("t" + std::to_string(10000 + i), 1, 10);
  rig_.store.lists = 0;
  const http1::Response page = AdminGet("/db");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html;charset=UTF-8");
  EXPECT_NE(page.body.find("<td>order</td>"), std::string::npos);
  EXPECT_NE(page.body.find("<td>t12499</td>"), std::string::npos);
  EXPECT_EQ(page.body.find("and more rows"), std::string::npos);
  EXPECT_GE(rig_.store.lists, 3);
}

TEST_F(PagesOfAServerTest, DbStopsAtItsBound) {
  for (int i = 0; i < 10500; ++i) rig_.store.Put("t" + std::to_string(10000 + i), 1, 10);
  const http1::Response page = AdminGet("/db");
  EXPECT_NE(page.body.find("and more rows"), std::string::npos);
  EXPECT_LT(page.body.size(), 3U << 20);
}

TEST_F(PagesOfAServerTest, DbOfAStoreThatIsAwayIsAProblemOnTheAdminListener) {
  rig_.store.GoDown("connection refused");
  const http1::Response page = AdminGet("/db");
  EXPECT_EQ(page.status, 503);
  EXPECT_NE(page.body.find("connection refused"), std::string::npos);
}

TEST_F(PagesOfAServerTest, OnlySoManyReadTheTableAtOnce) {
  std::vector<std::unique_ptr<fakes::FakeExchange>> asked;
  for (int i = 0; i <= Pages::kDbReads; ++i) {
    asked.push_back(std::make_unique<fakes::FakeExchange>(Ask{.target = "/db"}));
    admin_->admin_service().Handle(*asked.back());
  }
  ASSERT_TRUE(asked.back()->landing()->response.has_value());
  EXPECT_EQ(asked.back()->landing()->response->status, 429);
  rig_.Settle();
  for (int i = 0; i < Pages::kDbReads; ++i) {
    EXPECT_EQ(asked[static_cast<std::size_t>(i)]->landing()->response->status, 200);
  }
  EXPECT_EQ(AdminGet("/db").status, 200) << "the turns were given back";
}

}  // namespace
}  // namespace leaf
