#include "codec/http1/message.h"

#include "codec/http1/chars.h"

namespace leaf::http1 {
namespace {

char Lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool SameName(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

}  // namespace

std::string_view Request::Find(std::string_view name) const noexcept {
  for (int i = 0; i < header_count; ++i) {
    const Header& header = headers[static_cast<std::size_t>(i)];
    if (SameName(header.name, name)) return header.value;
  }
  return {};
}

}  // namespace leaf::http1
