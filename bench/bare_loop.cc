// The floor that leafd is measured against: one thread, one epoll set, one read and one write for
// all requests of a read, a constant answer. It parses nothing: each empty line ends a request.
// Usage: bare_loop PORT

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: "
    "text/plain;charset=UTF-8\r\n"
    "Content-Length: 7\r\nCache-Control: no-store\r\n\r\n1234567";
constexpr std::string_view kEnd = "\r\n\r\n";

int Listen(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 1024) != 0) {
    std::perror("bare_loop: listen");
    std::exit(1);
  }
  return fd;
}

void Add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

void AcceptAll(int epoll, int listener) {
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Add(epoll, fd);
  }
}

void Serve(int fd, std::string& out) {
  static std::array<char, 16384> buffer;
  const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
  if (got <= 0) {
    close(fd);
    return;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  out.clear();
  for (std::size_t at = bytes.find(kEnd); at != std::string_view::npos;
       at = bytes.find(kEnd, at + kEnd.size()))
    out += kAnswer;
  if (send(fd, out.data(), out.size(), MSG_NOSIGNAL) < 0) close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: bare_loop PORT\n", stderr);
    return 2;
  }
  const int listener = Listen(static_cast<std::uint16_t>(std::atoi(argv[1])));
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  Add(epoll, listener);
  std::array<epoll_event, 256> events;
  std::string out;
  out.reserve(128 * 1024);
  for (;;) {
    const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener) {
        AcceptAll(epoll, listener);
      } else {
        Serve(fd, out);
      }
    }
  }
}
