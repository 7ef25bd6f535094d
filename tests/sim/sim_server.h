#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checker.h"
#include "core/segment/engine.h"
#include "sim_journal.h"
#include "sim_random.h"
#include "store_model.h"
#include "world.h"

namespace leaf::sim {

struct ServerSetup {
  EngineOptions options;
  bool leaf_policy = true;  ///< else fixed
  int readers = 1;
  Duration tick_late{};        ///< how late Tick may be called
  Duration post_late{};        ///< how late a posted task may run
  Duration answer_late{};      ///< how long an answer may lie in the server
  bool wipes_journal = false;  ///< a mutant: every start finds an empty journal
};

/// What a client asks for.
struct Wish {
  int tag = 0;
  std::int64_t count = 1;
  bool one_piece = false;
  Duration leaves_after = Duration::max();  ///< the client has gone then
};

struct ServerStats {
  std::uint64_t requests = 0, served = 0, parked = 0, failed = 0, cancelled = 0, abandoned = 0;
  std::uint64_t asks = 0, grants = 0, stale = 0, kills = 0, clean_stops = 0, full_hand_backs = 0,
                moves = 0;
};

class Process;

/// One node: its journal, and the processes that run on it one after the other. Confined.
class SimServer {
 public:
  SimServer(World& world, StoreModel& store, Checker& checker, SimRandom random, int index,
            int tags, const ServerSetup& setup);
  ~SimServer();

  void Start();
  /// kill -9.
  void Kill();
  /// A clean stop; it takes its time. down() tells its end.
  void Stop();
  void Pause(Duration duration);

  bool serving() const noexcept;
  bool awake() const noexcept;
  bool down() const noexcept { return process_ == nullptr; }
  void Request(const Wish& wish);
  /// When an id of the tag was last taken here; Instant::min(): never.
  Instant last_served(int tag) const { return last_served_[static_cast<std::size_t>(tag)]; }

  // Administration; nothing if the server does not serve.
  void Resume(int tag, std::int64_t skip);
  void Drop(int tag);
  void PutStep(int tag, std::int64_t step);
  void Delete(int tag);
  bool Stopped(int tag) const;

  SimJournal& journal() noexcept { return journal_; }
  const ServerStats& stats() const noexcept { return stats_; }
  /// Waiters neither served nor failed when the history ended are left to the engine's end.
  std::size_t open_requests() const;

 private:
  friend class Process;
  void Buried(bool clean);

  World& world_;
  StoreModel& store_;
  Checker& checker_;
  SimRandom random_;
  int index_;
  int tags_;
  const ServerSetup& setup_;
  SimJournal journal_;
  ServerStats stats_;
  std::vector<Instant> last_served_;
  std::unique_ptr<Process> process_;
  std::vector<std::unique_ptr<StorePort>> old_ports_;  // statements under way still refer to them
};

}  // namespace leaf::sim
