#pragma once

#include <cstdint>

namespace leaf {

/// An eventfd: wakes the control loop from any thread. Signal is async-signal-safe.
class Wake {
 public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  int fd() const noexcept { return fd_; }
  void Signal() noexcept;
  void Clear() noexcept;

 private:
  int fd_;
};

}  // namespace leaf
