#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace leaf {

/// What a connection does after its lane has looked at some bytes.
enum class LaneNext : std::uint8_t {
  kRead,   ///< it needs more bytes than there are
  kWait,   ///< a request waits; no bytes until LaneHost::Resume
  kYield,  ///< it has written much; send that before it goes on with the rest
  kClose,  ///< send what it has written, then close
};

struct LaneProgress {
  std::size_t consumed = 0;  ///< bytes that it will not look at again
  LaneNext next = LaneNext::kRead;
};

/// What a lane may ask of its connection. Confined to the reactor.
class LaneHost {
 public:
  /// The request that waited can be answered: Lane::Resume is called soon, not from here.
  virtual void Resume() noexcept = 0;
  /// Whether the peer is of this host (loopback, or a unix socket).
  virtual bool peer_is_local() const noexcept = 0;

 protected:
  ~LaneHost() = default;
};

/// One protocol spoken on one connection: from bytes to bytes, no sockets. Confined to the reactor.
/// Its destructor takes back what waits.
class Lane {
 public:
  virtual ~Lane() = default;
  /// `data` begins with the first byte not consumed yet; it is the lane's to change until it
  /// returns. Answers are appended to `out`.
  virtual LaneProgress Read(char* data, std::size_t size, std::string& out) = 0;
  /// Answers the request that waited; never kRead before that is done.
  virtual LaneNext Resume(std::string& out) = 0;
  /// Whether the bytes handed in last end inside a request's body rather than its head.
  virtual bool in_body() const noexcept = 0;
  /// The client took too long over a request: says so in `out`, if the protocol can.
  virtual void TimedOut(std::string& out) = 0;
  /// The client has closed its direction while a request waits: a chance to write something that
  /// shows whether it has left altogether.
  virtual void HalfClosed(std::string& out) = 0;
};

/// The lanes of one reactor. The first bytes of a connection decide once which it gets: all are
/// HTTP/1 so far; RESP (`*`) and the HTTP/2 preface (`PRI * HTTP/2.0`) join in Open.
class Lanes {
 public:
  virtual ~Lanes() = default;
  virtual std::unique_ptr<Lane> Open(std::string_view first_bytes, LaneHost& host) = 0;
  /// The bytes that refuse a connection for `reason`, before it said what it speaks.
  virtual std::string Refusal(std::string_view reason) = 0;
  /// Requests that wait somewhere and still refer to this reactor.
  virtual int waiting() const noexcept = 0;
};

}  // namespace leaf
