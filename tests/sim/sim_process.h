#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/segment/engine.h"
#include "core/segment/policy.h"
#include "sim_server.h"

namespace leaf::sim {

/// Runs tasks in the order posted, a little late. Confined.
class SimExecutor final : public Executor {
 public:
  SimExecutor(World& world, SimRandom random, int server, Duration late)
      : world_(world), random_(random), server_(server), late_(late) {}
  void Post(Task& task) noexcept override {
    tasks_.push_back(&task);
    world_.After(random_.Between(Duration{}, late_), server_, [this] {
      Task* next = tasks_.front();
      tasks_.pop_front();
      next->Run();
    });
  }

 private:
  World& world_;
  SimRandom random_;
  int server_;
  Duration late_;
  std::deque<Task*> tasks_;
};

/// One life of a server: a real Engine, what it is given, and the requests it has.
class Process final : public PortObserver {
 public:
  Process(SimServer& server, SimRandom random);
  ~Process();

  void Begin();
  void Take(const Wish& wish);
  void Stop();
  void Paused(Instant until) { resumed_ = until; }
  bool stopping() const noexcept { return stopping_; }
  Engine& engine() noexcept { return *engine_; }
  std::size_t open_requests() const noexcept { return requests_.size(); }
  std::unique_ptr<StorePort> TakePort() { return std::move(port_); }
  /// What a crash now would lose, against what it may.
  void CheckLoss();
  /// Flights of the tag count no more: an operator dropped it, or another flight began.
  void GivesUp(int tag);
  /// Cuts the process off from the world, as its death does.
  void Die();

  void OnAsk(const Ask& ask) override;
  void Deliver(GrantSink& sink, const Grant& grant) override;

 private:
  class Request;
  struct Flying {
    int tag;
    std::int64_t count;
    std::uint64_t order;
    Instant deadline;
    bool for_all;  // covers all who were parked when it was asked for
    bool given_up;
  };
  struct Served {  // a parked request
    std::uint64_t order;
    std::int64_t count;
    bool one_piece;
    std::int64_t first;
  };
  struct PerTag {
    std::int64_t accepted = 0;  // ids of grants that the engine took
    std::int64_t issued = 0;
    std::uint64_t store_id = 0;  // of the last grant
    std::int64_t largest_parked = 0;
    std::deque<Served> served;  // the last ones
  };
  // What a clean stop owes for a tag: the row goes down from `top` to `floor`.
  struct Owed {
    int tag;
    std::int64_t top, floor;
    std::uint64_t version;
  };

  PerTag& Of(int tag) { return per_tag_[static_cast<std::size_t>(tag)]; }
  Instant HealthySince(int tag) const;
  void ScheduleTick(Instant at);
  void Tick();
  void FlushJournal();
  void Ended(Request& request);
  void Took(Request& request, const Ranges& ids);
  void Refused(Request& request, const Error& error);
  void CheckPresence(const Request& request);
  void CheckQueueOrder(const Request& request, const Ranges& ids);
  void CheckNobodyPassedOver(const Flying& flying);
  void WatchDeadline(std::uint64_t id, Instant due);
  void Leave(std::uint64_t id);
  void Forget(std::uint64_t id);
  std::vector<Owed> WhatStopOwes();
  void Stopped(const std::vector<Owed>& owed, Instant began);
  void CheckAccounts();

  SimServer& server_;
  World& world_;
  StoreModel& store_;
  Checker& checker_;
  const ServerSetup& setup_;
  SimRandom random_;
  int index_;
  SimClock clock_;
  SimRandom engine_random_;
  std::unique_ptr<RefillPolicy> policy_;
  std::unique_ptr<StorePort> port_;
  std::vector<std::unique_ptr<SimExecutor>> homes_;
  std::map<std::uint64_t, std::unique_ptr<Request>> requests_;
  std::vector<PerTag> per_tag_;
  std::map<Flight, Flying> flying_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<bool> online_;

  Instant started_{};
  Instant resumed_{};
  bool stopping_ = false;
  bool dead_ = false;
  std::uint64_t order_ = 0;  // of parking and of asks
  std::uint64_t next_request_ = 0;
  Instant tick_at_ = kNever;
  std::uint64_t tick_number_ = 0;
  int idle_ticks_ = 0;
};

}  // namespace leaf::sim
