#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leaf {

/// Appends `text` as a JSON string with its quotes. The result is valid UTF-8 whatever comes in: a
/// byte that is not becomes U+FFFD.
void AppendJson(std::string_view text, std::string& out);

/// Appends `text` so that it is inert in HTML text and in quoted attributes, as valid UTF-8 too.
void AppendHtml(std::string_view text, std::string& out);

/// Appends the decimal digits of `number`.
void AppendDecimal(std::int64_t number, std::string& out);

}  // namespace leaf
