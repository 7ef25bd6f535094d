#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "frontend/frontend.h"

namespace leaf::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Looks until `condition` holds, for ten seconds at most.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

struct Answer {
  int status = 0;  ///< 0: the connection ended, or ten seconds passed, before a whole answer
  std::string head, body;
  bool Has(std::string_view line) const {
    return head.find(std::string(line) + "\r\n") != std::string::npos;
  }
};

/// A blocking client that gives up after ten seconds.
class Client {
 public:
  /// "127.0.0.1:PORT" or "unix:/path".
  explicit Client(const std::string& address, int buffers = 0) {
    const bool local = address.starts_with("unix:");
    fd_ = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (buffers > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &buffers, sizeof buffers);
      setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &buffers, sizeof buffers);
    }
    if (local) {
      sockaddr_un to{};
      to.sun_family = AF_UNIX;
      std::strncpy(to.sun_path, address.c_str() + 5, sizeof to.sun_path - 1);
      connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    } else {
      const std::size_t colon = address.rfind(':');
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
      inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
      const int on = 1;
      setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    }
  }
  ~Client() { Close(); }
  Client(Client&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        connected_(other.connected_),
        received_(std::move(other.received_)) {}
  Client& operator=(Client&&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void HalfClose() { shutdown(fd_, SHUT_WR); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  Answer Read(bool head_only = false) {
    Answer answer;
    std::size_t end;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive()) return answer;
    }
    const std::string head = received_.substr(0, end + 2);
    received_.erase(0, end + 4);
    std::size_t length = 0;
    if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos)
      length = std::stoul(head.substr(at + 16));
    if (head_only) length = 0;
    while (received_.size() < length) {
      if (!Receive()) return answer;
    }
    answer.status = std::stoi(head.substr(9, 3));
    answer.head = head;
    answer.body = received_.substr(0, length);
    received_.erase(0, length);
    return answer;
  }
  Answer Get(const std::string& target) {
    Send("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return Read();
  }
  /// Whether the server closes, without any more bytes.
  bool Ended() { return received_.empty() && !Receive(); }
  /// The bytes that one read gives.
  std::string ReadOnce() {
    received_.clear();
    Receive();
    return std::exchange(received_, {});
  }

 private:
  bool Receive() {
    char buffer[65536];
    const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    timed_out_ = got < 0 && errno == EAGAIN;
    EXPECT_FALSE(timed_out_) << "the server neither answered nor closed";
    if (got <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  int fd_ = -1;
  bool connected_ = false, timed_out_ = false;
  std::string received_;
};

/// Answers /later when the test says so, /big with 200,000 bytes, /silent not at all, and echoes
/// the method, path and body of anything else.
class EchoService final : public http1::Service {
 public:
  bool Handle(http1::Exchange& exchange) override {
    const http1::Request& request = exchange.request();
    if (request.path == "/later") {
      const MutexLock lock(mu_);
      later_.push_back(exchange.Defer());
      return true;
    }
    if (request.path == "/silent") return true;
    http1::Response response;
    response.content_type = "text/plain";
    response.body = request.path == "/big"
                        ? std::string(200'000, 'x')
                        : std::string(request.method_text) + " " + std::string(request.path) + " " +
                              std::string(request.body);
    if (request.path == "/local") response.body = exchange.peer_is_local() ? "local" : "remote";
    exchange.Reply(std::move(response));
    return true;
  }

  std::size_t waiting() {
    const MutexLock lock(mu_);
    return later_.size();
  }
  std::shared_ptr<http1::Later> TakeLater() {
    EXPECT_TRUE(Eventually([this] { return waiting() > 0; }));
    const MutexLock lock(mu_);
    std::shared_ptr<http1::Later> later = later_.front();
    later_.erase(later_.begin());
    return later;
  }

 private:
  Mutex mu_;
  std::vector<std::shared_ptr<http1::Later>> later_ GUARDED_BY(mu_);
};

/// A Frontend with its threads.
class Running {
 public:
  Running(Frontend::Options options, IdsHandler* ids, std::vector<http1::Service*> services,
          Engine* engine = nullptr)
      : frontend_(std::make_unique<Frontend>(std::move(options), ids, std::move(services), engine,
                                             SystemClock())) {
    const Result<void> listening = frontend_->Listen();
    EXPECT_TRUE(listening.ok()) << (listening.ok() ? "" : listening.error().message);
    for (int i = 0; i < frontend_->reactors(); ++i) {
      threads_.emplace_back([this, i] { frontend_->Run(i); });
    }
  }
  ~Running() { Stop(); }

  void Stop() {
    frontend_->Stop();
    threads_.clear();
  }
  Frontend& frontend() { return *frontend_; }
  const std::string& address() const { return frontend_->addresses().front(); }
  Client Connect() const { return Client(address()); }
  /// Sum over the reactors.
  std::uint64_t refused() const {
    std::uint64_t sum = 0;
    for (int i = 0; i < frontend_->reactors(); ++i) sum += frontend_->stats(i).refused();
    return sum;
  }

 private:
  std::unique_ptr<Frontend> frontend_;
  std::vector<std::jthread> threads_;
};

inline Frontend::Options Loopback(int reactors = 1) {
  Frontend::Options options;
  options.listen = {"127.0.0.1:0"};
  options.reactors = reactors;
  return options;
}

}  // namespace leaf::test
