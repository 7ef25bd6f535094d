#pragma once

#include <algorithm>

#include "base/random.h"
#include "base/time.h"

namespace leaf {

/// How long to wait after the n-th failure in a row (n >= 1): doubles from `min` to `max`, with
/// jitter over its upper half, never outside of [min, max].
inline Duration Backoff(int failures, Duration min, Duration max, Random& random) noexcept {
  Duration full = min;
  for (int i = 1; i < failures && full < max; ++i) full *= 2;
  full = std::min(full, max);
  const Duration least = std::max(min, full / 2);
  if (full <= least) return full;
  return least + Duration(static_cast<Duration::rep>(
                     random.Below(static_cast<std::uint64_t>((full - least).count()) + 1)));
}

}  // namespace leaf
