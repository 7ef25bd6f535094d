#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checker.h"
#include "sim_random.h"
#include "sim_server.h"
#include "store_model.h"
#include "world.h"

namespace leaf::sim {

/// What may happen in a history.
enum class Kind : std::uint8_t {
  kLegal,       ///< everything, but the row never goes back by force
  kRegressing,  ///< restores, and rows lowered or made again too low, as well
  kFailover,    ///< replicas take over that lack the last leases; nobody else touches the rows
};

/// More than the leases of any history.
inline constexpr std::int64_t kFailoverSkip = 1'000'000'000;

/// Everything that one seed decides before the history begins.
struct Plan {
  std::uint64_t seed = 0;
  Kind kind = Kind::kLegal;
  int servers = 1;
  int tags = 1;    ///< rows at the beginning
  int absent = 0;  ///< further names without a row
  Duration length{};
  Duration arrivals{};  ///< mean time between the arrivals at a server
  int burst = 1;
  double batches = 0;  ///< share of the requests that want many ids
  double leaving = 0;  ///< share of the clients that do not wait
  double trouble = 0;  ///< actions of the world a second
  bool foreign = false;
  bool near_end = false;             ///< the first tag is near the end of 2^63
  Duration lag{};                    ///< of the replica
  bool undeclared_restores = false;  ///< a mutant: the store forgets, and the checker is not told
  ServerSetup server;
  StoreSetup store;

  std::string Describe() const;
};
Plan MakePlan(std::uint64_t seed, Kind kind);

struct Report {
  std::uint64_t seed = 0;
  std::uint64_t hash = 0;
  std::uint64_t events = 0;
  std::uint64_t ids = 0, answers = 0, excused = 0;
  ServerStats stats;  ///< of all servers
  std::uint64_t regressions = 0, outages = 0, locks = 0, deletions = 0, take_overs = 0;
  bool is_void = false;  ///< too little happened for a verdict
  std::vector<Checker::Violation> violations;
  std::string trace;  ///< the steps that led to the first violation

  bool Broke(Rule rule) const;
};

/// Runs one history. Confined; equal plans give equal reports.
class Simulation {
 public:
  explicit Simulation(const Plan& plan);
  Report Run();

 private:
  void MakeRows();
  void PlanArrival(int server);
  Wish Draw();
  void PlanTrouble();
  void Trouble();
  void StoreTrouble();
  void ServerTrouble();
  void HandEdit();
  void Regression();
  void PlanReplica();
  void TakeOver();
  bool AllRememberThisStore() const;
  void Administration();
  void PlanForeign();
  void PlanOperator();
  void Revive(int server, Duration after);
  bool MayDelete() const;
  void DeleteAndRemake(int tag);
  void Remake(int tag, std::int64_t step);
  bool CanServe(int tag) const;
  bool AskEverybody(Instant since);
  void Recover();
  void Settle();
  void StopAll();
  Report MakeReport();
  int AnyTag() { return static_cast<int>(random_.Below(static_cast<std::uint64_t>(plan_.tags))); }
  SimServer& AnyServer() { return *servers_[random_.Below(servers_.size())]; }
  std::int64_t AnyStep();

  Plan plan_;
  SimRandom random_;
  World world_;
  Checker checker_;
  StoreModel store_;
  std::vector<std::unique_ptr<SimServer>> servers_;
  StoreModel::Table snapshot_;
  StoreModel::Table replica_;  ///< what an asynchronous copy has got so far
  bool over_ = false;          ///< the time of trouble is over
  bool stopping_ = false;      ///< nobody is started again
  Report report_;
};

}  // namespace leaf::sim
