#include "core/snowflake/generator.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace leaf {
namespace {

using Verdict = Generator<>::Verdict;

constexpr std::uint64_t kSecret = 0x5EED;
constexpr std::int64_t kFarLimit = 1'000'000;
/// Sixteen ids a tick, 1024 ticks, eight workers: the low start is always 0.
constexpr Layout kSmall{"small", 0, 10, 3, 4};

std::int64_t TickOf(const Layout& layout, const Minted& minted, std::int64_t i = 0) {
  return Decode(layout, minted.At(layout, i)).time_ms - layout.epoch_ms;
}
std::int64_t SequenceOf(const Layout& layout, const Minted& minted, std::int64_t i = 0) {
  return Decode(layout, minted.At(layout, i)).sequence;
}

TEST(GeneratorTest, MintsNothingBeforeItWasOpened) {
  Generator<> generator(kLeafLayout, kSecret);
  Minted minted;
  EXPECT_TRUE(generator.closed());
  EXPECT_EQ(generator.Mint(1, 5, 0, minted), Verdict::kClosed);
  EXPECT_EQ(generator.Close(), -1);
}

TEST(GeneratorTest, IdsRiseWithinATickOverTicksAndOverAClockThatGoesBack) {
  Generator<> generator(kLeafLayout, kSecret);
  generator.Open(7, 0, kFarLimit);
  std::int64_t before = -1;
  for (const std::int64_t tick : {100, 100, 100, 101, 99, 50, 102, 102, 101}) {
    Minted minted;
    ASSERT_EQ(generator.Mint(3, tick, 100, minted), Verdict::kMinted);
    for (std::int64_t i = 0; i < 3; ++i) {
      const std::int64_t id = minted.At(kLeafLayout, i);
      EXPECT_GT(id, before);
      EXPECT_EQ(Decode(kLeafLayout, id).worker, 7);
      before = id;
    }
  }
  EXPECT_EQ(generator.last_tick(), 102);
}

TEST(GeneratorTest, LowStartsAreEvenOverShardsAndSmall) {
  constexpr int kShards = 10, kTicks = 20'000;
  Generator<> generator(kLeafLayout, kSecret);
  generator.Open(0, 0, kFarLimit);
  std::array<int, kShards> of_shard{};
  for (int tick = 1; tick <= kTicks; ++tick) {
    Minted minted;
    ASSERT_EQ(generator.Mint(1, tick, 0, minted), Verdict::kMinted);
    ASSERT_EQ(TickOf(kLeafLayout, minted), tick);
    ASSERT_LT(SequenceOf(kLeafLayout, minted), 100);
    ++of_shard[static_cast<std::size_t>(minted.At(kLeafLayout, 0) % kShards)];
  }
  // Five standard deviations of a binomial around an even share.
  for (const int count : of_shard) EXPECT_NEAR(count, kTicks / kShards, 212);
}

TEST(GeneratorTest, TheSecretMovesTheLowStarts) {
  std::set<std::int64_t> starts;
  for (std::uint64_t secret = 0; secret < 50; ++secret) {
    Generator<> generator(kLeafLayout, secret * 0x9E3779B97F4A7C15ULL);
    generator.Open(0, 0, kFarLimit);
    Minted minted;
    ASSERT_EQ(generator.Mint(1, 42, 0, minted), Verdict::kMinted);
    starts.insert(SequenceOf(kLeafLayout, minted));
  }
  EXPECT_GT(starts.size(), 20U);
}

TEST(GeneratorTest, LowStartsAreASixteenthOfATickAtMost) {
  EXPECT_EQ(Generator<>::LowStarts(12), 100U);
  EXPECT_EQ(Generator<>::LowStarts(7), 8U);
  EXPECT_EQ(Generator<>::LowStarts(4), 1U);
  EXPECT_EQ(Generator<>::LowStarts(1), 1U);
}

TEST(GeneratorTest, ACarryIntoTheNextTickStartsAtZero) {
  Generator<> generator(kLeafLayout, kSecret);
  generator.Open(0, 0, kFarLimit);
  Minted minted;
  ASSERT_EQ(generator.Mint(1, 10, 5, minted), Verdict::kMinted);
  const std::int64_t left = 4095 - SequenceOf(kLeafLayout, minted);
  ASSERT_EQ(generator.Mint(left, 10, 5, minted), Verdict::kMinted);
  EXPECT_EQ(SequenceOf(kLeafLayout, minted, left - 1), 4095);
  ASSERT_EQ(generator.Mint(1, 10, 5, minted), Verdict::kMinted);
  EXPECT_EQ(TickOf(kLeafLayout, minted), 11);
  EXPECT_EQ(SequenceOf(kLeafLayout, minted), 0);
}

TEST(GeneratorTest, ABatchCrossesTicks) {
  Generator<> generator(kSmall, kSecret);
  generator.Open(5, 0, 1024);
  Minted minted;
  ASSERT_EQ(generator.Mint(40, 20, 2, minted), Verdict::kMinted);
  for (std::int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(TickOf(kSmall, minted, i), 20 + i / 16);
    EXPECT_EQ(SequenceOf(kSmall, minted, i), i % 16);
    EXPECT_EQ(Decode(kSmall, minted.At(kSmall, i)).worker, 5);
  }
  EXPECT_EQ(generator.last_tick(), 22);
}

TEST(GeneratorTest, RunsAheadOfTheClockAsFarAsAllowedAndTakesNothingWhenRefused) {
  Generator<> generator(kSmall, kSecret);
  generator.Open(0, 0, 1024);
  Minted minted;
  ASSERT_EQ(generator.Mint(16, 20, 0, minted), Verdict::kMinted);
  EXPECT_EQ(generator.Mint(1, 20, 0, minted), Verdict::kAhead);
  EXPECT_EQ(generator.Mint(17, 20, 1, minted), Verdict::kAhead);
  ASSERT_EQ(generator.Mint(16, 20, 1, minted), Verdict::kMinted);
  EXPECT_EQ(minted.first, 21U << 4);
  EXPECT_EQ(generator.Mint(1, 20, 1, minted), Verdict::kAhead);
  ASSERT_EQ(generator.Mint(1, 21, 1, minted), Verdict::kMinted) << "the clock went on";
}

TEST(GeneratorTest, MintsBelowItsLimitOnlyAndGoesOnWhenItIsRaised) {
  Generator<> generator(kSmall, kSecret);
  generator.Open(1, 0, 21);
  Minted minted;
  EXPECT_EQ(generator.Mint(17, 20, 9, minted), Verdict::kLimit) << "a part of a batch is none";
  ASSERT_EQ(generator.Mint(16, 20, 9, minted), Verdict::kMinted);
  EXPECT_EQ(generator.Mint(1, 20, 9, minted), Verdict::kLimit);
  EXPECT_EQ(generator.Mint(1, 21, 9, minted), Verdict::kLimit);
  generator.Extend(1, 22);
  ASSERT_EQ(generator.Mint(1, 20, 9, minted), Verdict::kMinted);
  EXPECT_EQ(TickOf(kSmall, minted), 21);
  EXPECT_EQ(minted.worker, 1);
}

TEST(GeneratorTest, CloseTellsTheLargestTick) {
  Generator<> generator(kSmall, kSecret);
  generator.Open(1, 0, 1024);
  Minted minted;
  ASSERT_EQ(generator.Mint(33, 20, 2, minted), Verdict::kMinted);
  EXPECT_EQ(generator.Close(), 22);
  EXPECT_TRUE(generator.closed());
  EXPECT_EQ(generator.last_tick(), 22);
  EXPECT_EQ(generator.Close(), 22) << "again";
  EXPECT_EQ(generator.Mint(1, 30, 2, minted), Verdict::kClosed);
}

TEST(GeneratorTest, OpensAtItsFloorAndAboveAllThatItMinted) {
  Generator<> generator(kSmall, kSecret);
  generator.Open(1, 50, 1024);
  Minted minted;
  EXPECT_EQ(generator.Mint(1, 20, 29, minted), Verdict::kAhead);
  ASSERT_EQ(generator.Mint(1, 20, 30, minted), Verdict::kMinted);
  EXPECT_EQ(minted.first, 50U << 4);
  ASSERT_EQ(generator.Mint(3, 20, 30, minted), Verdict::kMinted);
  generator.Close();
  generator.Open(2, 10, 1024);
  ASSERT_EQ(generator.Mint(1, 20, 40, minted), Verdict::kMinted);
  EXPECT_EQ(minted.first, 51U << 4) << "the floor lies below what the old right minted";
  EXPECT_EQ(minted.worker, 2);
  generator.Close();
  generator.Open(3, 60, 1024);
  ASSERT_EQ(generator.Mint(1, 20, 40, minted), Verdict::kMinted);
  EXPECT_EQ(minted.first, 60U << 4);
}

TEST(GeneratorTest, ReopenedItNeverStandsAtThePlaceThatWasClosed) {
  for (const std::int64_t floor : {0, 1, 50}) {
    Generator<> generator(kSmall, kSecret);
    generator.Open(1, floor, 1024);
    // Whoever still holds the first place could mint by the old right if it came again.
    std::int64_t before = -1;
    for (std::int64_t worker = 2; worker < 6; ++worker) {
      Minted minted;
      generator.Close();
      generator.Open(worker, floor, 1024);
      ASSERT_EQ(generator.Mint(1, 0, 1023, minted), Verdict::kMinted);
      EXPECT_GT(static_cast<std::int64_t>(minted.first), before + 1) << "floor " << floor;
      EXPECT_EQ(minted.worker, worker);
      before = static_cast<std::int64_t>(minted.first);
    }
  }
}

TEST(GeneratorTest, TheLastTickOfTheLayoutIsMintedAndNothingBehindIt) {
  Generator<> generator(kSmall, kSecret);
  generator.Open(7, 0, 1024);
  Minted minted;
  ASSERT_EQ(generator.Mint(16, 1023, 100, minted), Verdict::kMinted);
  EXPECT_EQ(minted.At(kSmall, 15), (1 << 17) - 1) << "all bits set";
  EXPECT_EQ(generator.Mint(1, 1023, 100, minted), Verdict::kLimit);
  EXPECT_EQ(generator.Mint(1, 5000, 100, minted), Verdict::kLimit);
}

TEST(GeneratorTest, Js53StaysBelowTwoToThe53) {
  const std::int64_t end = std::int64_t{1} << kJs53Layout.time_bits;
  Generator<> generator(kJs53Layout, kSecret);
  generator.Open(31, 0, end);
  Minted minted;
  ASSERT_EQ(generator.Mint(100, end - 1, 0, minted), Verdict::kMinted);
  EXPECT_LT(minted.At(kJs53Layout, 99), std::int64_t{1} << 53);
  EXPECT_GT(minted.At(kJs53Layout, 0), std::int64_t{1} << 52);
}

TEST(GeneratorTest, ATimeBeforeTheEpochIsTheEpoch) {
  Generator<> generator(kSmall, kSecret);
  generator.Open(0, 0, 1024);
  Minted minted;
  ASSERT_EQ(generator.Mint(1, -5, 1, minted), Verdict::kMinted);
  EXPECT_LE(TickOf(kSmall, minted), 1);
}

}  // namespace
}  // namespace leaf
