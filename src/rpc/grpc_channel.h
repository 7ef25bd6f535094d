#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/host_lookup.h"
#include "base/time.h"
#include "leaf/result.h"
#include "rpc/grpc.h"
#include "rpc/grpc_connection.h"
#include "rpc/tls.h"

namespace leaf::rpc {

/// A connection with one of several servers that are equally good. Confined to one thread at a
/// time, save Interrupt.
class GrpcChannel {
 public:
  struct Options {
    std::vector<HostPort> endpoints;     ///< at least one
    std::size_t max_message = 16 << 20;  ///< bytes of an answer
  };

  /// `clock` outlives the channel.
  GrpcChannel(Options options, Clock& clock);

  /// For connections from now on; nullptr: none.
  void SetTls(std::shared_ptr<const TlsContext> tls) { tls_ = std::move(tls); }
  bool encrypted() const noexcept { return tls_ != nullptr; }

  /// What a caller thinks of a server that it has looked at.
  struct Verdict {
    enum class Kind { kUsable, kNext, kStop };  ///< kStop: the others will be no better
    Kind kind = Kind::kUsable;
    Error error;  ///< unless usable
  };
  /// Looks at the server just connected with, by calls of this channel.
  using Examine = std::function<Verdict(Instant deadline)>;

  /// Connects with the first usable server, beginning with the one used last (or the one after it,
  /// see Leave); each gets its share of the time. kUnavailable says what each of them lacked; a
  /// verdict of kStop is returned as it is. REQUIRES: !connected().
  Result<void> Open(Instant deadline, const Examine& examine);

  bool connected() const noexcept { return connection_.connected(); }
  void Close() noexcept { connection_.Close(); }
  /// Ends the connection; the next Open begins with another server.
  void Leave() noexcept;
  const HostPort& endpoint() const noexcept { return options_.endpoints[at_]; }

  /// As of GrpcConnection.
  void Run(std::span<const GrpcCall> calls, std::span<GrpcReply> replies) {
    connection_.Run(calls, replies);
  }
  bool Stale() noexcept { return connection_.Stale(); }
  Result<void> Ping(Instant deadline) { return connection_.Ping(deadline); }
  bool Pause(Duration duration) { return connection_.Pause(duration); }
  void Interrupt() noexcept { connection_.Interrupt(); }

 private:
  Verdict Try(std::size_t left, Instant deadline, const Examine& examine);

  const Options options_;
  Clock& clock_;
  GrpcConnection connection_;
  std::shared_ptr<const TlsContext> tls_;
  std::size_t at_ = 0;
};

}  // namespace leaf::rpc
