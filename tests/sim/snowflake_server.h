#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/segment/waiter.h"
#include "core/snowflake/snowflake_engine.h"
#include "sim_random.h"
#include "snowflake_checker.h"
#include "snowflake_registry.h"
#include "world.h"

namespace leaf::sim {

/// A machine: its clocks, and the workers that its processes have taken. Confined.
class SnowflakeHost final : public Clock {
 public:
  SnowflakeHost(const World& world, SimRandom random, std::int64_t jitter_ms)
      : world_(world), random_(random), jitter_ms_(jitter_ms) {
    Reboot();
  }
  Instant Now() const noexcept override { return world_.now() + origin_; }
  std::int64_t WallMillis() const noexcept override {
    return 1'700'000'000'000 + world_.now().time_since_epoch().count() / 1'000'000 + wall_ms_ +
           (jitter_ms_ > 0 ? random_.Between(-jitter_ms_, jitter_ms_) : 0);
  }
  void StepWall(std::int64_t ms) { wall_ms_ += ms; }
  std::int64_t wall_ms() const noexcept { return wall_ms_; }
  void Reboot() { origin_ = random_.Between(std::chrono::hours(1), std::chrono::hours(1000)); }
  Instant InWorld(Instant at) const noexcept { return at - origin_; }

  std::map<std::int64_t, int> claims;  ///< worker -> server

 private:
  const World& world_;
  mutable SimRandom random_;
  const std::int64_t jitter_ms_;
  Duration origin_{};
  std::int64_t wall_ms_ = 0;
};

/// Servers that break a rule on purpose.
enum class ServerMutant : std::uint8_t {
  kNone,
  kJournalLies,        ///< a record is reported as durable and is not
  kOrderForgotten,     ///< the order word is not read at a start
  kHostClaimsIgnored,  ///< every worker is free on this host
  kCopyTrusted,        ///< a journal that was copied counts as one's own
};

struct SnowflakeSetup {
  SnowflakeOptions options;
  ServerMutant mutant = ServerMutant::kNone;
  Duration tick_late{}, post_late{}, save_min{}, save_max{};
  double save_faults = 0;
  Duration stale{};   ///< a request may be served by a reading of the clock so old
  bool calm = false;  ///< every request has to be served
};

struct SnowflakeStats {
  std::uint64_t answers = 0, parked = 0, served = 0, failed = 0, cancelled = 0;
  std::uint64_t starts = 0, kills = 0, stops = 0, copies = 0, unsynced = 0;
};

/// One place where a server runs: a host, an identity, a state folder; one process after another.
/// Drives the engine as leafd does. Confined.
class SnowflakeServer {
 public:
  SnowflakeServer(int index, SnowflakeSetup setup, World& world, SnowflakeChecker& checker,
                  RegistryModel& registry, SnowflakeHost& host, SimRandom random);
  ~SnowflakeServer();
  SnowflakeServer(const SnowflakeServer&) = delete;
  SnowflakeServer& operator=(const SnowflakeServer&) = delete;

  bool alive() const noexcept { return process_ != nullptr; }
  void Start();
  /// As kill -9: what was not synced is lost, or not.
  void Kill();
  /// Stops cleanly, and then ends.
  void Stop();
  /// The machine lost its power, or the folder its order word.
  void LoseOrder();
  void LoseJournal() { journal_.reset(); }
  void MoveBoot() { same_place_ = false; }
  /// The state folder of another server is copied here. REQUIRES: not alive.
  void CopyFrom(const SnowflakeServer& other);

  void Request(std::int64_t count, std::optional<Duration> patience);
  void Retire(std::int64_t worker);

  SnowflakeHost& host() noexcept { return host_; }
  const SnowflakeStats& stats() const noexcept { return stats_; }

 private:
  struct Process;
  struct Client;
  class Journal;
  class Order;
  class Claims;

  void PlanTick(Instant at);
  void RunTick();
  void Claimed(const Minted& minted);
  void Answered(Client& client);
  void Fail(const Error& error);
  void End();
  bool bound() const noexcept;

  const int index_;
  const SnowflakeSetup setup_;
  World& world_;
  SnowflakeChecker& checker_;
  RegistryModel& registry_;
  SnowflakeHost& host_;
  SimRandom random_;

  // The state folder.
  std::optional<RightRecord> journal_, unsynced_;
  bool same_place_ = true;
  std::int64_t order_ = 0;

  std::vector<std::unique_ptr<RegistryPort>> ports_;  ///< also of processes that have ended
  std::unique_ptr<Process> process_;
  SnowflakeStats stats_;
};

}  // namespace leaf::sim
