#pragma once

#include <cstdint>

#include "core/segment/range.h"

namespace leaf {

/// a + b, or kMaxEnd where that would not fit. REQUIRES: a, b >= 0.
constexpr std::int64_t AddCapped(std::int64_t a, std::int64_t b) noexcept {
  return a > kMaxEnd - b ? kMaxEnd : a + b;
}

/// a * b, or kMaxEnd where that would not fit. REQUIRES: a >= 0, b > 0.
constexpr std::int64_t MultiplyCapped(std::int64_t a, std::int64_t b) noexcept {
  return a > kMaxEnd / b ? kMaxEnd : a * b;
}

}  // namespace leaf
