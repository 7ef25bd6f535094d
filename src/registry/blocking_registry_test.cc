#include "registry/blocking_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "base/mutex.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

/// What the sessions of a test do, and what was done with them.
struct Script {
  Mutex mu;
  CondVar changed;
  bool stuck GUARDED_BY(mu) = false;  ///< a call waits until that is taken back
  bool obeys GUARDED_BY(mu) = true;   ///< an interrupt ends it
  bool open_fails GUARDED_BY(mu) = false;
  bool cuts GUARDED_BY(mu) = false;  ///< a call fails and ends the session
  int waiting GUARDED_BY(mu) = 0, opens GUARDED_BY(mu) = 0, calls GUARDED_BY(mu) = 0;

  void Set(bool Script::*what, bool value) {
    MutexLock lock(mu);
    this->*what = value;
    changed.NotifyAll();
  }
  void AwaitWaiting(int count) {
    MutexLock lock(mu);
    while (waiting < count) changed.Wait(mu);
  }
};

class Scripted final : public RegistryDriver {
 public:
  explicit Scripted(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  Result<void> Open(Instant, std::vector<std::string>& warnings) override {
    MutexLock lock(script_->mu);
    ++script_->opens;
    if (script_->open_fails) return Error{Code::kUnavailable, "the table is missing"};
    warnings.emplace_back("a warning");
    connected_ = true;
    return {};
  }
  bool connected() const noexcept override { return connected_; }
  void Close() noexcept override { connected_ = false; }
  Result<WorkerRight> Claim(const ClaimAsk& ask) override {
    MutexLock lock(script_->mu);
    ++script_->calls;
    interrupted_ = false;
    ++script_->waiting;
    script_->changed.NotifyAll();
    while (script_->stuck && !(interrupted_ && script_->obeys)) script_->changed.Wait(script_->mu);
    --script_->waiting;
    if (interrupted_) return Error{Code::kUnavailable, "cut off"};
    if (script_->cuts) {
      connected_ = false;
      return Error{Code::kUnavailable, "the connection is gone"};
    }
    WorkerRight right;
    right.worker = 3;
    right.owner = ask.owner;
    return right;
  }
  Result<WorkerRight> Extend(const WorkerRight&, std::int64_t, std::int64_t, Instant) override {
    return Error{Code::kConflict, "lost"};
  }
  Result<WorkerRight> Lower(const WorkerRight& right, std::int64_t, Instant) override {
    return right;
  }
  Result<std::vector<WorkerRecord>> List(Instant) override { return std::vector<WorkerRecord>(); }
  Result<WorkerRecord> Retire(std::int64_t, Instant) override {
    return Error{Code::kNotFound, "none"};
  }
  void Interrupt() noexcept override {
    interrupted_ = true;
    script_->changed.NotifyAll();
  }

 private:
  const std::shared_ptr<Script> script_;
  std::atomic<bool> connected_{false}, interrupted_{false};
};

class BlockingRegistryTest : public testing::Test {
 protected:
  BlockingRegistryTest() { Start(); }
  ~BlockingRegistryTest() override {
    script_->Set(&Script::stuck, false);
    registry_.reset();
  }
  void Start() {
    BlockingRegistry::Options options;
    options.kind = "test";
    options.max_stuck = 1;
    registry_ = std::make_unique<BlockingRegistry>(
        options, [script = script_] { return std::make_unique<Scripted>(script); }, SystemClock());
  }
  static Instant In(Duration after) { return SystemClock().Now() + after; }

