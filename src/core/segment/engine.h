#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "core/segment/marks.h"
#include "core/segment/policy.h"
#include "core/segment/range.h"
#include "core/segment/segment_store.h"
#include "core/segment/waiter.h"
#include "leaf/result.h"

namespace leaf {

class Tag;

/// A thread that passes through the engine's lock-free parts. One a reactor; confined to its
/// thread. Between Online and Offline it may hold pointers found in the engine; Quiesce says it
/// holds none.
class Reader;

enum class TagState : std::uint8_t { kIdle, kActive, kRegressed, kAbsent };
std::string_view TagStateName(TagState state) noexcept;

/// Why ids that were reserved will never be issued.
enum class Discard : std::uint8_t {
  kBurnt,
  kSkipped,
  kDeleted,
  kDropped,
  kRegressed,
  kFailover,
  kAbandoned
};
inline constexpr int kDiscardCount = 7;
std::string_view DiscardName(Discard reason) noexcept;

/// A picture of a tag for people and metrics.
struct TagView {
  struct Piece {
    Range range;            ///< as leased
    std::int64_t next = 0;  ///< next id to issue
  };
  std::string name;
  TagState state = TagState::kIdle;
  std::int64_t max_id = 0;  ///< the row's, as last seen
  std::int64_t step = 0;    ///< the row's, as last seen
  std::int64_t lease = 0;   ///< ids of the last lease
  std::int64_t mark = 0;
  std::int64_t remaining = 0;   ///< held and not issued
  std::vector<Piece> segments;  ///< in the order of issue
  std::int64_t parked = 0;      ///< requests waiting
  std::uint64_t issued = 0, refills = 0, refill_failures = 0, waits = 0;
  std::uint64_t discarded[kDiscardCount] = {};
  std::string last_error;  ///< of its last flight; empty if that was granted
};

struct EngineOptions {
  Duration wait = std::chrono::seconds(3);           ///< a request waits this long for ids
  Duration store_timeout = std::chrono::seconds(1);  ///< bound of each flight
  Duration refresh = std::chrono::seconds(60);       ///< a complete pass over the tag list
  Duration backoff_min = std::chrono::milliseconds(20);
  Duration backoff_max = std::chrono::seconds(1);
  int list_page = 1000;             ///< rows a page of the tag list
  int max_flights = 64;             ///< reservations under way at once, urgent ones first
  int max_waiters = 100000;         ///< parked requests, all tags; over it kOverloaded
  std::int64_t waste = 50'000'000;  ///< most ids one tag may hold, never under two steps
  std::int64_t step = 1000;         ///< of tags that auto_create makes
  bool auto_create = false;
  int auto_create_limit = 10000;
  std::int64_t failover_skip = 0;  ///< above a row that went back, and where another store took
                                   ///< over; 0: 16 leases of the tag's largest recent size
  int lookups_per_second = 100;    ///< look-ups of unknown tags; over it kOverloaded
  int negative_entries = 65536;    ///< unknown tags remembered
  Duration negative_ttl = std::chrono::seconds(1);
  /// Where operators reach the admin listener; for the text of errors only.
  std::string admin_url = "http://127.0.0.1:8081";
};

/// The segment engine: reserves ranges through the store port and hands ids out from memory.
///
/// Guarantees I1 to I6 of docs/guarantees.md for one server. It creates no thread and reads no
/// clock: `now` comes in (OnGrant, which comes from store threads, reads the Clock it was given).
///
/// [hot] lock-free, no allocation, no virtual call, needs an online Reader.
/// [any] any thread; takes the tag's lock for a moment; effects run after it is released.
class Engine final : public GrantSink {
 public:
  /// All references outlive the engine's use. Call Load, then Tick as it asks for. The destructor
  /// calls nobody; before it, the store must have been brought to where it answers no more (end the
  /// store, or its threads, first), readers must be gone and no request may be parked.
  Engine(EngineOptions options, SegmentStore& store, MarkJournal& journal,
         const RefillPolicy& policy, Clock& clock, Random& random);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Reads the journal. Before anything else.
  Result<void> Load();

