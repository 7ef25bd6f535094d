#pragma once

#include <memory>

#include "codec/http1/message.h"

namespace leaf::http1 {

/// An answer promised for later. Reply may be called once, from any thread, and does nothing when
/// the client has left; destroyed without it, the client gets a 500.
class Later {
 public:
  virtual ~Later() = default;
  virtual void Reply(Response response) = 0;
};

/// One request being answered. Confined to the reactor of its connection, ends with Handle.
class Exchange {
 public:
  virtual const Request& request() const noexcept = 0;
  /// Whether the peer's address is of this host (loopback, or a unix socket).
  virtual bool peer_is_local() const noexcept = 0;
  /// Answers now. Exactly one of Reply and Defer, once.
  virtual void Reply(Response response) = 0;
  /// Answers later; requests behind it on the connection wait.
  virtual std::shared_ptr<Later> Defer() = 0;

 protected:
  ~Exchange() = default;
};

/// Answers requests off the hot path (admin API, pages). Thread-safe.
class Service {
 public:
  virtual ~Service() = default;
  /// False: not its path; nothing was answered.
  virtual bool Handle(Exchange& exchange) = 0;
};

}  // namespace leaf::http1
