#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/time.h"
#include "leaf/result.h"

namespace leaf {

enum class Protocol : std::uint8_t { kHttp };
inline constexpr int kProtocolCount = 1;

/// Counters of one reactor: written by its thread alone (relaxed loads and stores, no locked
/// instruction), read by anybody. Sum over reactors at scrape time.
class RequestStats {
 public:
  /// Upper bounds of the duration histogram's buckets, in seconds; the last one is +Inf.
  static constexpr std::array<double, 14> kBounds = {5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4,
                                                     1e-3, 5e-3, 2.5e-2, 0.1,  0.5,  1,      3};
  /// code: static_cast<int>(Code), or kOk.
  static constexpr int kOk = kCodeCount;

  void Count(Protocol protocol, int code) noexcept {
    Add(requests_[Index(protocol)][static_cast<std::size_t>(code)], 1);
  }
  void Issued(std::uint64_t ids) noexcept { Add(ids_, ids); }
  /// `count` requests that each took `duration`.
  void Took(Protocol protocol, Duration duration, std::uint64_t count) noexcept;
  void Connected(Protocol protocol, int delta) noexcept {
    connections_[Index(protocol)].store(
        connections_[Index(protocol)].load(std::memory_order_relaxed) + delta,
        std::memory_order_relaxed);
  }
  void Refused() noexcept { Add(refused_, 1); }

  std::uint64_t requests(Protocol protocol, int code) const noexcept {
    return requests_[Index(protocol)][static_cast<std::size_t>(code)].load(
        std::memory_order_relaxed);
  }
  std::uint64_t bucket(Protocol protocol, int i) const noexcept {
    return buckets_[Index(protocol)][static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
  }
  double seconds(Protocol protocol) const noexcept {
    return static_cast<double>(nanos_[Index(protocol)].load(std::memory_order_relaxed)) / 1e9;
  }
  std::uint64_t ids() const noexcept { return ids_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
  std::int64_t connections(Protocol protocol) const noexcept {
    return connections_[Index(protocol)].load(std::memory_order_relaxed);
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  static std::size_t Index(Protocol protocol) noexcept {
    return static_cast<std::size_t>(protocol);
  }
  static void Add(Counter& counter, std::uint64_t n) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::array<std::array<Counter, kCodeCount + 1>, kProtocolCount> requests_{};
  std::array<std::array<Counter, kBounds.size() + 1>, kProtocolCount> buckets_{};
  std::array<Counter, kProtocolCount> nanos_{};
  Counter ids_{};
  Counter refused_{};  ///< connections refused or closed by a bound
  std::array<std::atomic<std::int64_t>, kProtocolCount> connections_{};
};

}  // namespace leaf
