#include "core/snowflake/worker_registry.h"

#include <algorithm>

namespace leaf {

Result<std::int64_t> LimitWithin(std::int64_t now_ms, std::int64_t lease_ms,
                                 std::optional<std::int64_t> registry_ms) {
  std::int64_t limit = now_ms + lease_ms;
  if (registry_ms) limit = std::min(limit, *registry_ms + lease_ms + kClockToleranceMs);
  if (limit > now_ms) return limit;
  return Error{Code::kUnavailable, "clock_ahead: this host's clock is " +
                                       std::to_string((now_ms - *registry_ms) / 1000) +
                                       " s ahead of the registry's; set the one that is wrong"};
}

}  // namespace leaf
