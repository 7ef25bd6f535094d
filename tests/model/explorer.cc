#include "explorer.h"

#include <ucontext.h>

#include <algorithm>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Stateless exploration: each schedule runs the program from its beginning, on fibers of one
// thread. The stack of decisions is the only state kept between executions; backtracking changes
// the deepest decision that still has an untried branch. A sleep set holds the threads whose next
// operation was already tried from an equivalent point: it is passed down as long as nothing that
// depends on that operation has run.

namespace leaf::model {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::uint64_t kMaxSteps = 20'000;  // beyond it a thread waits for another: not allowed
constexpr int kNone = -1;

struct Operation {
  const void* location = nullptr;
  internal::Kind kind = internal::Kind::kLoad;
  const char* name = "";
};

bool Independent(const Operation& a, const Operation& b) {
  if (a.location != b.location) return true;
  return a.kind == internal::Kind::kLoad && b.kind == internal::Kind::kLoad;
}

struct Decision {
  std::array<Operation, kMaxThreads> next{};  // announced by each thread that has not ended
  unsigned enabled = 0;                       // bit sets of threads
  unsigned asleep = 0;
  unsigned tried = 0;
  int thread = kNone;
  int ways = 1;  // in which the chosen operation can go
  int way = 0;
};

class Fiber {
 public:
  Fiber() : stack_(kStackBytes) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
#if defined(__SANITIZE_THREAD__)
  ~Fiber() {
    if (tsan != nullptr) __tsan_destroy_fiber(tsan);
  }
#endif

  void Prepare(void (*entry)(), ucontext_t* back) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack_.data();
    context.uc_stack.ss_size = stack_.size();
    context.uc_link = back;
    makecontext(&context, entry, 0);
#if defined(__SANITIZE_THREAD__)
    if (tsan == nullptr) tsan = __tsan_create_fiber(0);
#endif
  }
  const void* bottom() const { return stack_.data(); }

  ucontext_t context{};
  void* tsan = nullptr;
  void* fake_stack = nullptr;

 private:
  std::vector<std::byte> stack_;
};

class Explorer {
 public:
  explicit Explorer(const Options& options) : options_(options) {}

  Outcome Run(const std::function<std::unique_ptr<Program>()>& make);

  void Announce(const Operation& operation);
  int Choose(int n);
  bool FailWeakly();
  int current() const { return current_; }
  Knowledge& known() { return known_[static_cast<std::size_t>(current_)]; }
  bool stale_loads() const { return options_.stale_loads && current_ != kMainThread; }
  Plant plant() const { return options_.plant; }
  void Fail(const char* what);
  int NextInstant() { return ++instant_; }
  const void* instant_location() const { return &instant_; }

 private:
  static void Entry();
  void Body();
  void Execute(Program& program);
  int Pick();
  unsigned SleepBelow(const Decision& above) const;
  bool Backtrack();
  void SwitchTo(int thread);
  void SwitchBack();
  std::string Describe() const;

  Options options_;
  Outcome outcome_;
  std::vector<Decision> decisions_;
  std::size_t depth_ = 0;
  bool redundant_ =
      false;  // equal to an earlier schedule from here on: run to the end, no decisions
  bool failed_ = false;

  Program* program_ = nullptr;
  int current_ = kMainThread;
  std::array<Fiber, kMaxThreads> fibers_;
  std::array<bool, kMaxThreads> ended_{};
  std::array<Operation, kMaxThreads> pending_{};
  std::array<bool, kMaxThreads> failed_weakly_{};
  std::array<Knowledge, kMaxThreads + 1> known_{};
  std::uint64_t steps_ = 0;
  int instant_ = 0;
  ucontext_t scheduler_{};
  void* scheduler_tsan_ = nullptr;
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_bottom_ = nullptr;
  std::size_t scheduler_size_ = 0;
};

Explorer* g_explorer = nullptr;

Outcome Explorer::Run(const std::function<std::unique_ptr<Program>()>& make) {
  do {
    known_ = {};
    steps_ = 0;
    instant_ = 0;
    current_ = kMainThread;
    const std::unique_ptr<Program> program = make();
    Execute(*program);
    program->Check();
    ++outcome_.executions;
    if (!redundant_) ++outcome_.schedules;
    outcome_.longest = std::max(outcome_.longest, steps_);
    if (failed_) return outcome_;
    if (outcome_.executions >= options_.max_executions) return outcome_;
  } while (Backtrack());
  outcome_.complete = true;
  return outcome_;
}

