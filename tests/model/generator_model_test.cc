#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "core/snowflake/generator.h"
#include "explorer.h"
#include "model_atomic.h"

namespace leaf::model {
namespace {

using ModelGenerator = Generator<ModelAtomic>;
using Verdict = ModelGenerator::Verdict;

/// Two ids a tick, so that a few ids cross ticks.
constexpr Layout kTiny{"tiny", 0, 6, 2, 1};
constexpr std::int64_t kAhead = 8;

// What one thread does, in order.
struct Deed {
  enum class What { kMint, kReopen, kExtend } what = What::kMint;
  std::int64_t count = 1, tick = 0;    // of a mint
  std::int64_t worker = 0, floor = 0;  // of a right
  std::int64_t limit = 0;
};
Deed Mint(std::int64_t count, std::int64_t tick) { return {Deed::What::kMint, count, tick}; }
/// A close, and an open with another right.
Deed Reopen(std::int64_t worker, std::int64_t floor, std::int64_t limit) {
  return {Deed::What::kReopen, 0, 0, worker, floor, limit};
}
Deed Extend(std::int64_t worker, std::int64_t limit) {
  return {Deed::What::kExtend, 0, 0, worker, 0, limit};
}
using Script = std::vector<std::vector<Deed>>;

struct Right {
  std::int64_t worker = 0, floor = 0, limit = 0;
};

class GeneratorProgram : public Program {
 public:
  GeneratorProgram(Right first, const Script& script, bool real_time)
      : script_(script), real_time_(real_time), generator_(kTiny, 1) {
    generator_.Open(first.worker, first.floor, first.limit);
    rights_.push_back(first);
  }

  int threads() const override { return static_cast<int>(script_.size()); }

  void Run(int i) override {
    for (const Deed& deed : script_[static_cast<std::size_t>(i)]) {
      switch (deed.what) {
        case Deed::What::kMint:
          MintOnce(deed);
          break;
        case Deed::What::kReopen:
          closed_at_.push_back(generator_.Close());
          closed_.push_back(Now());
          rights_.push_back({deed.worker, deed.floor, deed.limit});
          generator_.Open(deed.worker, deed.floor, deed.limit);
          break;
        case Deed::What::kExtend:
          rights_.back().limit = deed.limit;
          generator_.Extend(deed.worker, deed.limit);
          break;
      }
    }
  }

  void Check() override {
    std::sort(taken_.begin(), taken_.end(),
              [](const Taken& a, const Taken& b) { return a.minted.first < b.minted.first; });
    for (std::size_t i = 0; i + 1 < taken_.size(); ++i)
      Expect(Last(taken_[i]) < taken_[i + 1].minted.first, "a place minted twice");
    for (const Taken& taken : taken_) CheckRight(taken);
    if (real_time_) CheckRealTime();
  }

 private:
  struct Taken {
    Minted minted;
    int began, ended;
  };
  static std::uint64_t Last(const Taken& taken) {
    return taken.minted.first + static_cast<std::uint64_t>(taken.minted.count) - 1;
  }
  static std::int64_t TickOf(std::uint64_t place) {
    return static_cast<std::int64_t>(place >> kTiny.sequence_bits);
  }
  int Now() const { return real_time_ ? Instant() : 0; }

  void MintOnce(const Deed& deed) {
    Minted minted;
    const int began = Now();
    const Verdict verdict = generator_.Mint(deed.count, deed.tick, kAhead, minted);
    const int ended = Now();
    if (verdict != Verdict::kMinted) return;
    Expect(minted.count == deed.count, "another count than asked for");
    taken_.push_back({minted, began, ended});
  }

  /// Only under a right that was given, within its times, and nothing under a right that was
  /// closed beyond what its Close reported, or by a call that began after it.
  void CheckRight(const Taken& taken) const {
    for (std::size_t i = 0; i < rights_.size(); ++i) {
      if (rights_[i].worker != taken.minted.worker) continue;
      Expect(TickOf(taken.minted.first) >= rights_[i].floor, "minted below the floor");
      Expect(TickOf(Last(taken)) < rights_[i].limit, "minted at or beyond the limit");
      if (i >= closed_.size()) return;
      Expect(TickOf(Last(taken)) <= closed_at_[i], "minted beyond what Close reported");
      Expect(!real_time_ || taken.began < closed_[i], "minted under a right closed before");
      return;
    }
    Expect(false, "minted by a worker that there was no right to");
  }

