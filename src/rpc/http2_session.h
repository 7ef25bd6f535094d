#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "leaf/result.h"
#include "rpc/grpc.h"

struct nghttp2_session;

namespace leaf::rpc {

/// The client's side of HTTP/2 as gRPC uses it: bytes in, bytes out, no socket and no time.
/// Confined to one thread.
class Http2Session {
 public:
  /// One call on its way. Lives until the session forgets it.
  struct Exchange {
    std::string frame;       ///< the request's message with its five bytes
    std::size_t offset = 0;  ///< of it, already taken for the wire
    bool whole = false;      ///< all of it was: from now on the server may work on it
    bool closed = false;
    bool refused = false;  ///< the server has not worked on it, by HTTP/2's word
    std::int32_t stream = -1;
    std::uint32_t reset = 0;  ///< HTTP/2's error code
    std::string fault;        ///< why the rest of the answer was not wanted
    int http_status = 0;
    std::string content_type, message, body;
    std::optional<std::string> status;
  };

  explicit Http2Session(std::size_t max_message);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  /// Bytes for the network; "" if there are none at the moment. The view holds until the next call.
  Result<std::string_view> Produce();
  Result<void> Consume(std::string_view bytes);

  /// `timeout_us` is told to the server as the call's grpc-timeout.
  Result<Exchange*> Begin(const GrpcCall& call, std::string_view authority, bool encrypted,
                          std::int64_t timeout_us);
  /// Tells the server that the answer is not wanted any more.
  void Cancel(Exchange& exchange);
  /// REQUIRES: every exchange is closed, or the session is used no more.
  void Forget() { exchanges_.clear(); }

  /// What an exchange that has closed, or will never (`why`), means.
  static GrpcReply Conclude(const Exchange& exchange, const std::string& why);

  void SendPing();
  void SendGoodbye();
  bool ping_answered() const noexcept { return pings_answered_ == pings_sent_; }
  bool greeted() const noexcept { return greeted_; }
  /// The server will take no more calls on this connection.
  bool going_away() const noexcept { return going_away_; }
  /// Neither side has anything to say any more.
  bool over() const noexcept;
  const std::string& farewell() const noexcept { return farewell_; }

 private:
  struct Callbacks;

  const std::size_t max_message_;
  nghttp2_session* session_ = nullptr;
  std::deque<Exchange> exchanges_;  ///< its elements stay where they are
  bool greeted_ = false, going_away_ = false;
  std::uint64_t pings_sent_ = 0, pings_answered_ = 0;
  std::string farewell_;
};

}  // namespace leaf::rpc