  /// Readers outlive their use and are removed before the engine ends. [any]
  std::unique_ptr<Reader> AddReader();

  /// The tag of that name, or nullptr if it is not known (yet). [hot]
  Tag* Find(Reader& reader, std::string_view name) const noexcept;

  /// Takes n > 0 consecutive ids from memory, or nothing. Asks for a refill when one is due. [hot]
  bool TryTake(Reader& reader, Tag& tag, std::int64_t n, Range& out) noexcept;

  /// Takes waiter.count ids, or parks the waiter until they can be had. True: `out` holds the ids
  /// or the error. False: parked; `waiter.result` will be set and the waiter posted to its home
  /// exactly once, unless Cancel took it back. An unknown tag is looked up. Errors: kNotFound,
  /// kRegressed, kExhausted, kOverloaded, kUnavailable (after `wait`, with the store's reason).
  /// [any]
  bool TakeOrPark(std::string_view name, Waiter& waiter, Instant now, Result<Ranges>& out);

  /// True: the waiter is out and will not be posted. False: it is on its way; wait for Run. [any]
  [[nodiscard]] bool Cancel(Waiter& waiter) noexcept;

  /// Ids that were taken but will reach nobody (the client left); they become a gap. [any]
  void Abandon(std::string_view name, const Ranges& ids) noexcept;

  /// Store threads, the simulator. Late and unknown flights are dropped by number. [any]
  void OnGrant(const Grant& grant) override;

  /// Deadlines, back-off, tag list, reclamation; goes on while Close is under way. Returns when it
  /// wants to be called next; an earlier need is told through the callback of SetWake. One thread
  /// at a time.
  Instant Tick(Instant now);
  /// `wake` is called from any thread when Tick should run now. Set before use.
  void SetWake(std::function<void()> wake);

  /// Administration; all asynchronous, `done` from any thread, once. [any]
  struct Put {
    bool created = false;
    Row row;
  };
  /// Creates at or above the tag's mark, or changes the step. kConflict: it exists and max_id
  /// differs.
  void PutTag(std::string name, std::int64_t step, std::optional<std::int64_t> max_id,
              Done<Put> done);
  /// Ends the tag at once: held ids are discarded, the mark stays.
  void DeleteTag(std::string name, Done<Row> done);
  /// row := max(row, mark) + skip, clears the stop. kConflict if the tag is not stopped.
  void ResumeTag(std::string name, std::int64_t skip, Done<std::int64_t> done);
  /// Discards held ids without hand-back; the next id comes from a new lease. The number discarded.
  Result<std::int64_t> DropTag(std::string_view name);

  std::optional<TagView> View(std::string_view name) const;
  /// Calls `visit` for each known tag in no order, without a lock that blocks issuing.
  void Visit(const std::function<void(const TagView&)>& visit) const;

  struct Totals {
    std::int64_t known = 0, active = 0, regressed = 0, parked = 0, flights = 0;
    std::uint64_t store_changes = 0;  ///< how often another store took over
    std::uint64_t stale_grants = 0, lookups = 0, lookups_refused = 0;
    bool list_complete = false;  ///< a complete pass over the tag list was made
    bool holds_ids = false;      ///< at least one tag in use holds ids
    std::string list_error;      ///< of the last page; empty if it came
  };
  Totals Sum() const;

  /// Clean stop: no more ids. Parked requests end as kUnavailable, segments are closed, marks
  /// synced, tails handed back once, each within store_timeout. Flights under way are waited for,
  /// up to their deadlines. Blocks while the marks are written; `done` from any thread, once. [any]
  void Close(std::function<void()> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// [hot] Ends with the reader's thread; deregisters itself.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual void Online() noexcept = 0;   ///< before the first use, and after Offline
  virtual void Quiesce() noexcept = 0;  ///< once a loop turn while busy
  virtual void Offline() noexcept = 0;  ///< before blocking
};

}  // namespace leaf
