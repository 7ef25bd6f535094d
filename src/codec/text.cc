#include "codec/text.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "base/utf8.h"

namespace leaf {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Appends `text`, its ASCII by `ascii`, and in place of each byte that is no UTF-8 U+FFFD.
template <typename Ascii>
void AppendUtf8(std::string_view text, std::string& out, Ascii ascii) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 1) {
      ascii(text[0], out);
    } else {
      out += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

bool IsPlainJson(char c) noexcept { return c >= 0x20 && c != '"' && c != '\\' && c != 0x7F; }

void AppendJsonAscii(char c, std::string& out) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (IsPlainJson(c)) {
    out += c;
    return;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[static_cast<unsigned char>(c) >> 4];
  out += kHex[static_cast<unsigned char>(c) & 15];
}

}  // namespace

void AppendJson(std::string_view text, std::string& out) {
  out += '"';
  AppendUtf8(text, out, AppendJsonAscii);
  out += '"';
}

namespace {

void AppendHtmlAscii(char c, std::string& out) {
  switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
  }
}

}  // namespace

void AppendHtml(std::string_view text, std::string& out) { AppendUtf8(text, out, AppendHtmlAscii); }

void AppendDecimal(std::int64_t number, std::string& out) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

}  // namespace leaf
