// B51 and F48: many engines with equal options in one process (a generator made anew for each call
// began its sequence again, and first parallel calls repeated each other). Whatever its users do,
// no two share a worker.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "core/snowflake/snowflake_engine.h"
#include "registry/blocking_registry.h"
#include "registry/memory/memory_registry.h"
#include "state/host_claims.h"

namespace leaf {
namespace {

/// Runs what is posted at once, on the thread that posts.
class Inline final : public Executor {
 public:
  void Post(Task& task) noexcept override { task.Run(); }
};

class Call final : public Waiter {
 public:
  using Waiter::Waiter;
  void Run() override { answered.release(); }
  std::binary_semaphore answered{0};
};

/// Engines on one registry, and a thread that ticks them.
class Engines {
 public:
  Engines(int amount, Duration lease)
      : registry_(std::make_unique<BlockingRegistry>(
            BlockingRegistry::Options{"memory", {}, 4, 1000},
            MakeMemoryRegistry("one", &SystemClock()), SystemClock())) {
    SnowflakeOptions options;
    options.identity = "same:1";
    options.lease = lease;
    options.wait = std::chrono::seconds(20);
    for (int i = 0; i < amount; ++i) {
      claims_.push_back(std::make_unique<SocketClaims>(cluster_));
      engines_.push_back(std::make_unique<SnowflakeEngine>(
          options, SnowflakeEngine::Ports{.registry = *registry_,
                                          .host = claims_.back().get(),
                                          .clock = SystemClock(),
                                          .random = SystemRandom()}));
    }
    ticker_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (auto& engine : engines_) engine->Tick(SystemClock().Now());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  ~Engines() {
    ticker_ = {};
    registry_.reset();
  }

  SnowflakeEngine& operator[](std::size_t i) { return *engines_[i]; }
  std::size_t size() const { return engines_.size(); }

  std::vector<std::int64_t> Workers() const {
    std::vector<std::int64_t> workers;
    for (const auto& engine : engines_) workers.push_back(engine->View().worker);
    return workers;
  }

 private:
  const std::string cluster_ = "b51-" + std::to_string(SystemRandom().Next());
  std::unique_ptr<BlockingRegistry> registry_;
  std::vector<std::unique_ptr<SocketClaims>> claims_;
  std::vector<std::unique_ptr<SnowflakeEngine>> engines_;
  std::jthread ticker_;
};

std::int64_t Next(SnowflakeEngine& engine) {
  Minted minted;
  const Instant now = SystemClock().Now();
  if (!engine.TryMint(1, now, minted)) {
    Inline here;
    Call call(here);
    Result<Minted> out = minted;
    if (engine.MintOrPark(call, now, out)) {
      EXPECT_TRUE(out.ok()) << out.error().message;
      return out.ok() ? out->At(kLeafLayout, 0) : 0;
    }
    call.answered.acquire();
    EXPECT_TRUE(call.result.ok()) << call.result.error().message;
    minted = call.minted;
  }
  return minted.At(kLeafLayout, 0);
}

TEST(TwoInstancesTest, AHundredAlikeHaveAWorkerEachAndTheFirstParallelCallsAreUnique) {
  constexpr int kThreads = 64, kRounds = 5;
  Engines engines(100, std::chrono::minutes(10));
  std::latch go(kThreads);
  std::vector<std::vector<std::int64_t>> ids(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        go.arrive_and_wait();
        for (int round = 0; round < kRounds; ++round) {
          for (std::size_t i = 0; i < engines.size(); ++i)
            ids[t].push_back(Next(engines[(t + i) % engines.size()]));
        }
      });
    }
  }
  std::vector<std::int64_t> all;
  for (const auto& some : ids) all.insert(all.end(), some.begin(), some.end());
  EXPECT_EQ(all.size(), kThreads * kRounds * engines.size());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "an id was given twice";

  const auto workers = engines.Workers();
  const std::set<std::int64_t> distinct(workers.begin(), workers.end());
  EXPECT_EQ(distinct.size(), engines.size());
  EXPECT_GE(*distinct.begin(), 0);
}

}  // namespace
}  // namespace leaf
