#pragma once

#include <atomic>
#include <cstdint>

namespace leaf {

/// Bounds the parked requests of all tags. Thread-safe.
class WaitingRoom {
 public:
  explicit WaitingRoom(int most) : most_(most) {}

  /// False: full.
  bool Enter() noexcept {
    if (parked_.fetch_add(1, std::memory_order_relaxed) < most_) return true;
    Leave();
    return false;
  }
  void Leave() noexcept { parked_.fetch_sub(1, std::memory_order_relaxed); }
  std::int64_t parked() const noexcept { return parked_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t most_;
  std::atomic<std::int64_t> parked_{0};
};

}  // namespace leaf
