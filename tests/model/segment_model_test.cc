#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <vector>

#include "core/segment/segment.h"
#include "explorer.h"
#include "model_atomic.h"

namespace leaf::model {
namespace {

using ModelSegment = Segment<ModelAtomic>;

// What one thread does, in order.
struct Deed {
  std::int64_t take = 0;  // 0: close
  bool whole = false;
};
using Script = std::vector<std::vector<Deed>>;

class SegmentProgram : public Program {
 public:
  SegmentProgram(Range bounds, const Script& script, bool real_time)
      : bounds_(bounds), script_(script), real_time_(real_time), segment_(bounds) {}

  int threads() const override { return static_cast<int>(script_.size()); }

  void Run(int i) override {
    for (const Deed& deed : script_[static_cast<std::size_t>(i)]) {
      const int began = real_time_ ? Instant() : 0;
      const Range got = deed.take == 0 ? segment_.Close() : segment_.Take(deed.take, deed.whole);
      const int ended = real_time_ ? Instant() : 0;
      Expect(deed.take == 0 || got.size() <= deed.take, "more ids than asked for");
      Expect(!deed.whole || got.empty() || got.size() == deed.take, "a part of a whole");
      if (deed.take == 0) closed_ = true;
      if (!got.empty()) taken_.push_back({got, began, ended, deed.take == 0});
    }
  }

  void Check() override {
    std::sort(taken_.begin(), taken_.end(),
              [](const Taken& a, const Taken& b) { return a.ids.first < b.ids.first; });
    std::int64_t at = bounds_.first;
    for (const Taken& taken : taken_) {
      Expect(taken.ids.first >= at, "an id taken twice");
      Expect(taken.ids.first <= at, "an id lost");
      at = taken.ids.last;
      Expect(!taken.by_close || at == bounds_.last, "the closed tail is not the end");
    }
    Expect(at <= bounds_.last, "the cursor passed the end");
    Expect(!closed_ || at == bounds_.last, "an id lost at the close");
    const Range left = segment_.left();
    Expect(left.first == at && left.last == bounds_.last, "what is left is not what was not taken");
    if (real_time_) CheckRealTime();
  }

 private:
  struct Taken {
    Range ids;
    int began, ended;
    bool by_close;
  };

  void CheckRealTime() const {
    for (const Taken& early : taken_) {
      for (const Taken& late : taken_) {
        if (early.ended < late.began) {
          Expect(early.ids.first < late.ids.first, "a later answer is lower");
        }
      }
    }
  }

  Range bounds_;
  const Script& script_;
  bool real_time_;
  ModelSegment segment_;
  std::vector<Taken> taken_;
  bool closed_ = false;
};

Outcome ExploreSegment(const Options& options, const Script& script, bool real_time = false,
                       Range bounds = {10, 15}) {
  const Outcome outcome =
      Explore(options, [&] { return std::make_unique<SegmentProgram>(bounds, script, real_time); });
  std::cout << "schedules: " << outcome.schedules << ", executions: " << outcome.executions
            << ", longest: " << outcome.longest << "\n";
  return outcome;
}

const Script kTakers = {{{2, false}, {1, true}}, {{2, true}, {1, false}}, {{3, false}}};
const Script kTakersAndCloser = {{{2, false}, {1, false}}, {{2, true}, {2, false}}, {{0, false}}};
const Script kTwoClosers = {{{2, false}}, {{0, false}}, {{0, false}}};

void ExpectSound(const Outcome& outcome) {
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  EXPECT_TRUE(outcome.complete);
}

TEST(SegmentModelTest, NoIdIsTakenTwiceOrLost) { ExpectSound(ExploreSegment({}, kTakers)); }

TEST(SegmentModelTest, TheClosedTailIsComplete) {
  ExpectSound(ExploreSegment({}, kTakersAndCloser));
  ExpectSound(ExploreSegment({}, kTwoClosers));
}

TEST(SegmentModelTest, WeakFailuresAndStaleLoadsChangeNothing) {
  ExpectSound(ExploreSegment({.stale_loads = true, .weak_failures = true},
                             {{{2, false}}, {{2, true}}, {{0, false}}}));
}

TEST(SegmentModelTest, NoMemoryOrderMattersToTheCursor) {
  ExpectSound(ExploreSegment({.stale_loads = true, .plant = Plant::kNoAcquire},
                             {{{2, false}}, {{2, true}}, {{0, false}}}));
  ExpectSound(ExploreSegment({.stale_loads = true, .plant = Plant::kNoRelease},
                             {{{2, false}}, {{2, true}}, {{0, false}}}));
}

TEST(SegmentModelTest, IdsRiseInRealTime) {
  ExpectSound(ExploreSegment({}, {{{2, false}, {1, false}}, {{2, true}}}, /*real_time=*/true));
}

TEST(SegmentModelTest, TheLastIdsThatExistDoNotOverflow) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  ExpectSound(ExploreSegment({}, {{{kEnd, false}}, {{kEnd - 1, true}}, {{2, false}}}, false,
                             {kEnd - 5, kEnd}));
}

TEST(SegmentModelTest, FindsALoadAndStoreInPlaceOfCompareAndSwap) {
  const Outcome outcome = ExploreSegment({.plant = Plant::kSplitUpdates}, kTakers);
  EXPECT_NE(outcome.failure, "");
}

TEST(SegmentModelTest, FindsACloseByLoadAndStore) {
  const Outcome outcome =
      ExploreSegment({.plant = Plant::kSplitUpdates}, {{{2, false}}, {{0, false}}});
  EXPECT_NE(outcome.failure, "");
}

}  // namespace
}  // namespace leaf::model