  struct Answers {
    std::promise<Result<WorkerRight>> first;
    std::atomic<int> count{0};
  };
  std::shared_ptr<Answers> Claim(Duration within) {
    auto answers = std::make_shared<Answers>();
    ClaimAsk ask;
    ask.deadline = In(within);
    registry_->Claim(ask, [answers](Result<WorkerRight> right) {
      if (answers->count++ == 0) answers->first.set_value(std::move(right));
    });
    return answers;
  }
  static Result<WorkerRight> Await(const std::shared_ptr<Answers>& answers) {
    return answers->first.get_future().get();
  }

  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
  std::unique_ptr<BlockingRegistry> registry_;
};

TEST_F(BlockingRegistryTest, AnswersAndTellsItsStatus) {
  const auto right = Await(Claim(seconds(10)));
  ASSERT_TRUE(right.ok()) << right.error().message;
  EXPECT_EQ(right->worker, 3);
  const RegistryStatus status = registry_->Status();
  EXPECT_EQ(status.kind, "test");
  EXPECT_TRUE(status.up);
  EXPECT_THAT(status.warnings, testing::ElementsAre("a warning"));
  EXPECT_EQ(status.calls, 1U);
  EXPECT_EQ(status.failures, 0U);
}

TEST_F(BlockingRegistryTest, ALostRightIsAnAnswerAndNoFailure) {
  std::promise<Code> code;
  registry_->Extend({}, 1, 1, In(seconds(10)),
                    [&](Result<WorkerRight> right) { code.set_value(right.error().code); });
  EXPECT_EQ(code.get_future().get(), Code::kConflict);
  EXPECT_TRUE(registry_->Status().up);
}

TEST_F(BlockingRegistryTest, ACallWhoseDeadlinePassedIsNotBegun) {
  EXPECT_THAT(Await(Claim(seconds(-1))).error().message, HasSubstr("before the call began"));
  MutexLock lock(script_->mu);
  EXPECT_EQ(script_->calls, 0);
}

TEST_F(BlockingRegistryTest, ALateCallIsInterruptedAndTheSessionGoesOn) {
  script_->Set(&Script::stuck, true);
  EXPECT_EQ(Await(Claim(milliseconds(50))).error().code, Code::kUnavailable);
  EXPECT_FALSE(registry_->Status().up);
  script_->Set(&Script::stuck, false);
  EXPECT_TRUE(Await(Claim(seconds(10))).ok());
}

TEST_F(BlockingRegistryTest, AStuckCallIsAnsweredReplacedAndItsLateResultDropped) {
  script_->Set(&Script::obeys, false);
  script_->Set(&Script::stuck, true);
  const auto stuck = Claim(milliseconds(50));
  const auto error = Await(stuck).error();
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("may still happen"));
  const auto second = Claim(milliseconds(50));
  EXPECT_FALSE(Await(second).ok());
  EXPECT_THAT(Await(Claim(seconds(10))).error().message, HasSubstr("no more are begun"));
  script_->Set(&Script::stuck, false);
  // Once the stuck threads have ended, a new session serves.
  Result<WorkerRight> later = Error{};
  for (const Instant until = In(seconds(20)); !later.ok() && SystemClock().Now() < until;)
    later = Await(Claim(seconds(10)));
  EXPECT_TRUE(later.ok());
  registry_.reset();
  EXPECT_EQ(stuck->count, 1);
  EXPECT_EQ(second->count, 1);
}

TEST_F(BlockingRegistryTest, AFailedOpenAnswersWithItsReasonAndHeals) {
  script_->Set(&Script::open_fails, true);
  EXPECT_THAT(Await(Claim(seconds(10))).error().message, HasSubstr("the table is missing"));
  EXPECT_FALSE(registry_->Status().up);
  EXPECT_THAT(registry_->Status().last_error, HasSubstr("the table is missing"));
  script_->Set(&Script::open_fails, false);
  EXPECT_TRUE(Await(Claim(seconds(10))).ok());
  EXPECT_TRUE(registry_->Status().up);
}

TEST_F(BlockingRegistryTest, ASessionThatWasCutIsOpenedAgain) {
  script_->Set(&Script::cuts, true);
  EXPECT_FALSE(Await(Claim(seconds(10))).ok());
  script_->Set(&Script::cuts, false);
  EXPECT_TRUE(Await(Claim(seconds(10))).ok());
  MutexLock lock(script_->mu);
  EXPECT_EQ(script_->opens, 2);
}

TEST_F(BlockingRegistryTest, ItsEndIsBoundedAndAnswersEverything) {
  script_->Set(&Script::obeys, false);
  script_->Set(&Script::stuck, true);
  const auto running = Claim(seconds(50));
  script_->AwaitWaiting(1);
  const auto waiting = Claim(seconds(50));
  const Instant begun = SystemClock().Now();
  registry_.reset();
  EXPECT_LT(SystemClock().Now() - begun, seconds(5));
  EXPECT_THAT(Await(running).error().message, HasSubstr("stopping"));
  EXPECT_THAT(Await(waiting).error().message, HasSubstr("stopping"));
  script_->Set(&Script::stuck, false);
  EXPECT_EQ(running->count, 1);
}

}  // namespace
}  // namespace leaf
