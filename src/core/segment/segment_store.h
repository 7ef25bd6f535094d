#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/done.h"
#include "core/segment/range.h"
#include "leaf/result.h"

namespace leaf {

/// How much a store's "yes" is worth, weakest first.
enum class Durability : std::uint8_t {
  kVolatile,    ///< lost when the store's process ends
  kProcess,     ///< survives the store's process, not a power loss
  kPower,       ///< survives a power loss of its host
  kReplicated,  ///< survives the loss of its host: a synchronous copy exists
};
std::string_view DurabilityName(Durability level) noexcept;

/// A row of Leaf's table as the store holds it; `max_id` is the next id that nobody has reserved.
struct Row {
  std::string tag;
  std::int64_t max_id = 0;
  std::int64_t step = 0;
  std::string
      updated;  ///< the store's text for update_time ("2026-11-30 20:45:31.0"), may be empty
};

/// Names one reservation of one Engine; never 0, never used again.
using Flight = std::uint64_t;

/// Asks for `count` > 0 ids of `tag`. `tag` outlives the Engine that asks.
struct Ask {
  Flight flight = 0;
  std::string_view tag;
  std::int64_t count = 0;
  Instant deadline = kNever;  ///< the store starts nothing for this ask after it
};

/// What became of an Ask.
enum class Outcome : std::uint8_t {
  kGranted,
  kRefused,  ///< nothing happened in the store; `error` says why
  kUnknown,  ///< it may have happened, now or later: the ids are burnt, never asked again
};

struct Grant {
  Flight flight = 0;
  Outcome outcome = Outcome::kUnknown;
  Error error;  ///< unless granted
  Range range;  ///< if granted: exactly Ask::count ids, first = new end - count
  std::optional<std::int64_t> row_step;  ///< the row's step, where the statement could return it
  std::uint64_t store_id = 0;            ///< hash of the identity of the server that granted
  std::uint32_t store_turn = 0;          ///< rises each time the store turns out to be another one
};

/// Takes grants. Thread-safe.
class GrantSink {
 public:
  virtual void OnGrant(const Grant& grant) = 0;

 protected:
  ~GrantSink() = default;
};

/// Whether a store can be used and what it is.
struct StoreStatus {
  std::string kind;  ///< "sqlite", "mysql", ...
  bool up = false;   ///< the last call, or connection attempt, succeeded
  Durability durability = Durability::kVolatile;  ///< as probed at the last connect
  std::string identity;               ///< of the server, as probed; empty before the first connect
  std::string last_error;             ///< why not up, or what failed since the last connect
  std::vector<std::string> warnings;  ///< findings of the probe that do not forbid serving
  std::uint64_t calls = 0, failures = 0;
  std::uint64_t changes = 0;  ///< how often the identity was another one than before
  std::int64_t sessions = 0;  ///< connections open now
};

/// The port to one table of tags; one table is one cluster. Every call starts the work and returns
/// at once, none blocks; results come back from any thread, out of order, late or never. All names
/// are compared byte by byte. Thread-safe.
///
/// Errors: kNotFound (no such row), kConflict (row exists), kExhausted (the end of 2^63), and
/// kUnavailable for all else, with the store's words in the message.
class SegmentStore {
 public:
  virtual ~SegmentStore() = default;

  /// Adds `count` to the row of each ask by one atomic statement that requires step > 0. Each ask
  /// is answered by itself; no ask waits for the row lock of another for longer than the store's
  /// timeout. kRefused with kNotFound: no row; with kUnavailable: a bad step, the store is away, or
  /// it is less durable than required.
  virtual void Reserve(std::span<const Ask> asks, GrantSink& sink) = 0;

  /// The row of `tag`, or nullopt if there is none.
  virtual void Find(std::string tag, Instant deadline, Done<std::optional<Row>> done) = 0;
  /// Up to `limit` rows whose tag is above `after` in the store's own order; fewer means the end.
  virtual void List(std::string after, int limit, Instant deadline,
                    Done<std::vector<Row>> done) = 0;

  /// Inserts a row; kConflict if it exists.
  virtual void Create(std::string tag, std::int64_t step, std::int64_t max_id, Instant deadline,
                      Done<Row> done) = 0;
  virtual void SetStep(std::string tag, std::int64_t step, Instant deadline, Done<Row> done) = 0;
  virtual void Delete(std::string tag, Instant deadline, Done<Row> done) = 0;

  /// row := max(row, not_below) + add; the new max_id. add >= 0. Upwards only, so safe to repeat.
  virtual void Raise(std::string tag, std::int64_t not_below, std::int64_t add, Instant deadline,
                     Done<std::int64_t> done) = 0;

  /// Lowers the row from tail.last to tail.first by one compare-and-swap; true if the row was
  /// there. To be tried once: a second try after an unknown outcome can lower what another server
  /// reserved. An error if `store_id` is not that of the server that would do it: what another one
  /// granted says nothing about this row.
  virtual void HandBack(std::string tag, Range tail, std::uint64_t store_id, Instant deadline,
                        Done<bool> done) = 0;

  virtual StoreStatus Status() const = 0;

  /// Cuts every session; calls under way end as unknown. For the second signal, and for tests.
  virtual void Abort() noexcept = 0;
};

}  // namespace leaf
