#pragma once

#include <cstdint>

#include "core/snowflake/layout.h"

namespace leaf {

/// The ids of one snowflake answer: consecutive places on the line of (tick, sequence), so rising,
/// and possibly of several ticks. A plain value.
struct Minted {
  std::uint64_t first = 0;  ///< tick << sequence_bits | sequence
  std::int64_t count = 0;
  std::int64_t worker = 0;

  /// The i-th id. REQUIRES: 0 <= i < count, the layout that they were minted in.
  std::int64_t At(const Layout& layout, std::int64_t i) const noexcept {
    const std::uint64_t place = first + static_cast<std::uint64_t>(i);
    const std::uint64_t tick = place >> layout.sequence_bits;
    const std::uint64_t sequence = place - (tick << layout.sequence_bits);
    return static_cast<std::int64_t>((tick << (layout.worker_bits + layout.sequence_bits)) |
                                     (static_cast<std::uint64_t>(worker) << layout.sequence_bits) |
                                     sequence);
  }
};

}  // namespace leaf
