#pragma once

#include <cstddef>
#include <string_view>

namespace leaf {

/// Bytes of the well-formed UTF-8 sequence at the front of `text`, which is not empty; 0 if none
/// begins there. Overlong forms, surrogates and what is above U+10FFFF are not well-formed.
std::size_t Utf8Length(std::string_view text) noexcept;

/// Whether all of `text` is well-formed UTF-8. Other bytes name no row of a database that keeps
/// text: it would mend or refuse them.
bool IsUtf8(std::string_view text) noexcept;

}  // namespace leaf
