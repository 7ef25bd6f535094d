#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <memory>
#include <vector>

#include "core/segment/qsbr.h"
#include "core/segment/segment.h"
#include "explorer.h"
#include "model_atomic.h"

namespace leaf::model {
namespace {

// The three templates as the engine combines them: readers take from the segment that a tag points
// to, a writer closes it, serves itself from the tail, points the tag to the successor and retires
// the old one. The words are those of core/segment; the order of the writer's steps is what is
// explored.

enum class Bug {
  kNone,
  kTailForLatecomer,  // a request that came after the successor opened is served from the old tail
  kFreeAtOnce,
};

struct Held {
  explicit Held(Range bounds) : segment(bounds) {}
  Plain<int> memory{1};
  Segment<ModelAtomic> segment;
};

class HandoverProgram : public Program {
 public:
  HandoverProgram(int takes, int readers, bool real_time, Bug bug)
      : takes_(takes), readers_(readers), real_time_(real_time), bug_(bug) {
    for (int i = 0; i < readers_; ++i) {
      members_[static_cast<std::size_t>(i)] = std::make_unique<Qsbr<ModelAtomic>::Reader>(qsbr_);
      qsbr_.Add(*members_[static_cast<std::size_t>(i)]);
    }
    current_.store(&old_, std::memory_order_release);
  }

  int threads() const override { return readers_ + 1; }

  void Run(int thread) override {
    if (thread == 0) {
      HandOver();
    } else {
      Take(*members_[static_cast<std::size_t>(thread - 1)]);
    }
  }

  void Check() override {
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      for (std::size_t j = 0; j < answers_.size(); ++j) {
        const Answer& a = answers_[i];
        const Answer& b = answers_[j];
        const bool apart = a.ids.last <= b.ids.first || b.ids.last <= a.ids.first;
        Expect(i == j || apart, "an id was issued twice");
        Expect(!real_time_ || a.ended >= b.began || a.ids.first < b.ids.first,
               "a later answer is lower");
      }
    }
    qsbr_.Collect();
    Expect(old_.memory.freed(), "the old segment is never freed");
  }

 private:
  struct Answer {
    Range ids;
    int began, ended;
  };

  int Look() const { return real_time_ ? Instant() : 0; }

  void Take(Qsbr<ModelAtomic>::Reader& me) {
    me.Online();
    for (int n = 0; n < takes_; ++n) {
      const int began = Look();
      Held* held = current_.load(std::memory_order_acquire);
      held->memory.Read();
      const Range ids = held->segment.Take(1, /*whole=*/true);
      if (!ids.empty()) answers_.push_back({ids, began, Look()});
      me.Quiesce();
    }
    me.Offline();
  }

  void HandOver() {
    int began = Look();
    Range tail;
    if (bug_ != Bug::kTailForLatecomer) tail = old_.segment.Close();
    current_.store(&successor_, std::memory_order_release);
    if (bug_ == Bug::kTailForLatecomer) {
      began = Look();
      tail = old_.segment.Close();
    }
    if (!tail.empty()) answers_.push_back({tail, began, Look()});
    const auto free = [](void* held) { static_cast<Held*>(held)->memory.Free(); };
    if (bug_ == Bug::kFreeAtOnce) {
      free(&old_);
    } else {
      qsbr_.Retire(&old_, free);
    }
    qsbr_.Collect();
  }

  int takes_, readers_;
  bool real_time_;
  Bug bug_;
  Held old_{{1, 3}};
  Held successor_{{10, 20}};
  Qsbr<ModelAtomic> qsbr_;
  std::array<std::unique_ptr<Qsbr<ModelAtomic>::Reader>, 2> members_;
  ModelAtomic<Held*> current_{nullptr};
  std::vector<Answer> answers_;
};

Outcome ExploreHandover(int takes, int readers, bool real_time, Bug bug) {
  const Outcome outcome = Explore(
      {}, [&] { return std::make_unique<HandoverProgram>(takes, readers, real_time, bug); });
  std::cout << "schedules: " << outcome.schedules << ", executions: " << outcome.executions
            << ", longest: " << outcome.longest << "\n";
  return outcome;
}

TEST(HandoverModelTest, IdsAreUniqueAndRiseAcrossTheHandOver) {
  for (const int readers : {1, 2}) {
    const bool one = readers == 1;
    const Outcome outcome = ExploreHandover(one ? 3 : 1, readers, /*real_time=*/one, Bug::kNone);
    EXPECT_EQ(outcome.failure, "") << outcome.schedule;
    EXPECT_TRUE(outcome.complete);
  }
}

TEST(HandoverModelTest, FindsATailForALatecomer) {
  EXPECT_EQ(ExploreHandover(2, 1, true, Bug::kTailForLatecomer).failure, "a later answer is lower");
}

TEST(HandoverModelTest, FindsAFreeWithoutWaiting) {
  EXPECT_NE(ExploreHandover(1, 1, false, Bug::kFreeAtOnce).failure, "");
}

}  // namespace
}  // namespace leaf::model
