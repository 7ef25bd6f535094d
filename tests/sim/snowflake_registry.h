#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/snowflake/worker_registry.h"
#include "registry/claim.h"
#include "sim_random.h"
#include "snowflake_checker.h"
#include "world.h"

namespace leaf::sim {

enum class RegistryKind : std::uint8_t {
  kRowsWithClock,  ///< MariaDB, the native layout: rows, and a clock of the registry's own
  kRows,           ///< SQLite, memory: rows, no clock
  kNodes,          ///< Leaf's layout in ZooKeeper: a versioned node for each identity
  kFixed,          ///< a record in each server's folder
};
const char* Name(RegistryKind kind) noexcept;

/// Registries that break a rule on purpose.
enum class RegistryMutant : std::uint8_t {
  kNone,
  kExtendUnwritten,  ///< an extension is acknowledged and not written
  kFloorIsNow,       ///< a worker that is taken over begins at the present, not at its limit
  kBlindWrites,      ///< what is replaced is not compared
};

struct RegistrySetup {
  RegistryKind kind = RegistryKind::kRows;
  RegistryMutant mutant = RegistryMutant::kNone;
  Duration latency_min{}, latency_max{};
  double faults = 0;   ///< share of the calls that meet one
  double held_up = 0;  ///< share of what meets an outage that happens after it
  Duration longest{};  ///< an answer or a write comes so much later at most
  Duration renew{};
};

struct RegistryStats {
  std::uint64_t calls = 0, faults = 0, creates = 0, takes = 0, adopts = 0, extends = 0, lowers = 0;
  std::uint64_t conflicts = 0, retires = 0, foreign = 0, late_writes = 0;
};

/// The records of one registry, which outlive all servers, and what happens to calls on their way.
/// Confined.
class RegistryModel {
 public:
  struct Record {
    WorkerRow row;
    std::int64_t written_ms = 0;  ///< by the registry's clock
  };

  RegistryModel(RegistrySetup setup, World& world, SnowflakeChecker& checker, SimRandom random)
      : setup_(setup), world_(world), checker_(checker), random_(random) {}

  const RegistrySetup& setup() const noexcept { return setup_; }
  std::int64_t TrueMillis() const noexcept {
    return 1'700'000'000'000 + world_.now().time_since_epoch().count() / 1'000'000;
  }
  /// The registry's clock.
  std::int64_t ClockMillis() const noexcept { return TrueMillis() + clock_ms_; }
  std::optional<std::int64_t> ClockForPlans() const noexcept;
  void StepClock(std::int64_t ms) { clock_ms_ += ms; }

  void GoAway(Instant until) { away_until_ = std::max(away_until_, until); }
  bool away() const noexcept { return world_.now() < away_until_; }
  Instant away_until() const noexcept { return away_until_; }
  void EndFaults() { setup_.faults = 0; }

  /// Something else writes the node that `identity` has, without changing its time.
  void TouchNode();

  std::map<std::int64_t, Record>& records() noexcept { return records_; }
  /// Replaces what is as `from` was, or makes what is not there. False: another was faster.
  bool Write(const std::optional<Record>& from, const WorkerRow& to);
  RegistryMutant mutant() const noexcept { return setup_.mutant; }

  World& world() noexcept { return world_; }
  SimRandom& random() noexcept { return random_; }
  SnowflakeChecker& checker() noexcept { return checker_; }
  RegistryStats& stats() noexcept { return stats_; }

 private:
  RegistrySetup setup_;
  World& world_;
  SnowflakeChecker& checker_;
  SimRandom random_;
  std::map<std::int64_t, Record> records_;
  std::int64_t clock_ms_ = 0;
  Instant away_until_{};
  RegistryStats stats_;
};

/// The registry as one process of a server sees it. What it sent goes on after its end. Confined.
class RegistryPort final : public WorkerRegistry {
 public:
  /// `fixed_worker`: of kFixed.
  RegistryPort(RegistryModel& model, const Clock& clock, int server, std::string identity,
               std::int64_t fixed_worker = 0);

  RegistryTraits traits() const noexcept override;
  void Claim(ClaimAsk ask, Done<WorkerRight> done) override;
  void Extend(WorkerRight right, std::int64_t limit_ms, std::int64_t lease_ms, Instant deadline,
              Done<WorkerRight> done) override;
  void Lower(WorkerRight right, std::int64_t limit_ms, Instant deadline,
             Done<WorkerRight> done) override;
  void List(Instant deadline, Done<std::vector<WorkerRecord>> done) override;
  void Retire(std::int64_t worker, Instant deadline, Done<WorkerRecord> done) override;
  RegistryStatus Status() const override;

  /// The last answer named another's write, and no claim has succeeded since.
  bool disowned() const noexcept { return disowned_; }
  /// The process has ended: it hears nothing any more.
  void End() noexcept { ended_ = true; }

 private:
  /// One call: each step reads or writes once, and says the answer when it has one.
  template <typename T>
  struct Job {
    std::function<std::optional<Result<T>>(int step)> step;
    Done<T> done;
    Instant deadline;
    Duration gap{};        ///< between its steps
    bool answered = true;  ///< false: nobody hears its end
    Duration answer_late{};
    int steps = 0;
  };
  /// What this process wrote, to know its own word again.
  struct Memory {
    struct Write {
      std::int64_t version, limit_ms, floor_ms;
    };
    std::vector<Write> writes;
    std::int64_t watched_version = -1;
    Instant watched_since;
  };
  using Steps = std::function<std::optional<Result<WorkerRight>>(int)>;
  template <typename T>
  void Send(std::function<std::optional<Result<T>>(int)> step, Instant deadline, Done<T> done);
  template <typename T>
  void Step(std::shared_ptr<Job<T>> job);
  template <typename T>
  void Answer(const Job<T>& job, Result<T> result, Duration late);
  /// Where the steps of a call happen: in the server itself, or in the world.
  int Place() const noexcept;

  Steps ClaimRows(ClaimAsk ask);
  Steps ClaimNode(ClaimAsk ask);
  Steps ClaimFixed(ClaimAsk ask);
  /// `limit_for` says the new limit from the present one.
  using LimitFor = std::function<std::int64_t(std::int64_t)>;
  Steps MoveRow(WorkerRight right, LimitFor limit_for);
  Steps MoveNode(WorkerRight right, LimitFor limit_for);
  Steps Move(WorkerRight right, LimitFor limit_for);
  Result<std::int64_t> NodeFloor(const ClaimAsk& ask, const RegistryModel::Record& node);
  /// Who holds a right, for the checker: where workers are bound to nodes a right outlives a
  /// process.
  const std::string& Holder(const std::string& owner) const noexcept;

  RegistryModel& model_;
  const Clock& clock_;
  const int server_;
  const std::string identity_;
  const std::int64_t fixed_worker_;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  bool disowned_ = false, ended_ = false;
};

}  // namespace leaf::sim
