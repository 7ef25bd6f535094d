#include "core/segment/cut.h"

#include <algorithm>
#include <cstddef>

#include "core/segment/checked.h"

namespace leaf {

namespace {

/// Ranges needed for n ids from held[start] on; 0 if more than `most` or there are not enough ids.
std::size_t PiecesNeeded(const std::vector<Range>& held, std::size_t start, std::int64_t n,
                         std::size_t most) {
  for (std::size_t i = start; i < held.size() && i - start < most; ++i) {
    n -= std::min(n, held[i].size());
    if (n == 0) return i - start + 1;
  }
  return 0;
}

}  // namespace

bool Cut(std::vector<Range>& held, std::int64_t n, bool one_piece, Ranges& out,
         std::int64_t& skipped) {
  const std::size_t most = one_piece ? 1 : Ranges::kPieces;
  std::size_t start = 0;
  std::size_t pieces = 0;
  std::int64_t passed_over = 0;
  for (; start < held.size(); ++start) {
    pieces = PiecesNeeded(held, start, n, most);
    if (pieces > 0) break;
    passed_over += held[start].size();
  }
  if (pieces == 0) return false;

  out = Ranges{};
  std::size_t used_up = start;
  for (std::size_t i = start; i < start + pieces; ++i) {
    const Range piece{held[i].first, held[i].first + std::min(n, held[i].size())};
    out.at[static_cast<std::size_t>(out.size++)] = piece;
    n -= piece.size();
    held[i].first = piece.last;
    if (held[i].empty()) ++used_up;
  }
  held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(used_up));
  skipped = passed_over;
  return true;
}

std::int64_t CountIds(const std::vector<Range>& held) noexcept {
  std::int64_t sum = 0;
  for (const Range& range : held) sum = AddCapped(sum, range.size());
  return sum;
}

}  // namespace leaf
