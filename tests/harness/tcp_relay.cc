#include "harness/tcp_relay.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <vector>

#include "harness/child_process.h"

namespace leaf::harness {
namespace {

constexpr int kTick = 2;  // ms between looks at the switches

sockaddr_in Loopback(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

void ResetSocket(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

}  // namespace

TcpRelay::TcpRelay(int to) : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), to_(to) {
  sockaddr_in at = Loopback(0);
  socklen_t size = sizeof at;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 || listen(listener_, 64) != 0)
    GiveUp("no port for a relay");
  getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
  port_ = ntohs(at.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { Accept(stop); });
}

TcpRelay::~TcpRelay() {
  thread_.request_stop();
  thread_.join();
  close(listener_);
}

std::shared_ptr<void> TcpRelay::Hold() {
  held_ = true;
  return {this, [](TcpRelay* self) {
            self->Reset();
            self->held_ = false;
          }};
}

void TcpRelay::Reset() {
  ++resets_;
  while (open_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void TcpRelay::Accept(const std::stop_token& stop) {
  std::vector<std::jthread> pumps;
  while (!stop.stop_requested()) {
    pollfd at{listener_, POLLIN, 0};
    if (held_ || poll(&at, 1, kTick) <= 0) {
      if (held_) std::this_thread::sleep_for(std::chrono::milliseconds(kTick));
      continue;
    }
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in to = Loopback(to_);
    if (client < 0) continue;
    if (connect(server, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      ResetSocket(client);  // the server is away, and so it looks from the other side
      close(server);
      continue;
    }
    ++accepted_;
    ++open_;
    pumps.emplace_back([this, client, server, stop] { Pump(client, server, stop); });
  }
}

void TcpRelay::Pump(int client, int server, const std::stop_token& stop) {
  const int resets = resets_;
  std::array<char, 65536> bytes;
  bool alive = true;
  while (alive && !stop.stop_requested() && resets == resets_) {
    if (held_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kTick));
      continue;
    }
    std::array<pollfd, 2> fds{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), kTick) <= 0 || held_) continue;
    for (std::size_t i = 0; i < 2 && alive; ++i) {
      if (fds[i].revents == 0) continue;
      const int drip = i == 1 ? drip_.load() : 0;
      const ssize_t got = recv(fds[i].fd, bytes.data(), drip > 0 ? 1 : bytes.size(), 0);
      alive = got > 0;
      if (!alive || (i == 1 && drop_answers_)) continue;
      const int to = i == 0 ? server : client;
      alive = send(to, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
      if (i == 0) passed_ += got;
      if (drip > 0) std::this_thread::sleep_for(std::chrono::milliseconds(drip));
    }
  }
  ResetSocket(client);
  ResetSocket(server);
  --open_;
}

}  // namespace leaf::harness
