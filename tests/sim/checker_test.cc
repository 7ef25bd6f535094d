#include "checker.h"

#include <gtest/gtest.h>

namespace leaf::sim {
namespace {

// The judge is judged: each planted fault must be found, and nothing else.

Ranges Of(std::initializer_list<Range> pieces) {
  Ranges ranges;
  for (const Range& piece : pieces) ranges.at[static_cast<std::size_t>(ranges.size++)] = piece;
  return ranges;
}

class CheckerTest : public testing::Test {
 protected:
  void Answer(int server, const Ranges& ids) {
    const std::int64_t floor = checker_.Floor(server, 0);
    checker_.Issued(server, 0, ids);
    checker_.Answered(server, 0, ids, floor);
  }
  bool OnlyBroke(Rule rule) const {
    for (const Checker::Violation& violation : checker_.violations()) {
      if (violation.rule != rule) return false;
    }
    return checker_.Broke(rule);
  }

  World world_{2};
  Checker checker_{world_, 2, 1};
};

TEST_F(CheckerTest, AcceptsDisjointRisingAnswers) {
  Answer(0, Of({{1, 2}}));
  Answer(1, Of({{10, 20}}));
  Answer(0, Of({{2, 10}, {20, 25}}));
  EXPECT_TRUE(checker_.violations().empty());
  EXPECT_EQ(checker_.ids(), 24u);
  EXPECT_EQ(checker_.answers(), 3u);
}

TEST_F(CheckerTest, FindsADuplicateBetweenServers) {
  Answer(0, Of({{1, 11}}));
  Answer(1, Of({{10, 12}}));
  EXPECT_TRUE(OnlyBroke(Rule::kUnique));
}

TEST_F(CheckerTest, FindsADuplicateOfOneServerInsideAWideRange) {
  Answer(0, Of({{5, 6}}));
  checker_.Issued(0, 0, Of({{1, 100}}));
  EXPECT_TRUE(OnlyBroke(Rule::kUnique));
}

TEST_F(CheckerTest, FindsADuplicateWithAnotherProgram) {
  checker_.Foreign(0, {100, 200});
  Answer(0, Of({{199, 201}}));
  EXPECT_TRUE(OnlyBroke(Rule::kUnique));
}

TEST_F(CheckerTest, FindsAnAnswerBelowAnEarlierOne) {
  Answer(0, Of({{50, 51}}));
  Answer(0, Of({{40, 41}}));
  EXPECT_TRUE(OnlyBroke(Rule::kOrder));
}

TEST_F(CheckerTest, FindsPiecesThatFall) {
  Answer(0, Of({{50, 51}, {40, 41}}));
  EXPECT_TRUE(OnlyBroke(Rule::kOrder));
}

TEST_F(CheckerTest, RequestsThatOverlapInTimeMayBeAnsweredInAnyOrder) {
  const std::int64_t first = checker_.Floor(0, 0);
  const std::int64_t second = checker_.Floor(0, 0);
  checker_.Answered(0, 0, Of({{9, 10}}), second);
  checker_.Answered(0, 0, Of({{8, 9}}), first);
  EXPECT_TRUE(checker_.violations().empty());
}

TEST_F(CheckerTest, FindsAnIdBelowTheMark) {
  checker_.Remembers(0, 0, 1000);
  Answer(0, Of({{999, 1000}}));
  EXPECT_TRUE(OnlyBroke(Rule::kMemory));
}

TEST_F(CheckerTest, FindsIssuedIdsThatAreHandedBack) {
  Answer(0, Of({{1, 11}}));
  checker_.HandedBack(0, 0, {11, 20});
  EXPECT_TRUE(checker_.violations().empty());
  checker_.HandedBack(0, 0, {10, 20});
  EXPECT_TRUE(OnlyBroke(Rule::kUnique));
}

TEST_F(CheckerTest, ARowThatWentBackExcusesOtherServersOnly) {
  checker_.Regressed(0);
  Answer(0, Of({{1, 11}}));
  Answer(1, Of({{5, 6}}));
  EXPECT_TRUE(checker_.violations().empty());
  EXPECT_EQ(checker_.excused(), 1u);
  checker_.Issued(0, 0, Of({{10, 12}}));
  EXPECT_TRUE(OnlyBroke(Rule::kUnique));
}

TEST_F(CheckerTest, LostMemoryExcusesAServersOwnDuplicateAfterARegression) {
  checker_.Forgets(0, 0);
  checker_.Regressed(0);
  checker_.Issued(0, 0, Of({{1, 11}}));
  checker_.Issued(0, 0, Of({{1, 2}}));
  EXPECT_TRUE(checker_.violations().empty());
}

TEST(IdSetTest, JoinsNeighboursAndFindsOverlaps) {
  IdSet ids;
  ids.Insert({10, 20});
  ids.Insert({30, 40});
  ids.Insert({20, 30});
  EXPECT_FALSE(ids.Overlap({1, 10}));
  EXPECT_FALSE(ids.Overlap({40, 41}));
  EXPECT_EQ(ids.Overlap({5, 100}), (Range{10, 40}));
  EXPECT_EQ(ids.Overlap({25, 26}), (Range{25, 26}));
}

}  // namespace
}  // namespace leaf::sim
