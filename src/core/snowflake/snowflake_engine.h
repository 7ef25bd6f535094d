#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "core/done.h"
#include "core/segment/waiter.h"
#include "core/snowflake/layout.h"
#include "core/snowflake/minted.h"
#include "core/snowflake/worker_registry.h"
#include "leaf/result.h"

namespace leaf {

struct SnowflakeOptions {
  Layout layout = kLeafLayout;
  std::string identity;                             ///< HOST:PORT of this server
  Duration lease = std::chrono::minutes(10);        ///< how long the registry may be away
  Duration drift = std::chrono::seconds(5);         ///< how far minted time may run ahead
  Duration wait = std::chrono::seconds(3);          ///< a request waits this long for ids
  Duration call_timeout = std::chrono::seconds(1);  ///< bound on each call of the registry
  std::int64_t max_count = 10'000;                  ///< ids a request
  int max_waiters = 100'000;
};

/// A picture of the generator for people and metrics.
struct SnowflakeView {
  bool serving = false;
  std::string reason;        ///< why not serving, or what is to be known all the same
  std::int64_t worker = -1;  ///< -1: none yet
  std::int64_t generation = 0;
  std::string owner, identity, layout;
  std::int64_t limit_ms = 0;        ///< of the right, as in the registry
  std::int64_t now_ms = 0;          ///< the believed time
  std::int64_t last_ms = 0;         ///< the largest time minted
  std::int64_t end_ms = 0;          ///< of the layout
  std::int64_t wall_offset_ms = 0;  ///< wall clock less believed time, at the last look
  std::optional<std::int64_t> registry_offset_ms;  ///< believed time less the registry's clock
  std::uint64_t steps_back = 0, steps_forward = 0;
  std::uint64_t issued = 0, waits = 0, claims = 0, extensions = 0, failures = 0, losses = 0;
  std::int64_t parked = 0;
  std::int64_t free_workers = -1;
};

/// Snowflake mode of one server: keeps the right to a worker and mints by it. Guarantees I1 to I6
/// of docs/guarantees.md. It creates no thread and reads no clock but the Clock it was given, and
/// that not on the hot path.
///
/// [hot] lock-free, no allocation, no virtual call. [any] any thread.
class SnowflakeEngine {
 public:
  struct Ports {
    WorkerRegistry& registry;
    RightJournal* journal = nullptr;  ///< required where RegistryTraits::bound
    HostClaims* host = nullptr;
    OrderWord* order = nullptr;
    Clock& clock;
    Random& random;
  };
  /// All references outlive the engine's use; the registry must have ended before the engine does.
  SnowflakeEngine(SnowflakeOptions options, Ports ports);
  ~SnowflakeEngine();
  SnowflakeEngine(const SnowflakeEngine&) = delete;
  SnowflakeEngine& operator=(const SnowflakeEngine&) = delete;

  /// Reads journal and order word. Before anything else.
  Result<void> Load();

  const SnowflakeOptions& options() const noexcept;

  /// Mints n ids, or nothing: then MintOrPark says why, or waits. REQUIRES: 1 <= n <= max_count.
  /// [hot]
  bool TryMint(std::int64_t n, Instant now, Minted& out) noexcept;

  /// Mints waiter.count ids, or parks the waiter until they can be had. True: `out` is final.
  /// False: parked; waiter.minted or the error in waiter.result will be set and the waiter posted
  /// exactly once, unless Cancel took it back. Errors: kExhausted (the end of the layout),
  /// kOverloaded, kUnavailable (with the reason). [any]
  bool MintOrPark(Waiter& waiter, Instant now, Result<Minted>& out);

  /// True: the waiter is out and will not be posted. False: it is on its way; wait for Run. [any]
  [[nodiscard]] bool Cancel(Waiter& waiter) noexcept;

  /// Claims, extends, looks at the clock, serves those who wait. Returns when it wants to be called
  /// next. One thread at a time.
  Instant Tick(Instant now);
  /// `wake` is called from any thread when Tick should run now. Set before use.
  void SetWake(std::function<void()> wake);

  SnowflakeView View() const;
  /// As WorkerRegistry's; [any].
  void Workers(Done<std::vector<WorkerRecord>> done);
  void Retire(std::int64_t worker, Done<WorkerRecord> done);

  /// Clean stop: no more ids, parked requests end as kUnavailable, the limit is lowered to what was
  /// minted, once, within call_timeout. `done` from any thread, once. [any]
  void Close(std::function<void()> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  WorkerRegistry& registry_;
  Clock& clock_;
};

}  // namespace leaf
