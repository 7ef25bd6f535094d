#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace leaf {

/// Ids [first, last): half-open, as Leaf's ranges are. The exclusive end must fit into 63 bits, so
/// the last id that can exist is 2^63 - 2.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t size() const noexcept { return last - first; }
  bool empty() const noexcept { return first >= last; }
  friend bool operator==(const Range&, const Range&) = default;
};

inline constexpr std::int64_t kMaxEnd = std::numeric_limits<std::int64_t>::max();

/// The ids of one answer: at most kPieces ranges, ascending and disjoint.
struct Ranges {
  static constexpr int kPieces = 4;
  std::array<Range, kPieces> at{};
  int size = 0;

  std::int64_t count() const noexcept {
    std::int64_t n = 0;
    for (int i = 0; i < size; ++i) n += at[static_cast<std::size_t>(i)].size();
    return n;
  }
  const Range* begin() const noexcept { return at.data(); }
  const Range* end() const noexcept { return at.data() + size; }
};

}  // namespace leaf
