#pragma once

#include <chrono>
#include <cstdint>

namespace leaf {

/// The time line of every deadline and rate: monotonic, nanoseconds, arbitrary origin. It is a tag
/// type without now(): time is read through a Clock, once per batch, and handed in as an argument.
struct MonotonicTimeline {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<MonotonicTimeline>;
  static constexpr bool is_steady = true;
};

using Duration = MonotonicTimeline::duration;
using Instant = MonotonicTimeline::time_point;

inline constexpr Instant kNever = Instant::max();

/// Reads time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const noexcept = 0;
  /// Milliseconds since 1970-01-01T00:00:00Z by the wall clock; may step back or forward.
  virtual std::int64_t WallMillis() const noexcept = 0;
};

/// CLOCK_MONOTONIC and CLOCK_REALTIME of this host. Never destroyed.
Clock& SystemClock() noexcept;

}  // namespace leaf
