#include "core/snowflake/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <string>

#include "base/iso_time.h"
#include "base/random.h"
#include "core/segment/engine_test_support.h"
#include "core/snowflake/minted.h"

namespace leaf {
namespace {

constexpr std::int64_t kEpoch = 1288834974657;

std::string Refusal(std::string_view bits, std::int64_t epoch_ms = kEpoch,
                    std::int64_t tick_ms = 1) {
  const auto layout = CustomLayout(bits, epoch_ms, tick_ms);
  if (layout.ok()) return "accepted as " + LayoutText(*layout);
  EXPECT_EQ(layout.error().code, Code::kInvalidArgument);
  return layout.error().message;
}

std::string AcceptedAs(std::string_view bits, std::int64_t epoch_ms = kEpoch,
                       std::int64_t tick_ms = 1) {
  const auto layout = CustomLayout(bits, epoch_ms, tick_ms);
  return layout.ok() ? LayoutText(*layout) : layout.error().message;
}

TEST(LayoutTest, LeafsLayoutEndsInJuly2080) {
  EXPECT_EQ(kLeafLayout.end_ms(), 3487858230209);
  EXPECT_THAT(IsoTime(kLeafLayout.end_ms()), testing::StartsWith("2080-07-10T17:30:30"));
  EXPECT_EQ(kLeafLayout.workers(), 1024);
}

TEST(LayoutTest, TheLastIdOfJs53IsExactInADouble) {
  const std::int64_t last_tick = (std::int64_t{1} << kJs53Layout.time_bits) - 1;
  const Minted last{(static_cast<std::uint64_t>(last_tick) << kJs53Layout.sequence_bits) + 127, 1,
                    kJs53Layout.workers() - 1};
  EXPECT_EQ(last.At(kJs53Layout, 0), (std::int64_t{1} << 53) - 1);
}

TEST(LayoutTest, NamesAreExact) {
  EXPECT_EQ(FindLayout("leaf"), kLeafLayout);
  EXPECT_EQ(FindLayout("js53"), kJs53Layout);
  for (const char* name : {"", "Leaf", "leaf ", "custom"})
    EXPECT_EQ(FindLayout(name), std::nullopt);
}

TEST(LayoutTest, CustomBounds) {
  EXPECT_EQ(AcceptedAs("41/10/12"), "41/10/12@1288834974657");
  EXPECT_EQ(AcceptedAs("39/8/16", 0, 10), "39/8/16@0/10ms");
  EXPECT_EQ(AcceptedAs("1/1/1"), "1/1/1@1288834974657");
  EXPECT_EQ(AcceptedAs("21/20/22"), "21/20/22@1288834974657");
  EXPECT_EQ(AcceptedAs("41/1/21"), "41/1/21@1288834974657");
  EXPECT_EQ(AcceptedAs("31/10/22", 0, 60'000), "31/10/22@0/60000ms");
  const auto together = testing::HasSubstr("together at most 63");
  for (const char* bits :
       {"0/10/12", "41/0/12", "41/10/0", "20/21/12", "20/10/23", "42/10/12", "2147483647/10/12"}) {
    EXPECT_THAT(Refusal(bits), together) << bits;
  }
}

TEST(LayoutTest, BitsThatAreNoThreeNumbers) {
  for (const char* bits :
       {"", "41", "41/10", "41/10/", "/10/12", "41/10/12/", "41/10/12/1", "-41/10/12", "+41/10/12",
        " 41/10/12", "41/10/12 ", "41-10-12", "41//12", "a/b/c", "99999999999/10/12"}) {
    EXPECT_THAT(Refusal(bits), testing::HasSubstr("TIME/WORKER/SEQUENCE")) << bits;
  }
}

TEST(LayoutTest, TickAndEpochBounds) {
  EXPECT_THAT(Refusal("41/10/12", kEpoch, 0), testing::HasSubstr("tick"));
  EXPECT_THAT(Refusal("30/10/12", kEpoch, 60'001), testing::HasSubstr("tick"));
  EXPECT_THAT(Refusal("41/10/12", -1), testing::HasSubstr("epoch"));
  EXPECT_THAT(Refusal("41/10/12", std::numeric_limits<std::int64_t>::max()),
              testing::HasSubstr("epoch"));
  EXPECT_THAT(Refusal("41/10/12", kEpoch, 60'000), testing::HasSubstr("9999"));
  EXPECT_THAT(Refusal("60/1/1"), testing::HasSubstr("9999"));
}

TEST(LayoutTest, TicksOfTimes) {
  const auto layout = CustomLayout("39/8/16", 1000, 10);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->TickOf(1000), 0);
  EXPECT_EQ(layout->TickOf(1009), 0);
  EXPECT_EQ(layout->TickOf(1010), 1);
  EXPECT_EQ(layout->TickFrom(0), 0);
  EXPECT_EQ(layout->TickFrom(1000), 0);
  EXPECT_EQ(layout->TickFrom(1001), 1);
  EXPECT_EQ(layout->TickFrom(1010), 1);
  EXPECT_EQ(layout->TickFrom(1011), 2);
  EXPECT_EQ(layout->MillisOf(2), 1020);
  EXPECT_EQ(layout->end_ms(), 1000 + (std::int64_t{10} << 39));
}

TEST(LayoutTest, ANegativeNumberDecodesToATimeBeforeTheEpoch) {
  const SnowflakeParts parts = Decode(kLeafLayout, -1);
  EXPECT_EQ(parts.time_ms, kLeafLayout.epoch_ms - 1);
  EXPECT_EQ(parts.worker, 1023);
  EXPECT_EQ(parts.sequence, 4095);
}

TEST(LayoutTest, ANumberBeyondTheLayoutDoesNotOverflow) {
  const auto layout = CustomLayout("20/1/1", 253'402'000'000'000, 1);
  const auto slow = CustomLayout("20/1/1", 0, 60'000);
  ASSERT_TRUE(layout.ok() && slow.ok());
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(Decode(*layout, kMax).time_ms, 253'402'000'000'000 + (kMax >> 2));
  EXPECT_EQ(Decode(*slow, kMax).time_ms, kMax);
  EXPECT_EQ(Decode(*slow, kMin).time_ms, kMin);
}

/// Any layout that CustomLayout takes.
Layout AnyLayout(Random& random) {
  for (;;) {
    const auto number = [&](std::uint64_t from, std::uint64_t to) {
      return from + random.Below(to - from + 1);
    };
    const std::string bits = std::to_string(number(1, 45)) + "/" + std::to_string(number(1, 20)) +
                             "/" + std::to_string(number(1, 22));
    const auto layout = CustomLayout(bits, static_cast<std::int64_t>(number(0, 1'800'000'000'000)),
                                     static_cast<std::int64_t>(number(1, 100)));
    if (layout.ok()) return *layout;
  }
}

TEST(LayoutTest, DecodedIsWhatWasEncoded) {
  const std::uint64_t seed = SystemRandom().Next();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  test::SeededRandom random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const Layout layout = AnyLayout(random);
    const auto below = [&](int bits) { return random.Below(std::uint64_t{1} << bits); };
    const std::uint64_t tick = below(layout.time_bits);
    const std::uint64_t sequence = below(layout.sequence_bits);
    const auto worker = static_cast<std::int64_t>(below(layout.worker_bits));
    const Minted minted{(tick << layout.sequence_bits) | sequence, 1, worker};
    const std::int64_t id = minted.At(layout, 0);
    ASSERT_GE(id, 0) << LayoutText(layout);
    const SnowflakeParts parts = Decode(layout, id);
    ASSERT_EQ(parts.time_ms, layout.MillisOf(static_cast<std::int64_t>(tick)))
        << LayoutText(layout) << " " << id;
    ASSERT_EQ(parts.worker, worker) << LayoutText(layout) << " " << id;
    ASSERT_EQ(parts.sequence, static_cast<std::int64_t>(sequence))
        << LayoutText(layout) << " " << id;
  }
}

}  // namespace
}  // namespace leaf
