#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/time.h"
#include "frontend/connection.h"
#include "frontend/event_sink.h"
#include "frontend/inbox.h"
#include "frontend/lane.h"
#include "frontend/reactor_state.h"
#include "frontend/socket.h"

namespace leaf {

/// One event loop on one thread: an epoll set, the connections it was handed, their deadlines, and
/// tasks that other threads post. Everything is confined to the thread in Run unless it says [any].
class Reactor final : public Executor {
 public:
  struct Timeouts {
    Duration header =
        std::chrono::seconds(5);  ///< for a whole head; also the window of the minimum progress
    Duration idle = std::chrono::seconds(60);
  };
  using MakeLanes = std::function<std::unique_ptr<Lanes>(ReactorState&)>;
  /// Called with a counted connection that has ended.
  using OnClosed = std::function<void(const Peer&)>;

  /// `engine` may be nullptr; it and `clock` outlive the reactor.
  Reactor(const Clock& clock, Engine* engine, Timeouts timeouts, const MakeLanes& make_lanes,
          OnClosed on_closed);
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  /// Whether the kernel gave it what it needs; else the constructor's errno is in the message.
  Result<void> Ready() const;

  /// Runs until Stop, then ends every connection. Once. `each_turn` is called once a turn, its
  /// result is when it wants to be called at the latest.
  void Run(const std::function<Instant()>& each_turn);

  void Post(Task& task) noexcept override;  ///< [any]
  void Wake() noexcept;                     ///< [any]
  void Drain() noexcept;                    ///< [any] from now on each answer ends its connection
  void Stop() noexcept;                     ///< [any]

  /// [any] Connections it has or was promised. The acceptor counts them up.
  std::atomic<int>& load() noexcept { return load_; }
  const RequestStats& stats() const noexcept { return state_.stats; }  ///< [any]

  /// Registers `sink` for `events` of `fd`; an errno or 0.
  int Watch(int fd, std::uint32_t events, EventSink& sink) noexcept;
  void Unwatch(int fd) noexcept;

  ReactorState& state() noexcept { return state_; }
  const Timeouts& timeouts() const noexcept { return timeouts_; }
  Lanes& lanes() noexcept { return *lanes_; }
  /// Where a read goes and where its answers gather. They belong to whoever takes its turn.
  std::span<char> buffer() noexcept { return buffer_; }
  std::string& out() noexcept { return out_; }

  /// Takes over a connection that was posted.
  void Adopt(Connection& connection);
  /// The connection takes another turn, in the next round of the loop.
  void Again(Connection& connection) noexcept;
  /// The connection has closed; it is deleted at the end of the turn.
  void Forget(Connection& connection) noexcept;

  std::size_t lingering_refusals() const noexcept { return refusals_; }

 private:
  int TimeoutMs(Instant wanted) const noexcept;
  void ReadTime() noexcept;
  void Wait(int timeout_ms);
  void RunAgain();
  void RunInbox();
  void CheckDeadlines();
  void StartDrain();
  void Reap() noexcept;
  void EndConnections();

  const Clock& clock_;
  const Timeouts timeouts_;
  const OnClosed on_closed_;
  const Duration sweep_;  ///< how often deadlines are looked at
  Fd epoll_, wake_;
  int error_ = 0;
  Inbox inbox_;
  std::atomic<int> load_{0};
  std::atomic<bool> drain_{false}, stop_{false};

  ReactorState state_;
  std::unique_ptr<Lanes> lanes_;
  std::unique_ptr<Reader> reader_;
  std::vector<char> buffer_;
  std::string out_;
  Connection* first_ = nullptr;  ///< all open connections
  Connection* dead_ = nullptr;   ///< closed ones, linked by next_
  std::vector<Connection*> again_, again_now_;
  std::size_t refusals_ = 0;
  Instant next_sweep_ = kNever, next_date_ = Instant::min();
};

}  // namespace leaf
