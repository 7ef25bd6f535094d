#include "explorer.h"

#include <gtest/gtest.h>

#include <set>

#include "model_atomic.h"

namespace leaf::model {
namespace {

// What the explorer itself owes: it finds known races of known small programs, and no others.

class Counter : public Program {
 public:
  Counter(int threads, bool atomic) : threads_(threads), atomic_(atomic) {}
  int threads() const override { return threads_; }
  void Run(int) override {
    if (atomic_) {
      value_.fetch_add(1);
    } else {
      value_.store(value_.load() + 1);
    }
  }
  void Check() override { Expect(value_.load() == threads_, "an increment was lost"); }

 private:
  int threads_;
  bool atomic_;
  ModelAtomic<int> value_{0};
};

TEST(ExplorerTest, FindsALostIncrement) {
  const Outcome outcome =
      Explore({}, [] { return std::make_unique<Counter>(2, /*atomic=*/false); });
  EXPECT_EQ(outcome.failure, "an increment was lost");
  EXPECT_FALSE(outcome.schedule.empty());
}

TEST(ExplorerTest, RunsEveryOrderOfDependentOperationsOnce) {
  const Outcome outcome = Explore({}, [] { return std::make_unique<Counter>(3, /*atomic=*/true); });
  EXPECT_EQ(outcome.failure, "");
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.schedules, 6u);  // 3!
}

class Separate : public Program {
 public:
  int threads() const override { return 3; }
  void Run(int i) override {
    for (int n = 0; n < 3; ++n) at_[static_cast<std::size_t>(i)].store(n);
  }
  void Check() override {}

 private:
  std::array<ModelAtomic<int>, 3> at_;
};

TEST(ExplorerTest, IndependentOperationsAreNotPermuted) {
  const Outcome outcome = Explore({}, [] { return std::make_unique<Separate>(); });
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.schedules, 1u);
}

// Two threads, each writes its own flag and reads the other's: both may read the old value unless
// the operations are sequentially consistent.
class StoreBuffer : public Program {
 public:
  StoreBuffer(std::memory_order store, std::memory_order load, std::set<std::pair<int, int>>& seen)
      : store_(store), load_(load), seen_(seen) {}
  int threads() const override { return 2; }
  void Run(int i) override {
    flag_[static_cast<std::size_t>(i)].store(1, store_);
    read_[static_cast<std::size_t>(i)] = flag_[static_cast<std::size_t>(1 - i)].load(load_);
  }
  void Check() override { seen_.insert({read_[0], read_[1]}); }

 private:
  std::memory_order store_, load_;
  std::set<std::pair<int, int>>& seen_;
  std::array<ModelAtomic<int>, 2> flag_;
  std::array<int, 2> read_{};
};

std::set<std::pair<int, int>> StoreBufferResults(std::memory_order store, std::memory_order load,
                                                 bool stale) {
  std::set<std::pair<int, int>> seen;
  const Outcome outcome = Explore({.stale_loads = stale},
                                  [&] { return std::make_unique<StoreBuffer>(store, load, seen); });
  EXPECT_TRUE(outcome.complete);
  return seen;
}

TEST(ExplorerTest, StaleLoadsShowTheStoreBuffer) {
  const std::pair<int, int> both_old{0, 0};
  EXPECT_EQ(StoreBufferResults(std::memory_order_release, std::memory_order_acquire, true)
                .count(both_old),
            1u);
  EXPECT_EQ(StoreBufferResults(std::memory_order_release, std::memory_order_acquire, false)
                .count(both_old),
            0u);
  EXPECT_EQ(StoreBufferResults(std::memory_order_seq_cst, std::memory_order_seq_cst, true)
                .count(both_old),
            0u);
  EXPECT_EQ(StoreBufferResults(std::memory_order_seq_cst, std::memory_order_seq_cst, true).size(),
            3u);
}

class Publish : public Program {
 public:
  Publish(std::memory_order store, std::memory_order load) : store_(store), load_(load) {}
  int threads() const override { return 2; }
  void Run(int i) override {
    if (i == 0) {
      data_.Write(7);
      ready_.store(true, store_);
    } else if (ready_.load(load_)) {
      Expect(data_.Read() == 7, "read before it was written");
    }
  }
  void Check() override {}

 private:
  std::memory_order store_, load_;
  Plain<int> data_{0};
  ModelAtomic<bool> ready_{false};
};

TEST(ExplorerTest, FindsAPublicationWithoutRelease) {
  const auto run = [](std::memory_order store, std::memory_order load) {
    return Explore({}, [=] { return std::make_unique<Publish>(store, load); }).failure;
  };
  EXPECT_EQ(run(std::memory_order_release, std::memory_order_acquire), "");
  EXPECT_EQ(run(std::memory_order_relaxed, std::memory_order_acquire), "a read races with a write");
  EXPECT_EQ(run(std::memory_order_release, std::memory_order_relaxed), "a read races with a write");
}

class Chain : public Program {
 public:
  int threads() const override { return 3; }
  void Run(int i) override {
    if (i == 0) {
      data_.Write(7);
      ready_.store(1, std::memory_order_release);
    } else if (i == 1) {
      ready_.fetch_add(1, std::memory_order_relaxed);  // goes on with the release sequence
    } else if (ready_.load(std::memory_order_acquire) == 2) {
      data_.Read();
    }
  }
  void Check() override {}

 private:
  Plain<int> data_{0};
  ModelAtomic<int> ready_{0};
};

TEST(ExplorerTest, AnUpdateKeepsTheReleaseSequence) {
  const Outcome outcome = Explore({.stale_loads = true}, [] { return std::make_unique<Chain>(); });
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  EXPECT_TRUE(outcome.complete);
}

class Spinner : public Program {
 public:
  int threads() const override { return 1; }
  void Run(int) override {
    for (int i = 0; i < 100'000 && value_.load() == 0; ++i) {
    }
  }
  void Check() override {}

 private:
  ModelAtomic<int> value_{0};
};

TEST(ExplorerTest, AThreadThatWaitsForeverIsAFailure) {
  EXPECT_EQ(Explore({}, [] { return std::make_unique<Spinner>(); }).failure,
            "a thread does not end");
}

}  // namespace
}  // namespace leaf::model
