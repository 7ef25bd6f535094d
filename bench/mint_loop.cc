// Snowflake ids a second in this process, by one and two threads, beside a bare compare-and-swap on
// one 64-bit word: what the engine's own work costs, and that it reaches the layout's ceiling of
// 4,096 ids a millisecond. Usage: mint_loop [SECONDS]
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "core/snowflake/snowflake_engine.h"

namespace {

using leaf::Duration;
using leaf::Instant;
using std::chrono::milliseconds;

/// Grants everything at once, so that the generator alone is measured.
class OpenRegistry final : public leaf::WorkerRegistry {
 public:
  leaf::RegistryTraits traits() const noexcept override { return {}; }
  void Claim(leaf::ClaimAsk ask, leaf::Done<leaf::WorkerRight> done) override {
    leaf::WorkerRight right;
    right.owner = ask.owner;
    right.limit_ms = ask.now_ms + ask.lease_ms;
    done(right);
  }
  void Extend(leaf::WorkerRight right, std::int64_t limit_ms, std::int64_t, Instant,
              leaf::Done<leaf::WorkerRight> done) override {
    right.limit_ms = limit_ms;
    done(right);
  }
  void Lower(leaf::WorkerRight right, std::int64_t, Instant,
             leaf::Done<leaf::WorkerRight> done) override {
    done(right);
  }
  void List(Instant, leaf::Done<std::vector<leaf::WorkerRecord>> done) override {
    done(std::vector<leaf::WorkerRecord>{});
  }
  void Retire(std::int64_t, Instant, leaf::Done<leaf::WorkerRecord> done) override {
    done(leaf::WorkerRecord{});
  }
  leaf::RegistryStatus Status() const override { return {}; }
};

/// Runs `step` (which returns how many ids it took) on `threads` threads; ids a second.
template <typename Step>
double Rate(int threads, double seconds, Step step) {
  std::atomic<bool> go{false}, stop{false};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(threads) * 16);  // a cache line each
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      while (!go.load()) std::this_thread::yield();
      std::int64_t taken = 0;
      while (!stop.load(std::memory_order_relaxed)) taken += step();
      counts[static_cast<std::size_t>(t) * 16] = taken;
    });
  }
  const Instant begin = leaf::SystemClock().Now();
  go = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& worker : workers) worker.join();
  const double took = std::chrono::duration<double>(leaf::SystemClock().Now() - begin).count();
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  return static_cast<double>(sum) / took;
}

/// `drift` far beyond what is minted leaves the engine's own speed; a short one its layout's.
void Measure(const char* name, Duration drift, int threads, double seconds, std::int64_t batch) {
  OpenRegistry registry;
  leaf::SnowflakeOptions options;
  options.drift = drift;
  options.lease = std::chrono::hours(24 * 365);
  leaf::SnowflakeEngine engine(
      options,
      {.registry = registry, .clock = leaf::SystemClock(), .random = leaf::SystemRandom()});
  if (!engine.Load().ok()) std::abort();
  engine.Tick(leaf::SystemClock().Now());
  const double rate = Rate(threads, seconds, [&]() -> std::int64_t {
    leaf::Minted minted;
    // The hot path reads the clock once a batch of requests; here 64 ids stand for one.
    const Instant now = leaf::SystemClock().Now();
    std::int64_t taken = 0;
    for (int i = 0; i < 64; ++i) {
      if (!engine.TryMint(batch, now, minted)) {
        std::this_thread::sleep_for(milliseconds(1));
        break;
      }
      taken += batch;
    }
    return taken;
  });
  std::printf("  %-38s %8d %16.0f\n", name, threads, rate);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  std::printf("  %-38s %8s %16s\n", "", "threads", "ids/s");
  for (const int threads : {1, 2}) {
    std::atomic<std::uint64_t> word{0};
    const double rate = Rate(threads, seconds, [&]() -> std::int64_t {
      for (int i = 0; i < 64; ++i) {
        std::uint64_t last = word.load(std::memory_order_relaxed);
        while (!word.compare_exchange_weak(last, last + 1, std::memory_order_acq_rel)) {
        }
      }
      return 64;
    });
    std::printf("  %-38s %8d %16.0f\n", "bare compare-and-swap", threads, rate);
  }
  for (const int threads : {1, 2})
    Measure("engine, clock never in the way", std::chrono::hours(24 * 300), threads, seconds, 1);
  for (const int threads : {1, 2})
    Measure("engine, layout leaf, single ids", milliseconds(20), threads, seconds, 1);
  Measure("engine, layout leaf, batches of 100", milliseconds(20), 2, seconds, 100);
  std::printf("  %-38s %8s %16d\n", "the layout's ceiling (4,096 a ms)", "", 4'096'000);
  return 0;
}
