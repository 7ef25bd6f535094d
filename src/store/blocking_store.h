#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/segment/segment_store.h"
#include "store/driver.h"
#include "store/options.h"

namespace leaf {

/// Runs blocking drivers on a bounded number of threads, behind the asynchronous port.
///
/// One session is kept; more are opened only while others are busy, up to `max_sessions`, and are
/// closed after `idle`. A call that has not begun by its deadline is never begun. A call that
/// passes its deadline is interrupted; a thread that stays stuck all the same (a name look-up, an
/// fsync) is replaced, up to `max_stuck` at once, beyond which calls are refused. After a failed
/// connect a breaker refuses calls until its back-off (with jitter, at most `retry_max`) has
/// passed, and the kept session reconnects by itself, also without any call. A server that is less
/// durable than `min_durability` refuses reservations with that reason, and is probed again
/// likewise.
///
/// Reservations and other calls take turns, so that neither starves behind the other.
/// Answers come from threads of the store, never from inside a call of the port and never under a
/// lock. Each ask and call is answered once: at the latest `kGrace` after its deadline, or by the
/// destructor, which ends within a second whatever the drivers do; nothing is called after it. It
/// must not run inside an answer. Thread-safe.
class BlockingStore final : public SegmentStore {
 public:
  struct Options {
    std::string kind;
    Duration timeout = std::chrono::seconds(1);
    Durability min_durability = Durability::kPower;
    int max_sessions = 4;
    int max_stuck = 8;
    Duration idle = std::chrono::seconds(30);
    Duration retry_max = std::chrono::seconds(1);
    int max_queued = 100000;  ///< calls that wait for a session; over it they are refused
  };
  using Factory = DriverFactory;
  /// How long an interrupted call may take to end before its thread counts as stuck.
  static constexpr Duration kGrace = std::chrono::milliseconds(100);

  /// Begins to connect at once. `clock` outlives the store.
  BlockingStore(Options options, Factory factory, Clock& clock);
  ~BlockingStore() override;

  void Reserve(std::span<const Ask> asks, GrantSink& sink) override;
  void Find(std::string tag, Instant deadline, Done<std::optional<Row>> done) override;
  void List(std::string after, int limit, Instant deadline, Done<std::vector<Row>> done) override;
  void Create(std::string tag, std::int64_t step, std::int64_t max_id, Instant deadline,
              Done<Row> done) override;
  void SetStep(std::string tag, std::int64_t step, Instant deadline, Done<Row> done) override;
  void Delete(std::string tag, Instant deadline, Done<Row> done) override;
  void Raise(std::string tag, std::int64_t not_below, std::int64_t add, Instant deadline,
             Done<std::int64_t> done) override;
  void HandBack(std::string tag, Range tail, std::uint64_t store_id, Instant deadline,
                Done<bool> done) override;
  StoreStatus Status() const override;
  void Abort() noexcept override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  ///< shared with threads that are stuck beyond our end
};

/// The options that fit a store: how many sessions its kind can use, its timeout and demands.
BlockingStore::Options BlockingOptions(const StoreOptions& options);

}  // namespace leaf
