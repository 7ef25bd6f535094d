#pragma once

#include <cstdint>
#include <vector>

#include "core/segment/range.h"

namespace leaf {

/// Cuts n > 0 ids off the front of `held` (ascending, none empty): in one piece if `one_piece`,
/// else in at most Ranges::kPieces. Where the front is too broken for that, whole ranges of it are
/// given up; `skipped` says how many ids, which must never be issued. False: nothing fits and
/// nothing changed.
bool Cut(std::vector<Range>& held, std::int64_t n, bool one_piece, Ranges& out,
         std::int64_t& skipped);

/// Ids in `held`, at most kMaxEnd.
std::int64_t CountIds(const std::vector<Range>& held) noexcept;

}  // namespace leaf
