#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "codec/http1/message.h"
#include "codec/http1/service.h"
#include "core/request_stats.h"
#include "core/segment/engine.h"
#include "frontend/acceptor.h"
#include "frontend/ids_handler.h"
#include "frontend/reactor.h"
#include "leaf/result.h"

namespace leaf {

/// One set of listening sockets and the reactors that serve them. It creates no thread: the caller
/// runs each reactor on one of its own. Thread-safe, but for Listen, which comes first.
///
/// To end: Drain, wait for drained() as long as is wanted, Stop, join the threads, destroy. A
/// reactor's Run returns only when no waiting request of it is left in the engine, so the engine
/// must still live then.
class Frontend {
 public:
  struct Options {
    std::vector<std::string> listen;  ///< HOST:PORT, [V6]:PORT, unix:/path
    int reactors = 1;
    http1::Limits limits;
    int max_connections = 10000;     ///< over it a connection gets a 503 and is closed
    int max_connections_per_ip = 0;  ///< 0: off; an IPv6 /64 counts as one
    Duration header_timeout = std::chrono::seconds(5);
    Duration idle_timeout = std::chrono::seconds(60);
  };

  /// `ids` is nullptr on the admin listener, `engine` where there is no segment mode. `services`
  /// are asked in order; the last one answers everything. All of them outlive the Frontend.
  Frontend(Options options, IdsHandler* ids, std::vector<http1::Service*> services, Engine* engine,
           const Clock& clock);
  ~Frontend();

  /// Binds and listens; connections are accepted once reactor 0 runs. kInvalidArgument: not an
  /// address; kUnavailable: it cannot be had.
  Result<void> Listen();
  /// What it listens on, with the ports that were chosen for 0.
  const std::vector<std::string>& addresses() const noexcept { return acceptor_->addresses(); }

  /// Serves until Stop. Each reactor in [0, reactors()) once, on a thread of its own.
  void Run(int reactor);

  /// Accepts no more, closes idle connections and ends each other one with its next answer.
  void Drain() noexcept;
  /// After Drain: whether no connection is left.
  bool drained() const noexcept;
  /// Every Run returns soon; connections are cut.
  void Stop() noexcept;

  int reactors() const noexcept { return static_cast<int>(reactors_.size()); }
  const RequestStats& stats(int reactor) const noexcept {
    return reactors_[static_cast<std::size_t>(reactor)]->stats();
  }
  long connections() const noexcept;

 private:
  const Options options_;
  std::vector<std::unique_ptr<Reactor>> reactors_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace leaf
