#include "codec/http1/query.h"

#include <utility>

#include "codec/http1/percent.h"

namespace leaf::http1 {

std::optional<std::string> DecodeParameter(std::string_view raw) {
  std::string spaced(raw);
  for (char& c : spaced) {
    if (c == '+') c = ' ';
  }
  std::string text;
  if (!PercentDecode(spaced, text)) return std::nullopt;
  return text;
}

Parameter FindParameter(std::string_view query, std::string_view name) {
  Parameter found;
  ForEachParameter(query, [&](std::string_view raw_name, std::string_view raw_value) {
    const auto decoded = DecodeParameter(raw_name);
    if (!decoded || *decoded != name) return;
    auto value = DecodeParameter(raw_value);
    if (!value) {
      found.bad = true;
      return;
    }
    if (found.count++ == 0) found.value = std::move(*value);
  });
  return found;
}

}  // namespace leaf::http1
