#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/assert.h"
#include "core/segment/range.h"

namespace leaf {

/// A range of ids that many threads take from. Bounds are fixed; one shared cursor moves by
/// compare-and-swap and never passes the end, so that ids leave in order and each at most once. A
/// segment that has been closed or exhausted stays so for ever; the object is never used again.
///
/// Thread-safe. `Atomic` is std::atomic, or a stand-in that explores interleavings.
template <template <class> class Atomic = std::atomic>
class Segment {
 public:
  /// REQUIRES: !bounds.empty().
  explicit Segment(Range bounds) : bounds_(bounds), cursor_(bounds.first) {
    LEAF_ASSERT(!bounds.empty());
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Up to n > 0 ids; with `whole`, n ids or none. Empty: nothing taken.
  Range Take(std::int64_t n, bool whole) noexcept {
    // Relaxed is enough: what matters is the cursor alone, and a compare-and-swap acts on its
    // newest value in one total order.
    std::int64_t at = cursor_.load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t left = bounds_.last - at;
      if (left <= 0 || (whole && left < n)) return {at, at};
      const std::int64_t end = at + std::min(n, left);
      if (cursor_.compare_exchange_weak(at, end, std::memory_order_relaxed)) {
        LEAF_ASSERT(at >= bounds_.first && at < end && end <= bounds_.last);
        return {at, end};
      }
    }
  }

  /// The tail that nobody has taken, and that nobody can take any more. A second call returns an
  /// empty range.
  Range Close() noexcept {
    const std::int64_t at = cursor_.exchange(bounds_.last, std::memory_order_acq_rel);
    LEAF_ASSERT(at >= bounds_.first && at <= bounds_.last);
    return {at, bounds_.last};
  }

  /// What was left a moment ago; only ever shrinks.
  Range left() const noexcept { return {cursor_.load(std::memory_order_relaxed), bounds_.last}; }
  Range bounds() const noexcept { return bounds_; }

 private:
  const Range bounds_;
  alignas(64) Atomic<std::int64_t> cursor_;  // alone on its cache line
};

}  // namespace leaf
