#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/segment/engine.h"
#include "core/segment/segment.h"
#include "core/segment/waiter_queue.h"

namespace leaf {

/// What stands between a tag and its next lease.
enum class Phase : std::uint8_t {
  kRest,     ///< nothing is under way; perhaps a back-off runs
  kQueued,   ///< due, waits for a free flight
  kFlying,   ///< asked, not yet answered
  kProbing,  ///< near the end of the id space: the row is looked up for what it has left
  kRaising,  ///< the row went back, or another store took over: it is being raised
};

/// The state of a tag that has been asked for ids. Guarded by the tag's lock.
struct TagUse {
  std::vector<Range> reserve;  ///< held beyond the current segment: ascending, none empty
  WaiterQueue waiters;

  Phase phase = Phase::kRest;
  Flight flight = 0;
  std::int64_t flight_count = 0;   ///< ids asked for by the flight
  std::int64_t flight_policy = 0;  ///< of these, what the policy wanted
  Instant flight_deadline = kNever;
  bool wanted = false;          ///< look-ahead is due, also without a parked request
  bool leased_here = false;     ///< the last lease came from the store of the tag's generation
  bool moving = false;          ///< the row is to be raised, because another store has taken over
  std::uint32_t moving_to = 0;  ///< the generation of the store where it is being raised
  bool cautious = false;        ///< after an unknown outcome: ask for one step only
  int failures = 0;             ///< in a row
  Instant retry_at = kNever;    ///< a back-off runs until then; kNever: none
  Instant agenda_at = kNever;   ///< the agenda comes back to this tag then

  int leases = 0;
  std::int64_t last_count = 0;  ///< flight_policy of the last lease
  Instant last_lease = Instant::min();
  std::int64_t last_lease_count = 0;  ///< ids of it, with what was added for parked requests
  std::int64_t largest = 0;           ///< largest lease, ours or another server's: SkipOf
  std::int64_t burnt_run = 0;         ///< burnt since the last grant
  std::int64_t mark_before = 0;       ///< the mark before the first lease of this process
  std::int64_t issued_to = 0;  ///< end of the last id issued, not counting the current segment
  std::int64_t end_limit = 0;  ///< > 0: the row has only so many ids left

  std::int64_t leased = 0;  ///< ids granted or burnt, all told
  std::uint64_t refills = 0, refill_failures = 0, waits = 0;
  std::uint64_t discarded[kDiscardCount] = {};
  std::string last_error;
};

/// One tag as this server knows it. Made by a TagTable, never freed before it. An idle tag is this
/// and its name, nothing more, because there may be a million of them.
class Tag {
 public:
  Tag(const Tag&) = delete;
  Tag& operator=(const Tag&) = delete;

  std::string_view name() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), name_size_};
  }
  std::uint32_t hash() const noexcept { return hash_; }

  /// Read without a lock by threads that are online readers, and under the tag's lock by all
  /// others; written under the lock. The segment is freed after all readers have quiesced.
  std::atomic<Segment<>*> current{nullptr};
  /// A taker that reaches beyond this id asks for a refill; kMaxEnd while none is to be asked for.
  std::atomic<std::int64_t> refill_at{kMaxEnd};

  // The rest is guarded by the tag's lock.
  std::unique_ptr<TagUse> use;        ///< nullptr until the tag is first asked for
  std::int64_t mark = 0;              ///< end of our own latest lease
  std::int64_t seen = 0;              ///< largest end seen from any source
  std::int64_t row_max = 0;           ///< the row's max_id as last seen
  std::int64_t row_step = 0;          ///< the row's step as last seen
  std::uint32_t pass = 0;             ///< the pass over the tag list in which the row was last seen
  std::uint32_t generation : 24 = 0;  ///< of the store our leases came from (Lineage); 0: none
  bool regressed : 1 = false;         ///< stopped until an operator resumes it
  bool raised : 1 = false;            ///< of a regressed tag: the row is known to be above `seen`
  bool absent : 1 = true;             ///< the table is not known to have a row
  bool exhausted : 1 = false;         ///< its row has no id left

 private:
  friend class TagTable;
  Tag(std::uint32_t hash, std::uint32_t name_size) noexcept : hash_(hash), name_size_(name_size) {}
  ~Tag() { delete current.load(std::memory_order_relaxed); }

  const std::uint32_t hash_;
  const std::uint32_t name_size_;  ///< the name lies behind the object
};

}  // namespace leaf
