#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string_view>
#include <vector>

#include "core/segment/directory.h"
#include "explorer.h"
#include "model_atomic.h"

namespace leaf::model {
namespace {

// An item whose body is ordinary memory, written before it is inserted: a reader that finds the
// item without having synchronised with the writer shows as a race.
class Item {
 public:
  Item(int number, std::size_t hash) : number_(number), hash_(hash) {}
  std::string_view name() const { return kNames[static_cast<std::size_t>(number_.Read())]; }
  std::size_t hash() const { return hash_.Read(); }

  static constexpr std::string_view kNames[] = {"a", "b", "c", "d"};

 private:
  Plain<int> number_;
  Plain<std::size_t> hash_;
};

using ModelDirectory = Directory<Item, ModelAtomic>;

// One writer inserts items 1..inserts into a table of two slots, which grows; readers look for
// them. All hashes collide, so that each probe walks.
class DirectoryProgram : public Program {
 public:
  DirectoryProgram(int inserts, int readers, int finds, bool real_time)
      : inserts_(inserts), readers_(readers), finds_(finds), real_time_(real_time), directory_(2) {
    Add(0);  // was there before
  }

  int threads() const override { return 1 + readers_; }

  void Run(int thread) override {
    if (thread == 0) {
      for (int i = 1; i <= inserts_; ++i) {
        Add(i);
        if (real_time_) inserted_at_[static_cast<std::size_t>(i)] = Instant();
      }
      return;
    }
    for (int n = 0; n < finds_; ++n) Look((thread + n) % (inserts_ + 1));
    Look(0);
  }

  void Check() override {
    for (int i = 0; i <= inserts_; ++i) {
      Expect(directory_.Find(Item::kNames[i], kHash) == items_[static_cast<std::size_t>(i)].get(),
             "an item is lost");
    }
    int visited = 0;
    directory_.ForEach([&](Item&) { ++visited; });
    Expect(visited == inserts_ + 1, "an item is missing or doubled");
  }

 private:
  static constexpr std::size_t kHash = 1;

  void Add(int i) {
    auto& item = items_[static_cast<std::size_t>(i)];
    item = std::make_unique<Item>(i, kHash);
    directory_.Insert(*item);
  }

  void Look(int i) {
    const auto at = static_cast<std::size_t>(i);
    const int began = real_time_ ? Instant() : 0;
    const Item* found = directory_.Find(Item::kNames[i], kHash);
    if (found != nullptr) {
      Expect(found == items_[at].get(), "another item was found");
      Expect(found->name() == Item::kNames[i], "the item is not what its name says");
    } else {
      Expect(i != 0, "an item that was there is not found");
      Expect(!real_time_ || inserted_at_[at] == 0 || inserted_at_[at] > began,
             "an item inserted before is not found");
    }
  }

  int inserts_, readers_, finds_;
  bool real_time_;
  std::array<std::unique_ptr<Item>, 4> items_;
  std::array<int, 4> inserted_at_{};
  ModelDirectory directory_;
};

Outcome ExploreDirectory(const Options& options, int inserts, int readers, int finds,
                         bool real_time = false) {
  const Outcome outcome = Explore(options, [&] {
    return std::make_unique<DirectoryProgram>(inserts, readers, finds, real_time);
  });
  std::cout << "schedules: " << outcome.schedules << ", executions: " << outcome.executions
            << ", longest: " << outcome.longest << "\n";
  return outcome;
}

TEST(DirectoryModelTest, AReaderFindsAnItemOrNotYetAcrossGrowth) {
  const Outcome outcome = ExploreDirectory({}, 3, 2, 2);
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  EXPECT_TRUE(outcome.complete);
}

TEST(DirectoryModelTest, AReaderOnOldMemoryFindsAnItemOrNotYet) {
  const Outcome outcome = ExploreDirectory({.stale_loads = true}, 3, 1, 3);
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  EXPECT_TRUE(outcome.complete);
}

TEST(DirectoryModelTest, AnItemInsertedBeforeTheCallIsFound) {
  const Outcome outcome = ExploreDirectory({}, 3, 1, 2, /*real_time=*/true);
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  EXPECT_TRUE(outcome.complete);
}

TEST(DirectoryModelTest, FindsAPublicationWithoutRelease) {
  EXPECT_NE(ExploreDirectory({.plant = Plant::kNoRelease}, 2, 1, 1).failure, "");
}

TEST(DirectoryModelTest, FindsALookUpWithoutAcquire) {
  EXPECT_NE(ExploreDirectory({.plant = Plant::kNoAcquire}, 2, 1, 1).failure, "");
}

}  // namespace
}  // namespace leaf::model
