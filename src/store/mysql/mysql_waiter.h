#pragma once

#include <functional>

#include "base/time.h"

namespace leaf {

/// Where libmariadb waits: its hook for waiting (MARIADB_OPT_IO_WAIT) leads here, on the thread
/// that is inside a MysqlWaiter::Scope. Confined to one thread at a time, save Interrupt.
class MysqlWaiter {
 public:
  enum class End { kNone, kTimeout, kInterrupted, kNoTls };

  explicit MysqlWaiter(Clock& clock);
  ~MysqlWaiter();
  MysqlWaiter(const MysqlWaiter&) = delete;
  MysqlWaiter& operator=(const MysqlWaiter&) = delete;

  /// While it lives, the waits of this thread are `waiter`'s and end by `deadline`.
  class Scope {
   public:
    Scope(MysqlWaiter& waiter, Instant deadline) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  /// The hook: libmariadb's signature. 1: `fd` is ready. Less than 1: give up, errno is set.
  static int Hook(int fd, char is_read, int timeout) noexcept;

  /// Told whether the server offers TLS, before libmariadb has read the greeting; whether to go on.
  using OnGreeting = std::function<bool(bool offers_tls)>;

  /// A TCP connection is about to be made. With `on_greeting`, nothing is sent to the server before
  /// that was asked.
  void ExpectConnect(OnGreeting on_greeting) noexcept;
  /// It was made, and from now on no call on `fd` blocks.
  void Connected(int fd) noexcept;
  /// Why the last scope's waits ended early; kNone if they did not.
  End end() const noexcept { return end_; }

  Instant Now() const noexcept { return clock_.Now(); }

  /// Any thread.
  void Interrupt() noexcept;
  /// Takes back an interrupt that came between calls; whether there was one.
  bool TakeInterrupt() noexcept;

 private:
  int Wait(int fd, bool is_read) noexcept;
  short Ready(int fd, short events) noexcept;
  bool Greet(int fd) noexcept;

  Clock& clock_;
  const int event_fd_;
  Instant deadline_{};
  End end_ = End::kNone;
  bool connecting_ = false;
  OnGreeting on_greeting_;
};

}  // namespace leaf
