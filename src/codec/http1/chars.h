#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace leaf::http1 {

/// Character classes of RFC 9110 and RFC 3986, one bit each.
enum CharClass : std::uint8_t {
  kTokenChar = 1,   ///< tchar
  kTargetChar = 2,  ///< pchar, "/" and "?"
  kValueChar = 4,   ///< field-vchar, space and tab
  kHostChar = 8,    ///< reg-name, an IP literal's brackets and the colon
};

namespace internal {
constexpr std::array<std::uint8_t, 256> MakeCharTable() {
  std::array<std::uint8_t, 256> table{};
  const auto mark = [&](std::string_view chars, unsigned bits) {
    for (const char c : chars) {
      auto& entry = table[static_cast<unsigned char>(c)];
      entry = static_cast<std::uint8_t>(entry | bits);
    }
  };
  constexpr std::string_view kAlnum =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  mark(kAlnum, kTokenChar | kTargetChar | kHostChar);
  mark("!#$%&'*+-.^_`|~", kTokenChar);
  mark("-._~%!$&'()*+,;=", kTargetChar | kHostChar);
  mark(":@/?", kTargetChar);
  mark(":[]", kHostChar);
  for (unsigned c = 0; c < 256; ++c) {
    const bool control = c < 0x20 || c == 0x7F;
    if (!control || c == '\t') table[c] = static_cast<std::uint8_t>(table[c] | kValueChar);
  }
  return table;
}
inline constexpr std::array<std::uint8_t, 256> kCharTable = MakeCharTable();
}  // namespace internal

constexpr bool Is(char c, CharClass char_class) noexcept {
  return (internal::kCharTable[static_cast<unsigned char>(c)] & char_class) != 0;
}

constexpr bool AllAre(std::string_view text, CharClass char_class) noexcept {
  for (const char c : text) {
    if (!Is(c, char_class)) return false;
  }
  return true;
}

/// `lower` is in lower case already.
constexpr bool EqualsIgnoreCase(std::string_view text, std::string_view lower) noexcept {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != lower[i]) return false;
  }
  return true;
}

/// Without spaces and tabs at both ends.
constexpr std::string_view Trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace leaf::http1
