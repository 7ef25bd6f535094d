#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leaf/result.h"

namespace leaf {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  ~Fd() { Reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int Release() noexcept { return std::exchange(fd_, -1); }
  void Reset() noexcept;

 private:
  int fd_ = -1;
};

/// Who is at the other end.
struct Peer {
  bool local = true;  ///< loopback or a unix socket
  bool has_ip = false;
  /// What connections are counted by: an IPv4 address as IPv6, or the /64 of an IPv6 address.
  std::array<std::uint8_t, 16> ip{};
};

/// A bound, listening, non-blocking socket.
struct ListenSocket {
  Fd fd;
  std::string address;    ///< as resolved: "127.0.0.1:8080", "[::1]:8080", "unix:/path"
  std::string unix_path;  ///< to be unlinked at the end; empty for TCP
};

/// Listens on HOST:PORT, [V6]:PORT (V6 only) or unix:/path; a host name may give several sockets,
/// an empty host or "*" means every IPv4 address. A unix socket that nobody listens on is replaced.
/// kInvalidArgument: not such an address; kUnavailable: it cannot be had, with the system's words.
Result<std::vector<ListenSocket>> ListenOn(const std::string& address);

/// Accepts one connection, non-blocking, without Nagle's delay. The result is an errno or 0.
int Accept(int listen_fd, Fd& connection, Peer& peer) noexcept;

}  // namespace leaf
