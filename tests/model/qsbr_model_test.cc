#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <memory>

#include "core/segment/qsbr.h"
#include "core/segment/segment.h"
#include "explorer.h"
#include "model_atomic.h"

namespace leaf::model {
namespace {

using ModelQsbr = Qsbr<ModelAtomic>;

enum class Bug {
  kNone,
  kFreeAtOnce,       // the writer does not wait for anybody
  kKeepOverQuiesce,  // a reader uses a pointer that it found before it quiesced
  kUseOffline,       // a reader looks without being online
  kRetireLinked,     // the writer retires before it unlinks
};

// Readers follow a shared pointer to an object of ordinary memory; the writer replaces the object
// and retires the old one. To free is to poison, so that a use after it shows.
class QsbrProgram : public Program {
 public:
  QsbrProgram(int readers, int replacements, Bug bug)
      : readers_(readers), replacements_(replacements), bug_(bug) {
    for (int i = 0; i < readers_; ++i) {
      members_[static_cast<std::size_t>(i)] = std::make_unique<ModelQsbr::Reader>(qsbr_);
      qsbr_.Add(*members_[static_cast<std::size_t>(i)]);
    }
    shared_.store(&objects_[0], std::memory_order_release);
  }

  int threads() const override { return readers_ + 1; }

  void Run(int thread) override {
    if (thread == 0) {
      for (int i = 1; i <= replacements_; ++i) Replace(i);
      qsbr_.Collect();
    } else {
      Look(*members_[static_cast<std::size_t>(thread - 1)]);
    }
  }

  void Check() override {
    qsbr_.Collect();
    for (int i = 0; i < replacements_; ++i) {
      Expect(objects_[static_cast<std::size_t>(i)].freed(), "never freed though all are offline");
    }
    Expect(!objects_[static_cast<std::size_t>(replacements_)].freed(), "freed while in use");
  }

 private:
  using Object = Plain<int>;

  static void Poison(void* object) { static_cast<Object*>(object)->Free(); }

  void Replace(int i) {
    Object* old = &objects_[static_cast<std::size_t>(i - 1)];
    objects_[static_cast<std::size_t>(i)].Write(i);
    if (bug_ == Bug::kRetireLinked) qsbr_.Retire(old, Poison);
    if (bug_ == Bug::kRetireLinked) qsbr_.Collect();
    shared_.store(&objects_[static_cast<std::size_t>(i)], std::memory_order_release);
    if (bug_ == Bug::kFreeAtOnce) {
      Poison(old);
    } else if (bug_ != Bug::kRetireLinked) {
      qsbr_.Retire(old, Poison);
    }
    qsbr_.Collect();
  }

  void Look(ModelQsbr::Reader& me) {
    if (bug_ != Bug::kUseOffline) me.Online();
    Object* found = shared_.load(std::memory_order_acquire);
    found->Read();
    me.Quiesce();
    if (bug_ != Bug::kKeepOverQuiesce) found = shared_.load(std::memory_order_acquire);
    found->Read();
    me.Offline();
  }

  int readers_, replacements_;
  Bug bug_;
  std::array<Object, 4> objects_{Object(0), Object(), Object(), Object()};
  ModelQsbr qsbr_;
  std::array<std::unique_ptr<ModelQsbr::Reader>, 2> members_;
  ModelAtomic<Object*> shared_{nullptr};
};

Outcome ExploreQsbr(const Options& options, int readers, int replacements, Bug bug = Bug::kNone) {
  const Outcome outcome =
      Explore(options, [&] { return std::make_unique<QsbrProgram>(readers, replacements, bug); });
  std::cout << "schedules: " << outcome.schedules << ", executions: " << outcome.executions
            << ", longest: " << outcome.longest << "\n";
  return outcome;
}

TEST(QsbrModelTest, NothingIsFreedWhileAReaderMayHoldIt) {
  const Outcome outcome = ExploreQsbr({}, 2, 1);
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  EXPECT_TRUE(outcome.complete);
}

TEST(QsbrModelTest, NothingIsFreedEarlyOnOldMemory) {
  const Outcome outcome = ExploreQsbr({.stale_loads = true}, 1, 2);
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  EXPECT_TRUE(outcome.complete);
}

TEST(QsbrModelTest, FindsAFreeWithoutWaiting) {
  EXPECT_NE(ExploreQsbr({}, 1, 1, Bug::kFreeAtOnce).failure, "");
}

TEST(QsbrModelTest, FindsAPointerKeptOverAQuiescentState) {
  EXPECT_NE(ExploreQsbr({}, 1, 2, Bug::kKeepOverQuiesce).failure, "");
}

TEST(QsbrModelTest, FindsAReaderThatIsOffline) {
  EXPECT_NE(ExploreQsbr({}, 1, 1, Bug::kUseOffline).failure, "");
}

TEST(QsbrModelTest, FindsAnObjectRetiredBeforeItIsUnlinked) {
  EXPECT_NE(ExploreQsbr({}, 1, 1, Bug::kRetireLinked).failure, "");
}

TEST(QsbrModelTest, FindsMissingReleaseAndAcquire) {
  EXPECT_NE(ExploreQsbr({.stale_loads = true, .plant = Plant::kNoRelease}, 1, 1).failure, "");
  EXPECT_NE(ExploreQsbr({.stale_loads = true, .plant = Plant::kNoAcquire}, 1, 1).failure, "");
}

}  // namespace
}  // namespace leaf::model
