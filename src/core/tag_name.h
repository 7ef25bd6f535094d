#pragma once

#include <cstddef>
#include <string_view>

namespace leaf {

inline constexpr std::size_t kMaxTagBytes = 128;

/// 1 to 128 bytes of [A-Za-z0-9._:-]: what can be created. Other names can only be found.
bool IsPlainTag(std::string_view tag) noexcept;

}  // namespace leaf
