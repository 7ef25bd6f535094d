#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/host_lookup.h"
#include "base/time.h"
#include "leaf/result.h"
#include "rpc/byte_stream.h"
#include "rpc/grpc.h"
#include "rpc/tls.h"

namespace leaf::rpc {

class Http2Session;

/// Calls over one HTTP/2 connection, in which nothing outlasts its deadline (save the look-up of a
/// host name). It never reconnects and never repeats a call by itself. Errors are kUnavailable.
///
/// Confined to one thread at a time, save Interrupt.
class GrpcConnection {
 public:
  /// An answer larger than `max_message` is given up. `clock` outlives the connection.
  GrpcConnection(Clock& clock, std::size_t max_message);
  ~GrpcConnection();
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  /// Up to the server's first word of HTTP/2. `tls` may be nullptr. REQUIRES: !connected().
  Result<void> Connect(const HostPort& endpoint, const TlsContext* tls, Instant deadline);
  bool connected() const noexcept { return session_ != nullptr; }
  /// Takes leave if that needs no waiting, and ends the connection. May be called at any time.
  void Close() noexcept;

  /// Makes all calls at once and waits for their answers; replies[i] belongs to calls[i]. A call
  /// whose deadline has passed is not sent. The connection has ended afterwards if a call that was
  /// sent got no answer. Not connected, no call is sent. REQUIRES: equal sizes.
  void Run(std::span<const GrpcCall> calls, std::span<GrpcReply> replies);

  /// Takes what came meanwhile; whether the connection was ended by that or by Interrupt, or the
  /// server is about to end it. Does not wait.
  bool Stale() noexcept;
  /// Asks the server for a sign of life. On an error the connection has ended.
  Result<void> Ping(Instant deadline);
  /// Waits, also without a connection. False: interrupted.
  bool Pause(Duration duration) {
    return stream_.Wait(stream_.Now() + duration) != ByteStream::Wake::kInterrupted;
  }

  /// Any thread; never blocks. What waits at the moment, or else waits next, ends, and the
  /// connection with it.
  void Interrupt() noexcept { stream_.Interrupt(); }

 private:
  /// Sends and takes what can be without waiting.
  Result<void> Turn();
  Result<void> Send();
  template <typename Done>
  Result<void> TurnUntil(Done done, Instant deadline);
  struct Flight;
  void Begin(const GrpcCall& call, Flight& flight, std::string& why);
  std::string Await(std::span<Flight> flights);

  const std::size_t max_message_;
  ByteStream stream_;
  std::unique_ptr<Http2Session> session_;
  std::string authority_;
  bool encrypted_ = false;
  bool unread_ = false;  ///< there may be more to read without waiting
};

}  // namespace leaf::rpc
