#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "core/segment/range.h"

namespace leaf {

/// What a policy knows of a tag when it decides. Filled by the engine under the tag's lock.
struct Demand {
  static constexpr int kManyLeases = 1000;

  std::int64_t row_step = 1;  ///< the row's step as last read, > 0: the floor
  /// What the policy asked for at the last lease, without what was added for parked requests, after
  /// the engine's bounds; 0 before the first.
  std::int64_t last_count = 0;
  int leases = 0;  ///< granted since this server first used the tag, counted up to kManyLeases
  Instant last_lease = Instant::min();  ///< when the last lease was granted
  std::int64_t parked = 0;              ///< ids that parked requests ask for
  std::int64_t held = 0;                ///< ids held and not yet issued
};

/// Decides how much to lease and when. Immutable and thread-safe: what it must remember lies in
/// Demand. The engine bounds its word: at least a step, at most four times the last lease, and no
/// more held than max(waste, 2 steps).
class RefillPolicy {
 public:
  virtual ~RefillPolicy() = default;
  virtual const char* name() const noexcept = 0;
  /// Ids to lease next, > 0, before what is parked is added. Checked 64-bit arithmetic.
  virtual std::int64_t NextCount(const Demand& demand, Instant now) const noexcept = 0;
  /// The most that NextCount comes to at this step, here and on other servers.
  virtual std::int64_t MostCount(std::int64_t row_step) const noexcept = 0;
  /// The next lease is asked for when an id at or above this one is issued, given the newest range
  /// held. At or above newest.last: only when the range is exhausted.
  virtual std::int64_t RefillAt(Range newest, const Demand& demand) const noexcept = 0;
};

/// Doubles and halves as Leaf was recorded doing it: up to 10^6, at 15 and 30 minutes, and asks
/// when more than a tenth of the newest segment is issued. In 64 bits, on the monotonic clock, and
/// never below the row's step, so that a step raised by hand acts at the next lease.
std::unique_ptr<RefillPolicy> MakeLeafPolicy();
/// Always the row's step; asks at a tenth as well.
std::unique_ptr<RefillPolicy> MakeFixedPolicy();

}  // namespace leaf
