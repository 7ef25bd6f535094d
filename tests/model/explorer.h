#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace leaf::model {

/// Threads of a program under exploration; the thread that sets up and checks is one more.
inline constexpr int kMaxThreads = 3;
inline constexpr int kMainThread = kMaxThreads;

/// What each thread is known to have done before a point: a vector clock.
struct Knowledge {
  std::array<std::uint32_t, kMaxThreads + 1> at{};

  void Join(const Knowledge& other) noexcept {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (other.at[i] > at[i]) at[i] = other.at[i];
    }
  }
  bool Covers(int thread, std::uint32_t event) const noexcept {
    return at[static_cast<std::size_t>(thread)] >= event;
  }
};

/// A small concurrent program. One object is one execution: made, run, checked, destroyed.
class Program {
 public:
  virtual ~Program() = default;
  virtual int threads() const = 0;
  /// The body of thread `i`. Everything it shares goes through ModelAtomic or Plain. It must end
  /// whatever the other threads do.
  virtual void Run(int i) = 0;
  /// After all threads have ended.
  virtual void Check() = 0;
};

/// Faults planted into every atomic operation of a program, to see that they are found.
enum class Plant : std::uint8_t {
  kNone,
  kNoRelease,     ///< stores release nothing
  kNoAcquire,     ///< loads acquire nothing
  kSplitUpdates,  ///< compare-and-swap, exchange and add are a load and a store
};

struct Options {
  /// Atomic loads may also return older values, as far as C++ allows it for the orders that the
  /// code names (and the x86 store buffer shows it). Not modelled: a modification order that
  /// differs from the order of execution, load buffering, fences, consume.
  bool stale_loads = false;
  /// compare_exchange_weak may fail without cause, once for each call site and execution.
  bool weak_failures = false;
  Plant plant = Plant::kNone;
  std::uint64_t max_executions = 2'000'000;
};

struct Outcome {
  std::uint64_t schedules = 0;   ///< executions that differ in the order of dependent operations
  std::uint64_t executions = 0;  ///< those, and the ones given up as equal to an earlier one
  std::uint64_t longest = 0;     ///< operations of the longest schedule
  bool complete = false;         ///< every schedule was run
  std::string failure;           ///< of the first schedule that failed; empty if none did
  std::string schedule;          ///< that schedule, one operation a word
};

/// Runs the program under every schedule, depth first, until one fails. Schedules that differ only
/// in the order of operations that cannot influence one another are run once (sleep sets).
Outcome Explore(const Options& options, const std::function<std::unique_ptr<Program>()>& make);

/// Records a failure of the schedule under way; the schedule goes on to its end.
void Expect(bool condition, const char* what);

/// Orders the caller among the other callers, as a look at a wall clock does: for properties about
/// real time ("an answer was sent before the request arrived"). Returns 1, 2, 3, ...
int Instant();

namespace internal {

enum class Kind : std::uint8_t { kLoad, kStore, kUpdate };

/// Called by each atomic operation before it happens; may switch to other threads.
void Announce(const void* location, Kind kind, const char* name);
/// One of `n` ways that the announced operation can go; 0 if n is 1.
int Choose(int n);
bool StaleLoads();
Plant Planted();
/// True if this compare_exchange_weak shall fail without cause.
bool FailWeakly();
int CurrentThread();
Knowledge& Known();
/// Counts one event of the current thread and returns its number.
std::uint32_t Event();

}  // namespace internal
}  // namespace leaf::model
