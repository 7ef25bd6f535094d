#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace leaf::harness {

/// A relay on a free port of 127.0.0.1 before a server on another: the way between them, for tests
/// to break. Thread-safe.
class TcpRelay {
 public:
  explicit TcpRelay(int to);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  int port() const noexcept { return port_; }
  /// Where new connections go.
  void Retarget(int to) noexcept { to_ = to; }

  /// Until the result is destroyed no byte passes, in either direction, and both sides see a
  /// connection that lives; then every connection is reset, and what was under way is lost.
  std::shared_ptr<void> Hold();
  /// What the server says is swallowed, what it is told is not.
  void DropAnswers(bool on) noexcept { drop_answers_ = on; }
  /// What the server says comes a byte at a time, with `pause` between; 0: as usual.
  void Drip(std::chrono::milliseconds pause) noexcept { drip_ = static_cast<int>(pause.count()); }
  /// Resets every connection. Returns when they are gone.
  void Reset();

  int accepted() const noexcept { return accepted_; }
  /// Bytes from clients that have been passed on.
  long passed() const noexcept { return passed_; }

 private:
  void Accept(const std::stop_token& stop);
  void Pump(int client, int server, const std::stop_token& stop);

  const int listener_;
  int port_ = 0;
  std::atomic<int> to_;
  std::atomic<bool> held_{false}, drop_answers_{false};
  std::atomic<int> accepted_{0}, open_{0}, resets_{0}, drip_{0};
  std::atomic<long> passed_{0};
  std::jthread thread_;
};

}  // namespace leaf::harness
