#pragma once

#include <cstdint>

#include "base/time.h"

namespace leaf {

/// Whole milliseconds, cut off: what limits and layouts count in.
constexpr std::int64_t ToMillis(Duration duration) noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace leaf
