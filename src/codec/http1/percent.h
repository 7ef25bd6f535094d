#pragma once

#include <string>
#include <string_view>

namespace leaf::http1 {

/// Appends `text` with its percent escapes decoded, once; '+' stays a plus. False for an escape
/// that is cut off or not hexadecimal, and for %00; `out` is then unspecified.
[[nodiscard]] bool PercentDecode(std::string_view text, std::string& out);

/// Whether `text` holds an escaped slash or backslash, which Leaf's server refuses.
bool HasEncodedSlash(std::string_view text) noexcept;

}  // namespace leaf::http1
