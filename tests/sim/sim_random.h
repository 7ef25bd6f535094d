#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/time.h"

namespace leaf::sim {

/// A seeded stream (SplitMix64): equal seeds give equal draws on every machine. Confined.
class SimRandom final : public Random {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() noexcept override {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// An independent stream; `salt` tells the streams of one parent apart.
  SimRandom Fork(std::uint64_t salt) noexcept {
    return SimRandom(Next() ^ (salt * 0xff51afd7ed558ccdu));
  }

  bool Chance(double p) noexcept { return static_cast<double>(Next() >> 11) * 0x1.0p-53 < p; }
  /// Uniform in [low, high].
  std::int64_t Between(std::int64_t low, std::int64_t high) noexcept {
    return low + static_cast<std::int64_t>(Below(static_cast<std::uint64_t>(high - low) + 1));
  }
  Duration Between(Duration low, Duration high) noexcept {
    return Duration(Between(low.count(), high.count()));
  }
  /// One of the values of a list.
  template <typename T, std::size_t N>
  T OneOf(const T (&values)[N]) noexcept {
    return values[Below(N)];
  }

 private:
  std::uint64_t state_;
};

}  // namespace leaf::sim
