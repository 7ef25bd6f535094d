#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace leaf {

/// A JSON object of strings and integers, as registries without columns keep a worker.
using FlatJson = std::map<std::string, std::variant<std::string, std::int64_t>, std::less<>>;

/// nullopt: the text is anything else, holds a name twice, or a number that is no 64-bit integer.
std::optional<FlatJson> ParseFlatJson(std::string_view text);

/// `text` in quotation marks.
std::string QuoteJson(std::string_view text);

}  // namespace leaf
