#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace leaf {

/// The time that ids are minted by: the wall clock as this server believes it, carried between two
/// looks by the monotonic clock, so that the hot path reads one clock only.
///
/// A look follows the wall clock when it went forward by a second at most or back by `drift` at
/// most (the generator absorbs that). A larger step is not believed by itself: time goes on by the
/// monotonic clock until the registry's clock has spoken (Confirm), and the nearer of the two
/// counts. Without such a clock a step back is followed at once, and one forward after it stood for
/// `patience`; or at once if it leads no further than ids have gone already, so that a clock that
/// went back by mistake and returns is no outage for as long.
///
/// Millis is thread-safe and lock-free; all else is for one thread at a time.
class Wall {
 public:
  struct Options {
    Duration drift = std::chrono::seconds(5);
    Duration patience = std::chrono::minutes(10);  ///< a lease
    bool registry_has_clock = true;                ///< a Confirm proves it too
  };
  /// Believes the first reading.
  Wall(Options options, Instant now, std::int64_t wall_ms) noexcept;

  /// Milliseconds since 1970 at `now`.
  std::int64_t Millis(Instant now) const noexcept {
    return (offset_.load(std::memory_order_relaxed) + now.time_since_epoch().count()) / 1'000'000;
  }

  /// Looks at the wall clock. `reached_ms`: the time that ids of this server have reached.
  void Look(Instant now, std::int64_t wall_ms, std::int64_t reached_ms = 0) noexcept;
  /// The registry's clock said `registry_ms` at some moment from `sent` to `received`.
  void Confirm(std::int64_t registry_ms, Instant sent, Instant received,
               std::int64_t wall_ms) noexcept;

  bool registry_has_clock() const noexcept { return registry_has_clock_; }
  /// True while a step of the wall clock waits for the registry's word.
  bool in_doubt() const noexcept { return doubt_ && !doubt_->refused; }
  /// How far the wall clock was ahead of the believed time at the last look.
  std::int64_t doubt_ms() const noexcept;
  /// How far the believed time was ahead of the registry's at the last Confirm, if there was one.
  std::optional<std::int64_t> ahead_of_registry_ms() const noexcept { return ahead_; }
  /// Steps back of a millisecond or more that were followed.
  std::uint64_t steps_back() const noexcept { return steps_back_.load(std::memory_order_relaxed); }
  std::uint64_t steps_forward() const noexcept {
    return steps_forward_.load(std::memory_order_relaxed);
  }

 private:
  struct Doubt {
    std::int64_t step = 0;  ///< nanoseconds that the wall clock is ahead of the believed time
    Instant since;
    bool refused = false;  ///< the registry's clock contradicted it
  };
  void Follow(std::int64_t step) noexcept;

  const Options options_;
  std::atomic<std::int64_t> offset_;  ///< nanoseconds: wall time = offset + monotonic time
  bool registry_has_clock_;
  std::optional<Doubt> doubt_;
  std::optional<std::int64_t> ahead_;
  std::atomic<std::uint64_t> steps_back_{0}, steps_forward_{0};
};

}  // namespace leaf
