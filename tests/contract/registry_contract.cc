#include "contract/registry_contract.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <set>
#include <thread>
#include <vector>

#include "base/random.h"

namespace leaf::contract {

using testing::HasSubstr;

namespace {

std::string NewOwner() {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(SystemRandom().Next()),
                static_cast<unsigned long long>(SystemRandom().Next()));
  return text.data();
}

template <typename T>
T Must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? std::move(result).value() : T();
}

}  // namespace

Instant RegistryContract::Soon() { return SystemClock().Now() + std::chrono::seconds(20); }

std::unique_ptr<RegistryDriver> RegistryContract::Open(int server) {
  auto driver = registry_->MakeSession(server);
  std::vector<std::string> warnings;
  const Result<void> opened = driver->Open(Soon(), warnings);
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
  EXPECT_TRUE(driver->connected());
  return driver;
}

ClaimAsk RegistryContract::Ask(int server) {
  ClaimAsk ask;
  ask.owner = NewOwner();
  ask.identity = "10.0.0." + std::to_string(server + 1) + ":8080";
  ask.workers = 1024;
  ask.layout = "41/10/12@1288834974657";
  ask.now_ms = SystemClock().WallMillis();
  ask.lease_ms = kLease;
  ask.deadline = Soon();
  return ask;
}

TEST_P(RegistryContract, AClaimGivesARightFromNowOnForALease) {
  const auto driver = Open(0);
  const ClaimAsk ask = Ask(0);
  const WorkerRight right = Must(driver->Claim(ask));
  EXPECT_EQ(right.owner, ask.owner);
  EXPECT_GE(right.worker, 0);
  EXPECT_LT(right.worker, ask.workers);
  EXPECT_GT(right.limit_ms, ask.now_ms);
  EXPECT_LE(right.limit_ms, ask.now_ms + kLease);
  EXPECT_LE(right.floor_ms, ask.now_ms);
  EXPECT_EQ(right.registry_ms.has_value(), traits().has_clock);
  if (traits().bound) {
    EXPECT_EQ(right.worker, traits().worker);
  }
}

TEST_P(RegistryContract, TwoServersGetTwoWorkers) {
  if (traits().bound) {
    EXPECT_EQ(Must(Open(0)->Claim(Ask(0))).worker, traits().worker);
    return;
  }
  const auto first = Open(0), second = Open(1);
  EXPECT_NE(Must(first->Claim(Ask(0))).worker, Must(second->Claim(Ask(1))).worker);
}

TEST_P(RegistryContract, SixteenServersAtOnceGetSixteenWorkers) {
  if (traits().bound) {
    EXPECT_EQ(Must(Open(0)->Claim(Ask(0))).worker, traits().worker);
    return;
  }
  constexpr int kServers = 16;
  std::vector<std::unique_ptr<RegistryDriver>> drivers;
  std::vector<ClaimAsk> asks;
  for (int i = 0; i < kServers; ++i) {
    drivers.push_back(Open(i));
    asks.push_back(Ask(i));
  }
  std::vector<WorkerRight> rights(kServers);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kServers; ++i)
    threads.emplace_back([&, i] { rights[i] = Must(drivers[i]->Claim(asks[i])); });
  for (std::thread& thread : threads) thread.join();
  std::set<std::int64_t> workers;
  for (std::size_t i = 0; i < kServers; ++i) {
    EXPECT_EQ(rights[i].owner, asks[i].owner);
    workers.insert(rights[i].worker);
  }
  EXPECT_EQ(workers.size(), 16U);
}

