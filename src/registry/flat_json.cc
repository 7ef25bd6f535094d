#include "registry/flat_json.h"

#include <charconv>
#include <utility>

namespace leaf {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::optional<FlatJson> Object() {
    FlatJson object;
    if (!Take('{')) return std::nullopt;
    bool first = true;
    while (!Take('}')) {
      if (!std::exchange(first, false) && !Take(',')) return std::nullopt;
      if (!Member(object)) return std::nullopt;
    }
    SkipBlanks();
    if (!rest_.empty()) return std::nullopt;
    return object;
  }

 private:
  bool Member(FlatJson& object) {
    std::string name;
    if (!Take('"') || !String(name) || !Take(':')) return false;
    if (Take('"')) {
      std::string value;
      return String(value) && object.emplace(std::move(name), std::move(value)).second;
    }
    std::int64_t number = 0;
    return Integer(number) && object.emplace(std::move(name), number).second;
  }

  void SkipBlanks() {
    const std::size_t from = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(from == std::string_view::npos ? rest_.size() : from);
  }

  bool Take(char wanted) {
    SkipBlanks();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // JSON allows neither a plus nor leading zeros; a fraction or an exponent is no integer.
  bool Integer(std::int64_t& number) {
    SkipBlanks();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return false;
    std::string_view digits = rest_.substr(0, static_cast<std::size_t>(end - rest_.data()));
    rest_.remove_prefix(digits.size());
    if (digits.front() == '-') digits.remove_prefix(1);
    if (digits.size() > 1 && digits.front() == '0') return false;
    return rest_.empty() || std::string_view(".eE").find(rest_.front()) == std::string_view::npos;
  }

  // After the opening mark.
  bool String(std::string& out) {
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out += c;
      } else if (!Escape(out)) {
        return false;
      }
    }
    return false;
  }

  bool Escape(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    if (rest_.empty()) return false;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == 'u') return Unicode(out);
    const std::size_t at = kNames.find(c);
    if (at == std::string_view::npos) return false;
    out += kValues[at];
    return true;
  }

  // One of the basic plane; halves of a pair are refused, no address holds them.
  bool Unicode(std::string& out) {
    unsigned value = 0;
    if (rest_.size() < 4) return false;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, value, 16);
    if (error != std::errc() || end != rest_.data() + 4) return false;
    if (value >= 0xD800 && value < 0xE000) return false;
    rest_.remove_prefix(4);
    if (value < 0x80) {
      out += static_cast<char>(value);
    } else if (value < 0x800) {
      out += static_cast<char>(0xC0 | (value >> 6));
      out += static_cast<char>(0x80 | (value & 0x3F));
    } else {
      out += static_cast<char>(0xE0 | (value >> 12));
      out += static_cast<char>(0x80 | ((value >> 6) & 0x3F));
      out += static_cast<char>(0x80 | (value & 0x3F));
    }
    return true;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<FlatJson> ParseFlatJson(std::string_view text) { return Reader(text).Object(); }

std::string QuoteJson(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace leaf
