#include "base/utf8.h"

namespace leaf {
namespace {

struct Lead {
  std::size_t length = 0;                              // of the sequence; 0: no sequence begins so
  unsigned char second_min = 0x80, second_max = 0xBF;  // excludes overlong forms and surrogates
};

Lead LeadOf(unsigned char byte) noexcept {
  if (byte < 0x80) return {1};
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  return {};
}

}  // namespace

std::size_t Utf8Length(std::string_view text) noexcept {
  const Lead lead = LeadOf(static_cast<unsigned char>(text[0]));
  if (lead.length == 0 || text.size() < lead.length) return 0;
  for (std::size_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < (i == 1 ? lead.second_min : 0x80) || byte > (i == 1 ? lead.second_max : 0xBF))
      return 0;
  }
  return lead.length;
}

bool IsUtf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace leaf
