#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/done.h"
#include "leaf/result.h"

namespace leaf {

/// How far a limit may reach beyond the registry's own time and the lease: what the clocks of two
/// hosts may differ by before it matters.
inline constexpr std::int64_t kClockToleranceMs = 60'000;

/// One worker of a cluster, as the registry holds it. `owner` may mint times below `limit_ms` and
/// nobody else may; whoever takes the worker over begins at `limit_ms`. So two owners never share a
/// time, whatever their clocks say.
struct WorkerRecord {
  std::int64_t worker = 0;
  std::int64_t generation =
      0;                      ///< rises with each owner (ZooKeeper, Leaf's layout: with each write)
  std::string owner;          ///< nonce of the owning process; empty where no leafd wrote it
  std::string identity;       ///< HOST:PORT of the owner, for people
  std::int64_t limit_ms = 0;  ///< exclusive; milliseconds since 1970
  std::string note;           ///< what is odd about the record, for people; else empty
};

/// What a server wrote down of its own right (RightJournal), to prove at a restart that a record in
/// the registry is its own last word.
struct RightRecord {
  std::int64_t worker = 0;
  std::int64_t generation = 0;
  std::string owner;
  std::int64_t limit_ms = 0;  ///< of the registry's record
  std::int64_t short_ms = 0;  ///< this process has minted nothing at or above it; <= limit_ms
  /// A clean stop may have lowered the registry's record: it proves who wrote last, but nothing may
  /// be minted by it alone.
  bool spent = false;
  friend bool operator==(const RightRecord&, const RightRecord&) = default;
};

/// Asks for a worker.
struct ClaimAsk {
  std::string owner;         ///< 32 lower-case hexadecimal digits, drawn at each start
  std::string identity;      ///< HOST:PORT
  std::int64_t workers = 0;  ///< of the layout: a worker is in [0, workers)
  std::string layout;        ///< LayoutText; a cluster holds one layout
  std::int64_t now_ms = 0;   ///< by this server's clock
  std::int64_t lease_ms = 0;
  std::vector<std::int64_t> excluded;  ///< taken by another process of this host
  std::optional<RightRecord> journal;  ///< what this server's folder proves, if anything
  Instant deadline = kNever;
};

/// The right to mint: times in [floor_ms, limit_ms) as `worker`.
struct WorkerRight {
  std::int64_t worker = 0;
  std::int64_t generation = 0;
  std::string owner;
  std::int64_t floor_ms = 0;
  std::int64_t limit_ms = 0;
  /// The registry's own clock when it answered; nullopt if it has none but this host's.
  std::optional<std::int64_t> registry_ms;
  /// Workers that a starting server could have had, this one not counted; -1: not counted (a
  /// registry that binds workers to nodes).
  std::int64_t free_workers = -1;
};

/// What the engine has to know of a kind of registry.
struct RegistryTraits {
  /// The worker belongs to this node and to no other (fixed:N, ZooKeeper in Leaf's layout): a
  /// restart needs the same one, so a RightJournal runs close behind what is minted.
  bool bound = false;
  /// Others may mint with this worker without asking for the right (Java Leaf): a foreign change of
  /// the record ends minting at once. Otherwise the old limit still holds.
  bool foreign_writers = false;
  /// How often the right is extended; zero: at half of the lease.
  Duration renew{};
};

/// Whether a registry can be used and what it is.
struct RegistryStatus {
  std::string kind;  ///< "store", "zookeeper", "fixed"
  bool up = false;   ///< the last call succeeded
  std::string last_error;
  std::vector<std::string> warnings;
  std::uint64_t calls = 0, failures = 0;
};

/// The port to the workers of one cluster. Every call starts the work and returns at once; `done`
/// comes from any thread, once, late or never: the asker keeps its own deadline. Thread-safe.
///
/// Errors: kConflict (the record is another's now; of Claim: the registry answered, and a node that
/// this server is bound to is not its own), kNotFound (no such worker), kUnavailable for all else,
/// with what to do in the message; a clock too far ahead says so with the word
/// `clock_ahead`. After kUnavailable a call may have happened or may happen yet; each may be
/// repeated by the same owner.
class WorkerRegistry {
 public:
  virtual ~WorkerRegistry() = default;

  virtual RegistryTraits traits() const noexcept = 0;

  /// Takes a worker: one that this owner holds already (a repeated call), else one whose limit has
  /// passed by both clocks, else one that never was. By compare-and-swap: of two that ask at once,
  /// each gets another worker. The new limit is that of LimitWithin.
  virtual void Claim(ClaimAsk ask, Done<WorkerRight> done) = 0;

  /// Raises the limit of `right`, still its owner's, to `limit_ms`, but not beyond
  /// `registry_ms + lease_ms + kClockToleranceMs` where the registry has a clock. Never lowers it.
  /// kConflict: the right is lost.
  virtual void Extend(WorkerRight right, std::int64_t limit_ms, std::int64_t lease_ms,
                      Instant deadline, Done<WorkerRight> done) = 0;

  /// Lowers the limit to `limit_ms`, the first time that was not minted, at a clean stop. The
  /// generator was closed before. The right as it is then, with its generation; kConflict: it was
  /// lost.
  virtual void Lower(WorkerRight right, std::int64_t limit_ms, Instant deadline,
                     Done<WorkerRight> done) = 0;

  /// All workers of the cluster that ever were, by worker.
  virtual void List(Instant deadline, Done<std::vector<WorkerRecord>> done) = 0;

  /// Ends an owner's claim by hand: it can extend no more and mints up to its limit at most, and
  /// once that has passed the worker is free. Where workers are bound to nodes the node is removed
  /// instead, so that its number is free; kConflict while its limit has not passed. Returns what
  /// was retired.
  virtual void Retire(std::int64_t worker, Instant deadline, Done<WorkerRecord> done) = 0;

  virtual RegistryStatus Status() const = 0;
};

/// The limit for a claim or an extension at `now_ms` with `lease_ms`: now + lease, at most
/// registry + lease + kClockToleranceMs. kUnavailable with `clock_ahead` if that is not above
/// `now_ms`, so that one bad reading of the clock does not hold a worker for a year.
Result<std::int64_t> LimitWithin(std::int64_t now_ms, std::int64_t lease_ms,
                                 std::optional<std::int64_t> registry_ms);

/// What this server remembers of its right, written close behind its use. Thread-safe.
class RightJournal {
 public:
  virtual ~RightJournal() = default;
  struct Found {
    RightRecord record;
    /// The file is where it was written, on the same boot of the same machine: nobody copied it.
    bool same_place = false;
  };
  /// nullopt: there is none.
  virtual Result<std::optional<Found>> Load() = 0;
  /// Makes the record durable; `done` from any thread, once it is, or with the error.
  virtual void Save(RightRecord record, Done<bool> done) = 0;
};

/// The last minted time, kept where it outlives the process: it serves order after kill -9, never
/// safety. Thread-safe.
class OrderWord {
 public:
  virtual ~OrderWord() = default;
  /// Milliseconds since 1970 of the last time that the process before minted; nullopt: unknown.
  virtual std::optional<std::int64_t> Last() const = 0;
  /// The place where the generator leaves the largest time minted; raised before an id leaves.
  virtual std::atomic<std::int64_t>& word() noexcept = 0;
};

/// The workers that processes of this host mint with. Thread-safe; never blocks.
class HostClaims {
 public:
  virtual ~HostClaims() = default;
  /// False: another process of this host has that worker of that cluster.
  virtual bool Take(std::int64_t worker) = 0;
  virtual void Release(std::int64_t worker) noexcept = 0;
};

}  // namespace leaf
