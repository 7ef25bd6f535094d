#include "codec/http1/percent.h"

namespace leaf::http1 {
namespace {

int HexValue(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

bool PercentDecode(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return false;
    const int high = HexValue(text[i + 1]), low = HexValue(text[i + 2]);
    if (high < 0 || low < 0 || (high | low) == 0) return false;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return true;
}

bool HasEncodedSlash(std::string_view text) noexcept {
  for (std::size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 1)) {
    if (text.size() - i < 3) return false;
    const char high = text[i + 1], low = static_cast<char>(text[i + 2] | 0x20);
    if ((high == '2' && low == 'f') || (high == '5' && low == 'c')) return true;
  }
  return false;
}

}  // namespace leaf::http1
