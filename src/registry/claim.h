#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/snowflake/worker_registry.h"

namespace leaf {

/// A row of a registry whose workers are bound to nobody (SQL, memory, etcd, ZooKeeper's native
/// layout), as a claim sees it.
struct WorkerRow {
  WorkerRecord record;
  std::string layout;  ///< LayoutText, as its last owner wrote it; empty: unknown
  bool taken = false;  ///< held by something that knows no limits (a Java node)
};

/// What a claim is to do with a registry of these rows: the one rule for all such registries.
struct ClaimPlan {
  enum class Kind : std::uint8_t {
    kAdopt,   ///< a row of this owner, from a claim whose answer was lost: compare-and-swap too,
              ///< since what was read may not be on the registry's copies yet
    kTake,    ///< a row whose limit has passed: compare-and-swap on its generation
    kCreate,  ///< no such row yet: insert
  };
  Kind kind = Kind::kCreate;
  std::int64_t worker = 0;
  std::int64_t generation = 0;  ///< that the new row will have
  std::int64_t expected = 0;    ///< generation to compare with (not kCreate)
  std::int64_t floor_ms = 0;    ///< limit of the row taken; 0 for a new one
  std::int64_t limit_ms = 0;    ///< to be written
  std::int64_t free_workers = 0;
};

/// Decides. A row may be taken when its limit is not above the earlier of ask.now_ms and
/// `registry_ms`. Preferred: this owner's own row; a free row with this identity; a free row, the
/// longest free first; a worker that never was, the lowest. When less than a quarter of the workers
/// is free the lease shrinks in proportion, to a tenth at least, so that what crashed servers left
/// comes back sooner. kUnavailable: all are held (says until when the first is), `clock_ahead`, or
/// a living row of another layout.
Result<ClaimPlan> PlanClaim(const std::vector<WorkerRow>& rows, const ClaimAsk& ask,
                            std::optional<std::int64_t> registry_ms);

/// The identity column: HOST:PORT, a blank and the layout; within 255 bytes.
std::string IdentityText(std::string_view identity, std::string_view layout);
/// Its two halves; the layout is empty where there is none.
struct IdentityParts {
  std::string identity, layout;
};
IdentityParts ParseIdentity(std::string_view text);

}  // namespace leaf
