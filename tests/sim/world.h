#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/time.h"
#include "trace.h"

namespace leaf::sim {

inline constexpr int kWorld = -1;  ///< the "server" of events that no server's life touches

/// Virtual time and everything that is going to happen in it. Events of one instant happen in the
/// order in which they were planned. Events of a server are dropped when it has died since, and put
/// off while it is paused. Confined.
class World {
 public:
  using Action = std::function<void()>;

  explicit World(int servers) : lives_(static_cast<std::size_t>(servers)) {}

  Instant now() const noexcept { return now_; }
  Trace& trace() noexcept { return trace_; }
  void Note(What what, int server, int tag, std::int64_t a = 0, std::int64_t b = 0) {
    trace_.Add({now_, what, server, tag, a, b});
  }

  /// `at` in the past means now.
  void At(Instant at, int server, Action action);
  void After(Duration delay, int server, Action action) {
    At(now_ + delay, server, std::move(action));
  }

  void EndLife(int server) { ++Life(server).number; }
  void Pause(int server, Instant until) { Life(server).paused_until = until; }
  Instant paused_until(int server) const {
    return lives_[static_cast<std::size_t>(server)].paused_until;
  }

  /// Runs what is planned up to `end`, and moves the time there.
  void RunUntil(Instant end);
  std::uint64_t events() const noexcept { return events_; }

 private:
  struct ServerLife {
    std::uint64_t number = 0;
    Instant paused_until{};
  };
  struct Event {
    Instant at;
    std::uint64_t order;
    int server;
    std::uint64_t life;
    Action action;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const noexcept {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  ServerLife& Life(int server) { return lives_[static_cast<std::size_t>(server)]; }

  Instant now_{};
  std::uint64_t order_ = 0;
  std::uint64_t events_ = 0;
  std::vector<ServerLife> lives_;
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  Trace trace_;
};

/// A server's clock: its monotonic origin is its own. Confined, though Now is const.
class SimClock final : public Clock {
 public:
  SimClock(const World& world, Duration origin) : world_(world), origin_(origin) {}
  Instant Now() const noexcept override { return world_.now() + origin_; }
  std::int64_t WallMillis() const noexcept override {
    return 1'700'000'000'000 + world_.now().time_since_epoch().count() / 1'000'000;
  }
  Duration origin() const noexcept { return origin_; }

 private:
  const World& world_;
  Duration origin_;
};

}  // namespace leaf::sim