  void CheckRealTime() const {
    for (const Taken& early : taken_) {
      for (const Taken& late : taken_) {
        if (early.ended >= late.began) continue;
        Expect(early.minted.At(kTiny, early.minted.count - 1) < late.minted.At(kTiny, 0),
               "a later answer is lower");
      }
    }
  }

  const Script& script_;
  bool real_time_;
  ModelGenerator generator_;
  std::vector<Right> rights_;            // in order; only one thread of a script changes it
  std::vector<std::int64_t> closed_at_;  // what the Close of each but the last returned
  std::vector<int> closed_;              // and when it had
  std::vector<Taken> taken_;
};

Outcome ExploreGenerator(const Options& options, const Script& script, Right first,
                         bool real_time = false) {
  const Outcome outcome = Explore(
      options, [&] { return std::make_unique<GeneratorProgram>(first, script, real_time); });
  std::cout << "schedules: " << outcome.schedules << ", executions: " << outcome.executions
            << ", longest: " << outcome.longest << "\n";
  return outcome;
}

void ExpectSound(const Outcome& outcome) {
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  EXPECT_TRUE(outcome.complete);
}

constexpr Right kFirst{1, 4, 32};
// The new worker is higher: ids may rise by the worker only where the tick does.
const Script kTwoMintersAndReopen = {{Mint(1, 4)}, {Mint(3, 5)}, {Reopen(2, 4, 32)}};
const Script kMinterAndReopen = {{Mint(1, 4), Mint(2, 4)}, {Reopen(0, 4, 32)}};

TEST(GeneratorModelTest, NoPlaceIsMintedTwiceOverAChangeOfTheWorker) {
  ExpectSound(ExploreGenerator({}, kTwoMintersAndReopen, kFirst));
  ExpectSound(ExploreGenerator({}, {{Mint(2, 4)}, {Mint(2, 4)}, {Reopen(0, 0, 32)}}, kFirst));
}

TEST(GeneratorModelTest, IdsRiseInRealTimeOverAChangeOfTheWorker) {
  ExpectSound(ExploreGenerator({}, kMinterAndReopen, kFirst, /*real_time=*/true));
  ExpectSound(ExploreGenerator({}, {{Mint(1, 4)}, {Mint(2, 5)}}, kFirst, /*real_time=*/true));
}

TEST(GeneratorModelTest, AThreadThatSleptThroughTwoChangesMintsNothingByAnOldRight) {
  for (const std::int64_t floor : {0, 1, 4}) {
    const Script script = {{Mint(1, floor)}, {Reopen(2, floor, 32), Reopen(3, floor, 32)}};
    ExpectSound(ExploreGenerator({}, script, {1, floor, 32}));
  }
}

TEST(GeneratorModelTest, AnExtensionUnderTheMinter) {
  const Script one = {{Mint(2, 4), Mint(2, 4), Mint(1, 4)}, {Extend(1, 6), Extend(1, 7)}};
  ExpectSound(ExploreGenerator({}, one, {1, 4, 5}));
  ExpectSound(ExploreGenerator({}, one, {1, 4, 5}, /*real_time=*/true));
  ExpectSound(ExploreGenerator({}, {{Mint(2, 4)}, {Mint(1, 5)}, {Extend(1, 8)}}, {1, 4, 5}));
}

TEST(GeneratorModelTest, WeakFailuresAndStaleLoadsChangeNothing) {
  const Options weak{.stale_loads = true, .weak_failures = true};
  ExpectSound(ExploreGenerator(weak, {{Mint(1, 4)}, {Reopen(2, 4, 32)}}, kFirst));
  ExpectSound(ExploreGenerator(weak, {{Mint(2, 4), Mint(1, 4)}, {Extend(1, 6)}}, {1, 4, 5}));
}

TEST(GeneratorModelTest, FindsALoadAndStoreInPlaceOfCompareAndSwap) {
  const Options split{.plant = Plant::kSplitUpdates};
  EXPECT_NE(ExploreGenerator(split, {{Mint(1, 4)}, {Mint(2, 4)}}, kFirst).failure, "");
  EXPECT_NE(ExploreGenerator(split, kMinterAndReopen, kFirst).failure, "");
}

TEST(GeneratorModelTest, FindsAPlaceThatIsReadWithAnOlderRight) {
  for (const Plant plant : {Plant::kNoAcquire, Plant::kNoRelease}) {
    const Options options{.stale_loads = true, .plant = plant};
    EXPECT_NE(ExploreGenerator(options, {{Mint(1, 4)}, {Reopen(2, 4, 32)}}, kFirst).failure, "");
  }
}

}  // namespace
}  // namespace leaf::model
