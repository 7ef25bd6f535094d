#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim_random.h"
#include "snowflake_checker.h"
#include "snowflake_registry.h"
#include "snowflake_server.h"
#include "world.h"

namespace leaf::sim {

enum class SnowflakeKind : std::uint8_t {
  kTrouble,  ///< everything that can happen
  kCalm,     ///< nothing beyond what the guarantees of service allow: no request may fail
  kSplit,    ///< servers of one host with a registry each: the host's claims keep them apart
};

/// Everything that one seed decides before the history begins.
struct SnowflakePlan {
  std::uint64_t seed = 0;
  SnowflakeKind kind = SnowflakeKind::kTrouble;
  int servers = 1, hosts = 1;
  bool twin = false;  ///< the second server has the first one's identity (nodes)
  Duration length{}, arrivals{};
  int burst = 1;
  std::int64_t batch = 1;
  double leaving = 0, trouble = 0;
  bool wild_clocks = false;
  std::int64_t jitter_ms = 0;
  SnowflakeSetup server;
  RegistrySetup registry;

  std::string Describe() const;
};
SnowflakePlan MakeSnowflakePlan(std::uint64_t seed, SnowflakeKind kind);

struct SnowflakeReport {
  std::uint64_t hash = 0, events = 0, ids = 0;
  SnowflakeStats servers;
  RegistryStats registry;
  std::uint64_t steps = 0, pauses = 0, outages = 0, reboots = 0;
  std::vector<SnowflakeChecker::Violation> violations;
  std::string trace;  ///< the steps that led to the first violation

  bool Broke(SnowflakeRule rule) const;
};

/// Runs one history. Confined; equal plans give equal reports.
class SnowflakeSimulation {
 public:
  explicit SnowflakeSimulation(const SnowflakePlan& plan);
  SnowflakeReport Run();

 private:
  void PlanArrival(int server);
  void PlanTrouble();
  void Trouble();
  void ClockTrouble();
  void ServerTrouble();
  void CalmTrouble();
  void Reboot();
  void Copy();
  void Outage(Duration length);
  void Pause(int server, Duration length);
  void Revive(int server, Duration after);
  int AnyServer() { return static_cast<int>(random_.Below(servers_.size())); }
  SnowflakeServer& At(int server) { return *servers_[static_cast<std::size_t>(server)]; }
  SnowflakeReport MakeReport();

  const SnowflakePlan plan_;
  SimRandom random_;
  World world_;
  SnowflakeChecker checker_;
  std::vector<std::unique_ptr<RegistryModel>> registries_;
  std::vector<std::unique_ptr<SnowflakeHost>> hosts_;
  std::vector<std::unique_ptr<SnowflakeServer>> servers_;
  Instant last_step_{};
  SnowflakeReport report_;
};

}  // namespace leaf::sim