void Explorer::Execute(Program& program) {
  program_ = &program;
  depth_ = 0;
  redundant_ = false;
  ended_.fill(true);
  failed_weakly_.fill(false);
#if defined(__SANITIZE_THREAD__)
  scheduler_tsan_ = __tsan_get_current_fiber();
#endif
  for (int i = 0; i < program.threads(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    known_[at] = known_[kMainThread];  // what was set up is known to all
    ended_[at] = false;
    fibers_[at].Prepare(&Explorer::Entry, &scheduler_);
    SwitchTo(i);  // up to its first operation
  }
  for (int thread = Pick(); thread != kNone; thread = Pick()) SwitchTo(thread);
  current_ = kMainThread;
  for (const Knowledge& thread : known_) known_[kMainThread].Join(thread);
}

// Chooses the thread whose announced operation happens next.
int Explorer::Pick() {
  unsigned enabled = 0;
  for (unsigned i = 0; i < kMaxThreads; ++i) enabled |= ended_[i] ? 0u : 1u << i;
  if (enabled == 0) return kNone;
  if (++steps_ > kMaxSteps) Fail("a thread does not end");
  const bool stuck = steps_ > kMaxSteps;
  if (redundant_ || stuck) {
    return __builtin_ctz(enabled);
  }
  if (depth_ == decisions_.size()) {
    Decision decision;
    decision.enabled = enabled;
    if (depth_ > 0) decision.asleep = SleepBelow(decisions_.back());
    const unsigned awake = enabled & ~decision.asleep;
    if (awake == 0) {
      redundant_ = true;
      return __builtin_ctz(enabled);
    }
    decision.thread = __builtin_ctz(awake);
    decisions_.push_back(decision);
  }
  Decision& decision = decisions_[depth_++];
  decision.next = pending_;  // locations may differ from the last execution's
  return decision.thread;
}

unsigned Explorer::SleepBelow(const Decision& above) const {
  unsigned asleep = 0;
  const Operation& done = above.next[static_cast<std::size_t>(above.thread)];
  for (unsigned i = 0; i < kMaxThreads; ++i) {
    const bool candidate = ((above.asleep | above.tried) >> i & 1u) != 0;
    if (candidate && Independent(above.next[i], done)) asleep |= 1u << i;
  }
  return asleep;
}

// Moves to the next untried branch; false if there is none.
bool Explorer::Backtrack() {
  while (!decisions_.empty()) {
    Decision& last = decisions_.back();
    if (++last.way < last.ways) return true;
    last.tried |= 1u << last.thread;
    const unsigned left = last.enabled & ~last.asleep & ~last.tried;
    if (left != 0) {
      last.thread = __builtin_ctz(left);
      last.ways = 1;
      last.way = 0;
      return true;
    }
    decisions_.pop_back();
  }
  return false;
}

void Explorer::Announce(const Operation& operation) {
  if (current_ == kMainThread) return;
  pending_[static_cast<std::size_t>(current_)] = operation;
  SwitchBack();
}

int Explorer::Choose(int n) {
  if (n <= 1 || redundant_ || current_ == kMainThread || depth_ == 0) return 0;
  Decision& decision = decisions_[depth_ - 1];
  decision.ways = n;
  return std::min(decision.way, n - 1);
}

bool Explorer::FailWeakly() {
  if (!options_.weak_failures || current_ == kMainThread) return false;
  bool& used = failed_weakly_[static_cast<std::size_t>(current_)];
  if (used || Choose(2) == 0) return false;
  used = true;
  return true;
}

void Explorer::Fail(const char* what) {
  if (failed_) return;
  failed_ = true;
  outcome_.failure = what;
  outcome_.schedule = Describe();
}

std::string Explorer::Describe() const {
  std::string text;
  for (std::size_t i = 0; i < depth_; ++i) {
    const Decision& decision = decisions_[i];
    const Operation& operation = decision.next[static_cast<std::size_t>(decision.thread)];
    text += "t" + std::to_string(decision.thread) + ":" + operation.name;
    if (decision.way > 0) text += "(old value " + std::to_string(decision.way) + ")";
    text += " ";
  }
  return text;
}

// Not instrumented, because it begins on the fiber's shadow stack and ends on the scheduler's.
__attribute__((no_sanitize("thread"))) void Explorer::Entry() {
  Explorer& self = *g_explorer;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self.scheduler_bottom_, &self.scheduler_size_);
#endif
  self.Body();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, self.scheduler_bottom_, self.scheduler_size_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(self.scheduler_tsan_, 0);
#endif
}

__attribute__((noinline)) void Explorer::Body() {
  const int me = current_;
  program_->Run(me);
  ended_[static_cast<std::size_t>(me)] = true;
}

void Explorer::SwitchTo(int thread) {
  current_ = thread;
  Fiber& fiber = fibers_[static_cast<std::size_t>(thread)];
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, fiber.bottom(), kStackBytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(fiber.tsan, 0);
#endif
  swapcontext(&scheduler_, &fiber.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
}

void Explorer::SwitchBack() {
  Fiber& fiber = fibers_[static_cast<std::size_t>(current_)];
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fiber.fake_stack, scheduler_bottom_, scheduler_size_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(scheduler_tsan_, 0);
#endif
  swapcontext(&fiber.context, &scheduler_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &scheduler_bottom_, &scheduler_size_);
#endif
}

}  // namespace

Outcome Explore(const Options& options, const std::function<std::unique_ptr<Program>()>& make) {
  Explorer explorer(options);
  g_explorer = &explorer;
  const Outcome outcome = explorer.Run(make);
  g_explorer = nullptr;
  return outcome;
}

void Expect(bool condition, const char* what) {
  if (!condition && g_explorer != nullptr) g_explorer->Fail(what);
}

int Instant() {
  g_explorer->Announce({g_explorer->instant_location(), internal::Kind::kUpdate, "instant"});
  return g_explorer->NextInstant();
}

namespace internal {

void Announce(const void* location, Kind kind, const char* name) {
  if (g_explorer != nullptr) g_explorer->Announce({location, kind, name});
}
int Choose(int n) { return g_explorer == nullptr ? 0 : g_explorer->Choose(n); }
bool StaleLoads() { return g_explorer != nullptr && g_explorer->stale_loads(); }
Plant Planted() { return g_explorer == nullptr ? Plant::kNone : g_explorer->plant(); }
bool FailWeakly() { return g_explorer != nullptr && g_explorer->FailWeakly(); }
int CurrentThread() { return g_explorer == nullptr ? kMainThread : g_explorer->current(); }
Knowledge& Known() {
  static Knowledge outside;
  return g_explorer == nullptr ? outside : g_explorer->known();
}
std::uint32_t Event() { return ++Known().at[static_cast<std::size_t>(CurrentThread())]; }

}  // namespace internal
}  // namespace leaf::model
