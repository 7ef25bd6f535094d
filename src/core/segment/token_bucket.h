#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"

namespace leaf {

/// At most `per_second` of something a second, and as many at once after a rest. Thread-compatible.
class TokenBucket {
 public:
  /// per_second <= 0: never any.
  explicit TokenBucket(int per_second)
      : cost_(per_second > 0 ? Duration(std::chrono::seconds(1)) / per_second : Duration::max()),
        never_(per_second <= 0) {}

  /// False: none left now.
  bool Take(Instant now) noexcept {
    if (never_) return false;
    // The bucket is full a second after it was empty; each token taken moves that point by its
    // cost.
    const Instant start = std::max(empty_at_, now - Duration(std::chrono::seconds(1)));
    if (start + cost_ > now) return false;
    empty_at_ = start + cost_;
    return true;
  }

 private:
  const Duration cost_;
  const bool never_;
  Instant empty_at_ = Instant::min();
};

}  // namespace leaf
