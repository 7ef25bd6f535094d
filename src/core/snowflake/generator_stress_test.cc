// Four threads mint batches while a fifth closes, opens and extends: exact totals, no place twice,
// ids that rise in each thread, nothing under a right beyond what its Close reported.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/random.h"
#include "core/segment/engine_test_support.h"
#include "core/snowflake/generator.h"

namespace leaf::test {
namespace {

constexpr int kMinters = 4;
constexpr int kBatches = 10'000;  // of each
constexpr std::int64_t kMaxCount = 40;
constexpr Layout kLayout{"stress", 0, 37, 20, 6};
constexpr std::int64_t kAhead = 50, kLimitStep = 3;

struct Shared {
  explicit Shared(std::uint64_t secret) : generator(kLayout, secret) {}

  Generator<> generator;
  std::atomic<std::int64_t> tick{1}, batches{0};
  std::atomic<bool> go{false};
};

struct Minter {
  std::vector<Minted> got;
  std::int64_t asked = 0;
};

void Mint(Shared& shared, std::uint64_t seed, Minter& minter) {
  SeededRandom random(seed);
  minter.got.reserve(kBatches);
  shared.go.wait(false);
  while (minter.got.size() < kBatches) {
    const auto count = static_cast<std::int64_t>(random.Below(kMaxCount)) + 1;
    Minted minted;
    // Refused: closed, or the fifth thread has to move the limit or the clock first.
    while (shared.generator.Mint(count, shared.tick.load(std::memory_order_relaxed), kAhead,
                                 minted) != Generator<>::Verdict::kMinted) {
      std::this_thread::yield();
    }
    minter.got.push_back(minted);
    minter.asked += count;
    shared.batches.fetch_add(1, std::memory_order_relaxed);
  }
}

/// Opens right after right, worker w being the right number w, and extends each a few times while
/// the minters go on. Returns the tick that each Close reported.
std::vector<std::int64_t> Keep(Shared& shared, std::uint64_t seed) {
  constexpr std::int64_t kAll = std::int64_t{kMinters} * kBatches;
  SeededRandom random(seed);
  std::vector<std::int64_t> closed;
  while (shared.batches.load() < kAll) {
    const auto worker = static_cast<std::int64_t>(closed.size());
    const std::int64_t floor = shared.tick.load() + static_cast<std::int64_t>(random.Below(3));
    std::int64_t limit = floor + kLimitStep;
    shared.generator.Open(worker, floor, limit);
    if (worker == 0) {
      shared.go = true;
      shared.go.notify_all();
    }
    const auto more = static_cast<std::int64_t>(random.Below(60));
    const std::int64_t until = std::min(kAll, shared.batches.load() + more);
    while (shared.batches.load() < until) {
      const std::int64_t tick = shared.tick.fetch_add(1) + 1;
      limit = std::max({limit, tick + kLimitStep, shared.generator.last_tick() + kLimitStep});
      shared.generator.Extend(worker, limit);
      std::this_thread::yield();
    }
    closed.push_back(shared.generator.Close());
  }
  return closed;
}

void CheckThread(const Minter& minter) {
  std::int64_t before = -1;
  std::int64_t total = 0;
  for (const Minted& minted : minter.got) {
    ASSERT_GT(minted.At(kLayout, 0), before) << "ids rise in a thread";
    before = minted.At(kLayout, minted.count - 1);
    ASSERT_GE(before, minted.At(kLayout, 0));
    total += minted.count;
  }
  EXPECT_EQ(total, minter.asked);
}

void CheckRights(const std::vector<Minted>& all, const std::vector<std::int64_t>& closed) {
  for (const Minted& minted : all) {
    const auto right = static_cast<std::size_t>(minted.worker);
    ASSERT_LT(right, closed.size());
    const std::uint64_t last = minted.first + static_cast<std::uint64_t>(minted.count) - 1;
    ASSERT_LE(static_cast<std::int64_t>(last >> kLayout.sequence_bits), closed[right]);
    if (right == 0) continue;
    ASSERT_GT(static_cast<std::int64_t>(minted.first >> kLayout.sequence_bits), closed[right - 1])
        << "a right begins above the one before";
  }
}

TEST(GeneratorStressTest, MintersUnderAKeeperThatClosesOpensAndExtends) {
  const std::uint64_t seed = SystemRandom().Next();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Shared shared(seed);
  std::vector<Minter> minters(kMinters);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < minters.size(); ++i)
    threads.emplace_back([&, i] { Mint(shared, seed + i, minters[i]); });
  const std::vector<std::int64_t> closed = Keep(shared, seed + kMinters);
  for (std::thread& thread : threads) thread.join();

  std::vector<Minted> all;
  for (const Minter& minter : minters) {
    CheckThread(minter);
    all.insert(all.end(), minter.got.begin(), minter.got.end());
  }
  ASSERT_EQ(all.size(), std::size_t{kMinters} * kBatches);
  std::sort(all.begin(), all.end(),
            [](const Minted& a, const Minted& b) { return a.first < b.first; });
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    ASSERT_LE(all[i].first + static_cast<std::uint64_t>(all[i].count), all[i + 1].first)
        << "a place twice";
  }
  CheckRights(all, closed);
  std::printf("%zu rights\n", closed.size());
  EXPECT_GT(closed.size(), 100U) << "the keeper was not at work";
}

}  // namespace
}  // namespace leaf::test
