#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "frontend/event_sink.h"
#include "frontend/reactor.h"
#include "frontend/socket.h"
#include "leaf/result.h"

namespace leaf {

/// Accepts on all listening sockets and hands each connection to the reactor that has the fewest.
/// Hashing in the kernel (SO_REUSEPORT) would leave some reactors idle and load others threefold.
/// Confined to the first reactor's thread unless it says [any].
class Acceptor {
 public:
  struct Limits {
    int max_connections = 10000;     ///< over it a connection gets a 503
    int max_connections_per_ip = 0;  ///< 0: off
  };
  /// `reactors` outlive it; the first one is its own.
  Acceptor(Limits limits, std::vector<Reactor*> reactors);
  ~Acceptor();

  /// Before Start. kInvalidArgument or kUnavailable.
  Result<void> Listen(const std::vector<std::string>& addresses);
  const std::vector<std::string>& addresses() const noexcept { return addresses_; }

  void Start();
  /// Once a turn; returns when it wants to be called at the latest.
  Instant Turn();
  /// Takes what waits in the backlog, then listens no more.
  void Close();

  void Drain() noexcept {
    drain_.store(true, std::memory_order_release);
  }  ///< [any] before the reactor's Drain
  bool listening() const noexcept { return listening_.load(std::memory_order_acquire); }  ///< [any]
  void Closed(const Peer& peer);  ///< [any] a connection has ended

 private:
  struct Listener final : EventSink {
    Listener(Acceptor& acceptor, ListenSocket listening)
        : owner(acceptor), socket(std::move(listening)) {}
    void OnEvents(std::uint32_t) override { owner.AcceptFrom(*this, kBurst); }
    Acceptor& owner;
    ListenSocket socket;
  };
  static constexpr int kBurst = 64;  ///< accepted in one turn

  void AcceptFrom(Listener& listener, int most);
  void Place(Fd fd, const Peer& peer);
  void Refuse(Fd fd, const Peer& peer, std::string_view reason);
  void OutOfFiles(Listener& listener, int error);
  void Pause();
  Reactor& LeastLoaded(int& total) const;
  bool CountIp(const Peer& peer);
  Reactor& own() const noexcept { return *reactors_.front(); }

  const Limits limits_;
  const std::vector<Reactor*> reactors_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::string> addresses_;
  Fd spare_;  ///< given up for a moment when there are no files left
  Instant resume_ = kNever, next_warning_ = Instant::min();
  std::atomic<bool> drain_{false}, listening_{false};

  Mutex mu_;
  std::map<std::array<std::uint8_t, 16>, int> by_ip_ GUARDED_BY(mu_);
};

}  // namespace leaf
