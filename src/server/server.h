#pragma once

#include <memory>

#include "config/config.h"
#include "leaf/result.h"

namespace leaf {

/// A whole leafd: state folder, store, engine, listeners and their threads, put together from a
/// Config. Confined to one thread, the control thread, which also runs the engine's timers.
class Server {
 public:
  /// Opens the state folder and the listeners; the store may be away. Errors are about what is
  /// leafd's own: folder, journal, addresses. SIGTERM, SIGINT, SIGHUP and SIGPIPE must be blocked
  /// or ignored.
  static Result<std::unique_ptr<Server>> Start(Config config);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Serves until SIGTERM, SIGINT or SIGHUP, then drains: readiness off, server.drain_delay,
  /// listeners closed, answers under way, tails handed back. A second signal ends the process at
  /// once.
  void Run();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leaf