TEST_P(RegistryContract, AnExtensionNeverLowersAndMayBeRepeated) {
  const auto driver = Open(0);
  WorkerRight right = Must(driver->Claim(Ask(0)));
  const std::int64_t limit = right.limit_ms + 10'000;
  right = Must(driver->Extend(right, limit, kLease, Soon()));
  EXPECT_EQ(right.limit_ms, limit);
  EXPECT_EQ(right.registry_ms.has_value(), traits().has_clock);
  right = Must(driver->Extend(right, limit, kLease, Soon()));
  EXPECT_EQ(right.limit_ms, limit);
  right = Must(driver->Extend(right, limit - 5'000, kLease, Soon()));
  EXPECT_EQ(right.limit_ms, limit);
}

TEST_P(RegistryContract, AnExtensionReachesNotBeyondTheRegistrysClock) {
  const auto driver = Open(0);
  WorkerRight right = Must(driver->Claim(Ask(0)));
  const std::int64_t far = right.limit_ms + 365LL * 86'400'000;
  right = Must(driver->Extend(right, far, kLease, Soon()));
  if (traits().has_clock) {
    EXPECT_LE(right.limit_ms, right.registry_ms.value_or(0) + kLease + kClockToleranceMs);
  } else {
    EXPECT_EQ(right.limit_ms, far);
  }
}

TEST_P(RegistryContract, ARepeatedClaimOfOneOwnerGivesTheSameWorker) {
  const auto driver = Open(0);
  ClaimAsk ask = Ask(0);
  const WorkerRight first = Must(driver->Claim(ask));
  const WorkerRight again = Must(driver->Claim(ask));
  EXPECT_EQ(again.worker, first.worker);
  EXPECT_GE(again.floor_ms, first.floor_ms);
  EXPECT_TRUE(driver->Extend(again, again.limit_ms + 1000, kLease, Soon()).ok());
}

TEST_P(RegistryContract, AfterALoweredLimitTheNextOwnerBeginsThereAndTheOldOneIsOut) {
  const auto first = Open(0);
  const WorkerRight right = Must(first->Claim(Ask(0)));
  const std::int64_t minted = SystemClock().WallMillis() - 5'000;
  const WorkerRight lowered = Must(first->Lower(right, minted, Soon()));
  EXPECT_EQ(lowered.limit_ms, minted);
  const auto second = Open(0);
  const WorkerRight next = Must(second->Claim(Ask(0)));
  EXPECT_EQ(next.worker, right.worker);
  EXPECT_GE(next.floor_ms, minted);
  EXPECT_LE(next.floor_ms, SystemClock().WallMillis() + 10'000);
  const auto late = first->Extend(lowered, right.limit_ms + 1000, kLease, Soon());
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kConflict) << late.error().message;
  const auto late_lower = first->Lower(lowered, minted, Soon());
  ASSERT_FALSE(late_lower.ok());
  EXPECT_EQ(late_lower.error().code, Code::kConflict);
}

TEST_P(RegistryContract, AWorkerWhoseLimitPassedBeginsAtIt) {
  if (traits().bound) {
    const WorkerRight right = Must(Open(0)->Claim(Ask(0)));
    const WorkerRight next = Must(Open(0)->Claim(Ask(0)));
    EXPECT_GE(next.floor_ms, right.limit_ms) << "nothing proves that its times were not minted";
    return;
  }
  const auto first = Open(0);
  ClaimAsk ask = Ask(0);
  ask.lease_ms = 50;
  const WorkerRight right = Must(first->Claim(ask));
  const auto second = Open(1);
  ClaimAsk next_ask = Ask(0);
  // Not yet free by the clock of before; free once it has passed the limit.
  next_ask.now_ms = ask.now_ms;
  EXPECT_NE(Must(second->Claim(next_ask)).worker, right.worker);
  while (SystemClock().WallMillis() <= right.limit_ms) std::this_thread::yield();
  const WorkerRight next = Must(Open(2)->Claim(Ask(0)));
  EXPECT_EQ(next.worker, right.worker);
  EXPECT_EQ(next.floor_ms, right.limit_ms);
  EXPECT_GT(next.generation, right.generation);
}

TEST_P(RegistryContract, AClockTooFarAheadIsRefused) {
  const auto driver = Open(0);
  ClaimAsk ask = Ask(0);
  ask.now_ms += 365LL * 86'400'000;
  const auto right = driver->Claim(ask);
  if (!traits().has_clock) {
    EXPECT_TRUE(right.ok());
    return;
  }
  ASSERT_FALSE(right.ok());
  EXPECT_EQ(right.error().code, Code::kUnavailable);
  EXPECT_THAT(right.error().message, HasSubstr("clock_ahead"));
  EXPECT_TRUE(driver->Claim(Ask(0)).ok()) << "nothing was left behind";
}

TEST_P(RegistryContract, AnExcludedWorkerIsNotGiven) {
  const auto driver = Open(0);
  ClaimAsk ask = Ask(0);
  ask.excluded = {traits().bound ? traits().worker : 0, 1};
  const auto right = driver->Claim(ask);
  if (traits().bound) {
    ASSERT_FALSE(right.ok());
    EXPECT_EQ(right.error().code, Code::kUnavailable);
  } else {
    EXPECT_EQ(Must(right).worker, 2);
  }
}

TEST_P(RegistryContract, ARestartKeepsTheRight) {
  auto driver = Open(0);
  const ClaimAsk ask = Ask(0);
  const WorkerRight right = Must(driver->Claim(ask));
  if (traits().restarts) registry_->Restart();
  driver = Open(0);
  const WorkerRight later = Must(driver->Extend(right, right.limit_ms + 1000, kLease, Soon()));
  EXPECT_EQ(later.worker, right.worker);
  EXPECT_EQ(later.limit_ms, right.limit_ms + 1000);
}

TEST_P(RegistryContract, ListShowsWorkersAndRetireEndsAnOwner) {
  const auto driver = Open(0);
  const ClaimAsk ask = Ask(0);
  const WorkerRight right = Must(driver->Claim(ask));
  const auto listed = Must(driver->List(Soon()));
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].worker, right.worker);
  EXPECT_EQ(listed[0].identity, ask.identity);
  EXPECT_EQ(listed[0].limit_ms, right.limit_ms);
  if (!traits().lists) return;

  EXPECT_EQ(driver->Retire(right.worker + 100, Soon()).error().code, Code::kNotFound);
  EXPECT_EQ(Must(driver->Retire(right.worker, Soon())).worker, right.worker);
  const auto late = driver->Extend(right, right.limit_ms + 1000, kLease, Soon());
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kConflict);
  EXPECT_NE(Must(driver->Claim(Ask(1))).worker, right.worker)
      << "what the old owner may still mint is not given away";
}

}  // namespace leaf::contract
