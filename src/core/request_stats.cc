#include "core/request_stats.h"

#include <algorithm>

namespace leaf {

void RequestStats::Took(Protocol protocol, Duration duration, std::uint64_t count) noexcept {
  const double seconds = std::chrono::duration<double>(duration).count();
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  Add(buckets_[Index(protocol)][static_cast<std::size_t>(bound - kBounds.begin())], count);
  const auto nanos = static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
  Add(nanos_[Index(protocol)], nanos * count);
}

}  // namespace leaf
