#pragma once

#include <cstdint>

namespace leaf {

/// Draws numbers; jitter and the like come from here, so that a simulation replays from its seed.
/// Thread-safe in production, confined in a simulation.
class Random {
 public:
  virtual ~Random() = default;
  /// Uniform over all 64-bit values.
  virtual std::uint64_t Next() noexcept = 0;
  /// Uniform in [0, bound). REQUIRES: bound > 0. The bias is below bound / 2^64.
  std::uint64_t Below(std::uint64_t bound) noexcept { return Next() % bound; }
};

/// getrandom(2). Never destroyed.
Random& SystemRandom() noexcept;

}  // namespace leaf
