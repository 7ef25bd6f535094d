#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/host_lookup.h"
#include "base/time.h"
#include "leaf/result.h"
#include "rpc/tls.h"

struct addrinfo;

namespace leaf::rpc {

/// A TCP connection, inside TLS or not, whose only place to wait is Wait: nothing but the look-up
/// of a host name lasts longer than its deadline. Errors are kUnavailable. Confined to one thread
/// at a time, save Interrupt.
class ByteStream {
 public:
  explicit ByteStream(Clock& clock);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Looks the name up anew and tries its addresses in turn, each for its share of the time; then
  /// the handshake, if `tls` is given, which must agree on HTTP/2. REQUIRES: !open().
  Result<void> Connect(const HostPort& endpoint, const TlsContext* tls, Instant deadline);
  bool open() const noexcept { return fd_ >= 0; }
  /// Ends the connection at once.
  void Cut() noexcept;

  /// Takes bytes that Flush will send.
  void Queue(std::string_view bytes);
  /// Sends as much as the network takes at the moment.
  Result<void> Flush();
  bool flushed() const noexcept { return out_.empty(); }
  /// What has come, at most a buffer's worth; 0: nothing at the moment. An error also for the end.
  Result<std::size_t> Read(std::span<char> to);

  enum class Wake { kReady, kDeadline, kInterrupted };
  /// Until there is something to read, or room for what Flush left behind. Without a connection:
  /// until the deadline.
  Wake Wait(Instant deadline);

  /// Any thread; never blocks. A Wait under way ends, or the next one.
  void Interrupt() noexcept;
  /// Takes back an interrupt that came between calls; whether there was one.
  bool TakeInterrupt() noexcept;

  Instant Now() const noexcept { return clock_.Now(); }

 private:
  struct FreeSsl {
    void operator()(ssl_st* ssl) const noexcept;
  };

  Result<void> ConnectTo(const addrinfo& address, Instant deadline);
  Result<void> Handshake(const std::string& host, const TlsContext& tls, Instant deadline);
  Result<std::size_t> Receive(std::span<char> to);
  Result<bool> Decrypt();
  void TakeEncrypted();

  Clock& clock_;
  const int event_fd_;
  int fd_ = -1;
  std::unique_ptr<ssl_st, FreeSsl> ssl_;
  std::string out_;  ///< as it goes to the network
};

}  // namespace leaf::rpc
