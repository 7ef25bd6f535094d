#include "core/snowflake/wall.h"

#include <gtest/gtest.h>

namespace leaf {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kStart = 1'800'000'000'000;

/// A host whose two clocks a test moves, and the Wall that looks at them.
class WallTest : public testing::Test {
 protected:
  void Pass(Duration by) {
    now += by;
    wall_ms += std::chrono::duration_cast<milliseconds>(by).count();
  }
  void Look(std::int64_t reached_ms = 0) { wall.Look(now, wall_ms, reached_ms); }
  std::int64_t Believed() const { return wall.Millis(now) - kStart; }
  std::int64_t Real() const { return wall_ms - kStart; }
  /// The registry answered at once.
  void Confirm(std::int64_t registry_ms) { wall.Confirm(registry_ms, now, now, wall_ms); }

  Instant now = Instant(seconds(500));
  std::int64_t wall_ms = kStart;
  Wall wall{{seconds(5), minutes(10), false}, now, kStart};
};

TEST_F(WallTest, BelievesItsFirstReadingAndGoesOnByTheMonotonicClock) {
  EXPECT_EQ(Believed(), 0);
  now += seconds(90);
  EXPECT_EQ(Believed(), 90'000);
}

TEST_F(WallTest, FollowsASecondForwardAndDriftBack) {
  wall_ms += 1000;
  Look();
  EXPECT_EQ(Believed(), 1000);
  EXPECT_EQ(wall.steps_forward(), 0U);
  wall_ms -= 5000;
  Look();
  EXPECT_EQ(Believed(), -4000);
  EXPECT_EQ(wall.steps_back(), 1U);
  EXPECT_FALSE(wall.in_doubt());
}

TEST_F(WallTest, AReadingThatWasCutOffIsNoStep) {
  now += std::chrono::microseconds(900);
  Look();
  EXPECT_EQ(wall.steps_back(), 0U);
  EXPECT_EQ(wall.Millis(now), kStart);
}

TEST_F(WallTest, WithoutARegistrysClockAStepBackIsFollowedAtOnce) {
  wall_ms -= 3'600'000;
  Look();
  EXPECT_EQ(Believed(), -3'600'000);
  EXPECT_EQ(wall.steps_back(), 1U);
}

TEST_F(WallTest, WithoutARegistrysClockAStepForwardHasToStandForALease) {
  wall_ms += 3'600'000;
  Look();
  EXPECT_EQ(Believed(), 0);
  EXPECT_TRUE(wall.in_doubt());
  EXPECT_EQ(wall.doubt_ms(), 3'600'000);
  Pass(minutes(10) - milliseconds(1));
  Look();
  EXPECT_EQ(Believed(), 599'999);
  Pass(milliseconds(1));
  Look();
  EXPECT_EQ(Believed(), Real());
  EXPECT_EQ(wall.steps_forward(), 1U);
  EXPECT_FALSE(wall.in_doubt());
}

TEST_F(WallTest, AnotherStepBeginsThePatienceAgain) {
  wall_ms += 3'600'000;
  Look();
  Pass(minutes(9));
  wall_ms += 3'600'000;
  Look();
  Pass(minutes(9));
  Look();
  EXPECT_EQ(Believed(), 18 * 60'000);
  Pass(minutes(1));
  Look();
  EXPECT_EQ(Believed(), Real());
}

TEST_F(WallTest, AClockThatComesBackFromAStepIsNoStep) {
  wall_ms += 3'600'000;
  Look();
  wall_ms -= 3'600'000;
  Look();
  EXPECT_FALSE(wall.in_doubt());
  EXPECT_EQ(wall.doubt_ms(), 0);
  EXPECT_EQ(Believed(), 0);
}

TEST_F(WallTest, ForwardToWhatIdsHaveReachedIsFollowedAtOnce) {
  wall_ms -= 3'600'000;
  Look(kStart);
  ASSERT_EQ(Believed(), -3'600'000);
  wall_ms += 3'600'000;
  Look(kStart);
  EXPECT_EQ(Believed(), 0);
}

TEST_F(WallTest, ForwardBeyondWhatIdsHaveReachedIsNot) {
  wall_ms += 60'000;
  Look(kStart + 58'000);
  EXPECT_EQ(Believed(), 0);
}

TEST_F(WallTest, WithARegistrysClockNoLargeStepIsFollowedBeforeItsWord) {
  Confirm(kStart);
  ASSERT_TRUE(wall.registry_has_clock());
  wall_ms -= 60'000;
  Look(kStart);
  EXPECT_EQ(Believed(), 0);
  EXPECT_TRUE(wall.in_doubt());
  Pass(minutes(20));
  Look();
  EXPECT_EQ(Believed(), 1'200'000) << "no patience ends the doubt";
  wall_ms += 120'000;
  Look(wall_ms);
  EXPECT_EQ(Believed(), 1'200'000);
}

TEST_F(WallTest, TheRegistrySidesWithTheStep) {
  Confirm(kStart);
  wall_ms += 3'600'000;
  Look();
  Confirm(kStart + 3'600'000);
  EXPECT_EQ(Believed(), 3'600'000);
  EXPECT_EQ(wall.steps_forward(), 1U);
  EXPECT_EQ(wall.ahead_of_registry_ms(), 0);
}

TEST_F(WallTest, TheRegistrySidesWithTheBelievedTime) {
  Confirm(kStart);
  wall_ms += 3'600'000;
  Look();
  ASSERT_TRUE(wall.in_doubt());
  Confirm(kStart);
  EXPECT_EQ(Believed(), 0);
  EXPECT_FALSE(wall.in_doubt()) << "it was refused: nothing is to be asked";
  EXPECT_EQ(wall.doubt_ms(), 3'600'000) << "people are told all the same";
  Look();
  EXPECT_FALSE(wall.in_doubt());
  EXPECT_EQ(Believed(), 0);
}

TEST_F(WallTest, TheNearerOfTheTwoCounts) {
  Confirm(kStart);
  wall_ms += 100'000;
  Confirm(kStart + 51'000);
  EXPECT_EQ(Believed(), 100'000);
  EXPECT_EQ(wall.ahead_of_registry_ms(), 49'000);
}

TEST_F(WallTest, AnotherStepAfterARefusalIsInDoubtAgain) {
  Confirm(kStart);
  wall_ms += 3'600'000;
  Confirm(kStart);
  ASSERT_FALSE(wall.in_doubt());
  wall_ms += 3'600'000;
  Look();
  EXPECT_TRUE(wall.in_doubt());
}

TEST_F(WallTest, TheMiddleOfTheTripIsWhenTheRegistryReadItsClock) {
  const Instant sent = now;
  Pass(milliseconds(800));
  wall.Confirm(kStart + 400, sent, now, wall_ms);
  EXPECT_EQ(wall.ahead_of_registry_ms(), 0);
  EXPECT_EQ(Believed(), 800);
}

TEST_F(WallTest, AWallClockThatAgreesIsNotMovedByTheRegistrys) {
  EXPECT_EQ(wall.ahead_of_registry_ms(), std::nullopt);
  Confirm(kStart - 30'000);
  EXPECT_EQ(Believed(), 0);
  EXPECT_EQ(wall.ahead_of_registry_ms(), 30'000);
}

}  // namespace
}  // namespace leaf
