// B37 and F37, the long form where it is cheap: five thousand servers one after the other, each
// with an address of its own, on a layout of 64 workers; some end without a word.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>

#include "base/random.h"
#include "core/snowflake/layout.h"
#include "core/snowflake/worker_registry.h"
#include "registry/memory/memory_registry.h"
#include "registry/registry_driver.h"
#include "registry/sqlite/sqlite_registry.h"

namespace leaf {
namespace {

constexpr std::int64_t kWorkers = 64, kLeaseMs = 1000;

/// What the registry may not forget of an owner.
struct Owner {
  std::int64_t limit_ms = 0;
  std::int64_t generation = 0;
};

void Churn(RegistryDriver& registry, int starts) {
  const std::uint64_t seed = SystemRandom().Next();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::map<std::int64_t, Owner> owners;
  std::int64_t now_ms = 1'800'000'000'000;
  std::vector<std::string> warnings;
  ASSERT_TRUE(registry.Open(kNever, warnings).ok());
  for (int i = 0; i < starts; ++i) {
    ClaimAsk ask;
    ask.owner = std::string(24, 'a') + std::to_string(10'000'000 + i);
    ask.identity = "10." + std::to_string(i / 65536) + "." + std::to_string(i / 256 % 256) + "." +
                   std::to_string(i % 256) + ":" + std::to_string(random() % 65536);
    ask.workers = kWorkers;
    ask.layout = "41/6/12@1288834974657";
    ask.now_ms = now_ms;
    ask.lease_ms = kLeaseMs;
    const auto right = registry.Claim(ask);
    ASSERT_TRUE(right.ok()) << "start " << i << ": " << right.error().message;
    ASSERT_GE(right->worker, 0);
    ASSERT_LT(right->worker, kWorkers);
    Owner& owner = owners[right->worker];
    ASSERT_LE(owner.limit_ms, now_ms) << "start " << i << ": worker " << right->worker << " lives";
    ASSERT_GE(std::max(right->floor_ms, now_ms), owner.limit_ms);
    ASSERT_GT(right->generation, owner.generation);
    ASSERT_GT(right->limit_ms, now_ms);
    owner = {right->limit_ms, right->generation};
    now_ms += 1 + static_cast<std::int64_t>(random() % 60);
    if (random() % 4 == 0) continue;  // killed: the worker rests until its limit
    if (now_ms >= right->limit_ms) continue;
    const auto lowered = registry.Lower(*right, now_ms, kNever);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    ASSERT_EQ(lowered->limit_ms, now_ms);
    owner = {now_ms, lowered->generation};
  }
  const auto records = registry.List(kNever);
  ASSERT_TRUE(records.ok());
  EXPECT_EQ(records->size(), owners.size()) << "no record but the workers'";
}

TEST(ChangingAddressesTest, FiveThousandStartsInMemory) {
  const auto registry = MakeMemoryRegistry("c")();
  Churn(*registry, 5000);
}

TEST(ChangingAddressesTest, StartsOnOneFile) {
  const std::string folder = testing::TempDir() + "/b37-" + std::to_string(SystemRandom().Next());
  StoreOptions store;
  store.path = folder + ".db";
  RegistryOptions options;
  const auto factory = MakeSqliteRegistry(store, options);
  ASSERT_TRUE(factory.ok()) << factory.error().message;
  Churn(*(*factory)(), 200);
}

}  // namespace
}  // namespace leaf
