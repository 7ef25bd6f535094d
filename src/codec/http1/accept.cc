#include "codec/http1/accept.h"

#include <algorithm>
#include <array>
#include <optional>

namespace leaf::http1 {
namespace {

constexpr int kWhole = 1000;  // q=1 in thousandths

struct MediaRange {
  std::string_view type, subtype;
  int weight = kWhole;
};

char Lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool EqualsIgnoringCase(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view Trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Cuts `text` at `separator`: returns the trimmed front and leaves the rest.
std::string_view NextPart(std::string_view& text, char separator) noexcept {
  const std::size_t at = text.find(separator);
  const std::string_view front = Trim(text.substr(0, at));
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return front;
}

/// qvalue of RFC 9110 12.4.2 in thousandths, also without its zero: Java's own client says ".2".
std::optional<int> ParseWeight(std::string_view text) noexcept {
  int weight = 0;
  if (!text.empty() && (text[0] == '0' || text[0] == '1')) {
    weight = (text[0] - '0') * kWhole;
    text.remove_prefix(1);
    if (text.empty()) return weight;
  } else if (text.size() < 2) {
    return std::nullopt;
  }
  if (text.size() > 4 || text[0] != '.') return std::nullopt;
  int unit = 100;
  for (const char digit : text.substr(1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    weight += (digit - '0') * unit;
    unit /= 10;
  }
  return weight <= kWhole ? std::optional(weight) : std::nullopt;
}

std::optional<MediaRange> ParseRange(std::string_view text) noexcept {
  std::string_view name = NextPart(text, ';');
  if (name == "*") name = "*/*";  // again Java's own client, and Spring reads it so
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == name.size())
    return std::nullopt;
  MediaRange range{name.substr(0, slash), name.substr(slash + 1)};
  while (!text.empty()) {
    const std::string_view parameter = NextPart(text, ';');
    if (parameter.size() < 2 || Lower(parameter[0]) != 'q' || parameter[1] != '=') continue;
    const auto weight = ParseWeight(parameter.substr(2));
    if (!weight) return std::nullopt;
    range.weight = *weight;
  }
  return range;
}

/// Calls visit(range, position) for each range that can be read.
template <typename Visit>
void ForEachRange(std::string_view accept, Visit visit) noexcept {
  for (int position = 0; !accept.empty(); ++position) {
    if (const auto range = ParseRange(NextPart(accept, ','))) visit(*range, position);
  }
}

/// 2 named, 1 by its type, 0 by */*, -1 not at all.
int Fit(const MediaRange& range, std::string_view type, std::string_view subtype) noexcept {
  if (range.type == "*") return range.subtype == "*" ? 0 : -1;
  if (!EqualsIgnoringCase(range.type, type)) return -1;
  if (range.subtype == "*") return 1;
  return EqualsIgnoringCase(range.subtype, subtype) ? 2 : -1;
}

struct IdType {
  std::string_view type, subtype, content_type, suffix;
};

constexpr std::string_view kText = "text/plain;charset=UTF-8";
// What digits can be served as. Bytes of a request never become part of a header of the answer.
constexpr std::array<IdType, 7> kIdTypes = {{
    {"text", "plain", kText, "txt"},
    {"application", "json", "application/json;charset=UTF-8", "json"},
    {"text", "html", "text/html;charset=UTF-8", "html"},
    {"application", "xml", "application/xml;charset=UTF-8", "xml"},
    {"text", "xml", "text/xml;charset=UTF-8", ""},
    {"application", "xhtml+xml", "application/xhtml+xml;charset=UTF-8", "xhtml"},
    {"text", "csv", "text/csv;charset=UTF-8", "csv"},
}};

std::string_view ContentTypeOf(const MediaRange& range) noexcept {
  for (const IdType& known : kIdTypes) {
    if (Fit(range, known.type, known.subtype) == 2) return known.content_type;
  }
  return kText;
}

}  // namespace

bool Preference::operator>(const Preference& other) const noexcept {
  if (weight != other.weight) return weight > other.weight;
  if (specificity != other.specificity) return specificity > other.specificity;
  return position < other.position;
}

Preference AcceptOf(std::string_view accept, std::string_view type,
                    std::string_view subtype) noexcept {
  if (Trim(accept).empty()) return {kWhole, 0, 0};
  Preference best;
  int best_fit = -1;
  ForEachRange(accept, [&](const MediaRange& range, int position) {
    const int fit = Fit(range, type, subtype);
    if (fit <= best_fit) return;
    best_fit = fit;
    best = {range.weight, fit, position};
  });
  return best;
}

std::string_view IdContentType(std::string_view accept) noexcept {
  if (accept.empty() || accept == "*/*") return kText;
  Preference best;
  std::string_view content_type = kText;
  ForEachRange(accept, [&](const MediaRange& range, int position) {
    const int specificity = range.type == "*" ? 0 : range.subtype == "*" ? 1 : 2;
    const Preference preference{range.weight, specificity, position};
    if (range.weight == 0 || !(preference > best)) return;
    best = preference;
    content_type = ContentTypeOf(range);
  });
  return content_type;
}

std::string_view SuffixContentType(std::string_view suffix) noexcept {
  if (suffix.empty()) return {};
  for (const IdType& known : kIdTypes) {
    if (EqualsIgnoringCase(known.suffix, suffix)) return known.content_type;
  }
  return {};
}

bool PrefersHtml(std::string_view accept) noexcept {
  const Preference html = AcceptOf(accept, "text", "html");
  return html.weight > 0 && html.specificity == 2 && html > AcceptOf(accept, "application", "json");
}

bool PrefersText(std::string_view accept) noexcept {
  const Preference text = AcceptOf(accept, "text", "plain");
  return text.weight > 0 && text.specificity > 0 && text > AcceptOf(accept, "application", "json");
}

}  // namespace leaf::http1
