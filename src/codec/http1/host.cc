#include "codec/http1/host.h"

#include "codec/http1/chars.h"

namespace leaf::http1 {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";

bool IsPort(std::string_view text) noexcept {
  if (text.empty()) return true;
  if (text.size() > 6 || text.front() != ':') return false;
  unsigned port = 0;
  for (const char c : text.substr(1)) {
    if (c < '0' || c > '9') return false;
    port = port * 10 + static_cast<unsigned>(c - '0');
  }
  return port <= 65535;
}

bool IsIpv6(std::string_view text) noexcept {
  return text.find(':') != std::string_view::npos && text.size() <= 45 &&
         text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

bool EscapesAreWhole(std::string_view text) noexcept {
  for (std::size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 1)) {
    if (text.size() - i < 3) return false;
    if (text.substr(i + 1, 2).find_first_not_of(kHexDigits) != std::string_view::npos) return false;
  }
  return true;
}

}  // namespace

bool IsHost(std::string_view text) noexcept {
  if (text.empty() || !AllAre(text, kHostChar)) return false;
  if (text.front() == '[') {
    const std::size_t end = text.find(']');
    return end != std::string_view::npos && IsIpv6(text.substr(1, end - 1)) &&
           IsPort(text.substr(end + 1));
  }
  const std::string_view name = text.substr(0, text.find(':'));
  return !name.empty() && name.find_first_of("[]") == std::string_view::npos &&
         EscapesAreWhole(name) && IsPort(text.substr(name.size()));
}

}  // namespace leaf::http1
