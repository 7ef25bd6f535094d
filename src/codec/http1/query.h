#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leaf::http1 {

/// Calls visit(name, value), both raw, for each parameter of a query or a form, in order; a
/// parameter without '=' has an empty value. Empty parts are passed over.
template <typename Visit>
void ForEachParameter(std::string_view query, Visit visit) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view part = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    visit(part.substr(0, equals),
          equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1));
  }
}

/// Undoes percent escapes and, as forms do, '+' for a blank. nullopt: a bad escape.
std::optional<std::string> DecodeParameter(std::string_view raw);

/// How often a parameter occurs and what it says.
struct Parameter {
  int count = 0;      ///< of the name; names and values with a bad escape count for nothing
  bool bad = false;   ///< a value of that name had a bad escape
  std::string value;  ///< the first one, decoded
};
Parameter FindParameter(std::string_view query, std::string_view name);

}  // namespace leaf::http1
