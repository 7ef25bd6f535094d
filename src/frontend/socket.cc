#include "frontend/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace leaf {
namespace {

constexpr int kBacklog = 4096;  // the kernel lowers it to net.core.somaxconn
constexpr std::string_view kUnix = "unix:";

Error CannotListen(const std::string& address, std::string_view why) {
  return {Code::kUnavailable, "cannot listen on " + address + ": " + std::string(why)};
}

Error CannotListen(const std::string& address, int error) {
  return CannotListen(address, std::system_category().message(error));
}

struct HostPort {
  std::string host, port;
};

Result<HostPort> SplitHostPort(const std::string& address) {
  const Error bad{Code::kInvalidArgument, "not an address to listen on: \"" + address +
                                              "\"; use HOST:PORT, [V6]:PORT or unix:/path"};
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return bad;
  HostPort split{address.substr(0, colon), address.substr(colon + 1)};
  const bool digits = !split.port.empty() && split.port.size() <= 5 &&
                      split.port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(split.port) > 65535) return bad;
  if (split.host.starts_with('[') && split.host.ends_with(']')) {
    split.host = split.host.substr(1, split.host.size() - 2);
    if (split.host.empty()) return bad;
  } else if (split.host.find(':') != std::string::npos) {
    return bad;
  }
  if (split.host.empty() || split.host == "*") split.host = "0.0.0.0";
  return split;
}

std::string AddressOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  auto* const any = reinterpret_cast<sockaddr*>(&storage);
  if (getsockname(fd, any, &size) != 0) return {};
  if (getnameinfo(any, size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  const std::string name =
      storage.ss_family == AF_INET6 ? "[" + std::string(host) + "]" : std::string(host);
  return name + ":" + port;
}

Result<ListenSocket> ListenTcp(const std::string& address, const addrinfo& info) {
  ListenSocket listening;
  listening.fd = Fd(socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = listening.fd.get();
  if (fd < 0) return CannotListen(address, errno);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (info.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(fd, info.ai_addr, info.ai_addrlen) != 0 || listen(fd, kBacklog) != 0)
    return CannotListen(address, errno);
  listening.address = AddressOf(fd);
  return listening;
}

Result<std::vector<ListenSocket>> ListenHost(const std::string& address) {
  LEAF_ASSIGN_OR_RETURN(const HostPort split, SplitHostPort(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(split.host.c_str(), split.port.c_str(), &hints, &found);
      error != 0) {
    return CannotListen(address, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<ListenSocket> sockets;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    Result<ListenSocket> listening = ListenTcp(address, *info);
    // A host without IPv6 still resolves "localhost" to ::1.
    const bool passed_over = !listening.ok() && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) &&
                             info->ai_next != nullptr;
    if (passed_over || (!listening.ok() && !sockets.empty() && errno != EADDRINUSE)) continue;
    if (!listening.ok()) return std::move(listening).error();
    sockets.push_back(std::move(*listening));
    if (split.port == "0") break;
  }
  return sockets;
}

bool Answers(const sockaddr_un& where) noexcept {
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* any = reinterpret_cast<const sockaddr*>(&where);
  return connect(probe.get(), any, sizeof where) == 0 || errno == EAGAIN;
}

Result<std::vector<ListenSocket>> ListenUnix(const std::string& address) {
  const std::string path = address.substr(kUnix.size());
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (path.empty() || path.front() != '/' || path.size() >= sizeof where.sun_path) {
    return Error{Code::kInvalidArgument, "not a path for a unix socket: \"" + address +
                                             "\"; it must be absolute and short"};
  }
  std::memcpy(where.sun_path, path.data(), path.size());
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode))
      return CannotListen(address, "a file that is no socket is there");
    if (Answers(where)) return CannotListen(address, EADDRINUSE);
    unlink(path.c_str());
  }
  ListenSocket listening;
  listening.fd = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = listening.fd.get();
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      listen(fd, kBacklog) != 0) {
    return CannotListen(address, errno);
  }
  listening.address = address;
  listening.unix_path = path;
  std::vector<ListenSocket> sockets;
  sockets.push_back(std::move(listening));
  return sockets;
}

Peer PeerOf(const sockaddr_storage& storage) noexcept {
  Peer peer;
  if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return peer;
  peer.has_ip = true;
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    peer.ip[10] = peer.ip[11] = 0xFF;
    std::memcpy(peer.ip.data() + 12, &v4.sin_addr, 4);
    peer.local = peer.ip[12] == 127;
    return peer;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  std::memcpy(peer.ip.data(), &v6, sizeof v6);
  peer.local = IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && peer.ip[12] == 127);
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) std::fill(peer.ip.begin() + 8, peer.ip.end(), std::uint8_t{0});
  return peer;
}

}  // namespace

void Fd::Reset() noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<std::vector<ListenSocket>> ListenOn(const std::string& address) {
  return address.starts_with(kUnix) ? ListenUnix(address) : ListenHost(address);
}

int Accept(int listen_fd, Fd& connection, Peer& peer) noexcept {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  connection = Fd(accept4(listen_fd, reinterpret_cast<sockaddr*>(&storage), &size,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!connection) return errno;
  peer = PeerOf(storage);
  const int on = 1;
  if (peer.has_ip) setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return 0;
}

}  // namespace leaf
