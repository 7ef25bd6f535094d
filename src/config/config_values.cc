#include "config/config_values.h"

#include <array>
#include <charconv>
#include <cstddef>

namespace leaf::config {
namespace {

Error Invalid(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

struct Unit {
  std::string_view name;
  std::int64_t scale;
};

constexpr std::array<Unit, 6> kDurationUnits = {{{"d", 86'400'000'000'000},
                                                 {"h", 3'600'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000}}};
constexpr std::array<Unit, 4> kSizeUnits = {
    {{"GiB", std::int64_t{1} << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}};

constexpr std::string_view kDurationForm = R"(a duration such as "10s", "500ms" or "1h30m")";
constexpr std::string_view kSizeForm = R"(a size such as "64KiB", "1MiB" or a number of bytes)";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Splits the leading digits off `rest`.
bool TakeNumber(std::string_view& rest, std::int64_t& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || rest.front() == '-') return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

std::string_view TakeUnit(std::string_view& rest) {
  std::size_t size = 0;
  while (size < rest.size() && !IsDigit(rest[size])) ++size;
  const std::string_view unit = rest.substr(0, size);
  rest.remove_prefix(size);
  return unit;
}

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kText:
      return "a string";
    case Type::kList:
      return "an array of strings";
    case Type::kBool:
      return "true or false";
    case Type::kInteger:
      return "an integer";
    case Type::kAutoInteger:
      return R"("auto" or an integer)";
    case Type::kDuration:
      return kDurationForm;
    case Type::kSize:
      return kSizeForm;
    case Type::kChoice:
      return "a word";
  }
  return "";
}

std::string FormName(const Raw& raw) {
  switch (raw.form) {
    case Raw::Form::kPlain:
      return "a text";
    case Raw::Form::kString:
      return "a string";
    case Raw::Form::kInteger:
      return "an integer";
    case Raw::Form::kBool:
      return "a boolean";
    case Raw::Form::kStrings:
      return "an array";
    case Raw::Form::kTable:
      return "a table";
    case Raw::Form::kOther:
      return raw.text;
  }
  return "";
}

/// Whether TOML's type suits the key's: "1" is not a number, and 10 is not a duration.
bool FormFits(Type type, Raw::Form form) {
  using Form = Raw::Form;
  if (form == Form::kPlain) return true;
  if (form == Form::kOther || form == Form::kTable) return false;
  switch (type) {
    case Type::kText:
    case Type::kChoice:
    case Type::kDuration:
      return form == Form::kString;
    case Type::kList:
      return form == Form::kStrings || form == Form::kString;
    case Type::kBool:
      return form == Form::kBool;
    case Type::kInteger:
      return form == Form::kInteger;
    case Type::kAutoInteger:
    case Type::kSize:
      return form == Form::kInteger || form == Form::kString;
  }
  return false;
}

Result<Value> ReadBool(std::string_view text) {
  if (text != "true" && text != "false") return Invalid("needs true or false");
  Value value;
  value.flag = text == "true";
  return value;
}

Result<Value> ReadChoice(std::string_view text, std::string_view choices) {
  std::string words;
  for (std::string_view rest = choices; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('|'));
    if (text == word) {
      Value value;
      value.text = text;
      return value;
    }
    words += (words.empty() ? "" : ", ") + std::string(word);
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return Invalid("must be one of " + words);
}

Result<Value> ReadList(const Raw& raw) {
  Value value;
  if (raw.form != Raw::Form::kPlain) {
    value.list = raw.form == Raw::Form::kStrings ? raw.list : std::vector<std::string>{raw.text};
  } else {
    for (std::string_view rest = raw.text;;) {
      std::string_view item = rest.substr(0, rest.find(','));
      const bool last = item.size() == rest.size();
      rest.remove_prefix(last ? item.size() : item.size() + 1);
      while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
      while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
      value.list.emplace_back(item);
      if (last) break;
    }
  }
  for (const std::string& item : value.list) {
    if (item.empty()) return Invalid("has an empty element");
  }
  return value;
}

Result<std::int64_t> ReadNumber(Type type, const Raw& raw) {
  if (type == Type::kDuration) {
    LEAF_ASSIGN_OR_RETURN(const Duration duration, ParseDuration(raw.text));
    return duration.count();
  }
  if (type == Type::kSize) return ParseSize(raw.text);
  if (type == Type::kAutoInteger && raw.form == Raw::Form::kString) {
    return Invalid(R"(is a string, needs "auto" or an integer)");
  }
  return ParseInteger(raw.text);
}

std::string FormatNumber(Type type, std::int64_t number) {
  if (type == Type::kDuration) return FormatDuration(Duration(number));
  if (type == Type::kSize) return FormatSize(number);
  return std::to_string(number);
}

Result<Value> ReadBounded(Type type, const Raw& raw, const Bounds& bounds) {
  Value value;
  if (type == Type::kAutoInteger && raw.text == "auto") return value;
  LEAF_ASSIGN_OR_RETURN(value.number, ReadNumber(type, raw));
  if (value.number < bounds.min || value.number > bounds.max) {
    return Invalid("must be between " + FormatNumber(type, bounds.min) + " and " +
                   FormatNumber(type, bounds.max));
  }
  return value;
}

}  // namespace

Result<Value> ReadValue(Type type, const Raw& raw, const Bounds& bounds) {
  if (!FormFits(type, raw.form)) {
    return Invalid("is " + FormName(raw) + ", needs " + std::string(TypeName(type)));
  }
  switch (type) {
    case Type::kText: {
      Value value;
      value.text = raw.text;
      return value;
    }
    case Type::kList:
      return ReadList(raw);
    case Type::kBool:
      return ReadBool(raw.text);
    case Type::kChoice:
      return ReadChoice(raw.text, bounds.choices);
    case Type::kInteger:
    case Type::kAutoInteger:
    case Type::kDuration:
    case Type::kSize:
      return ReadBounded(type, raw, bounds);
  }
  return Invalid("has an unknown type");
}

std::string FormatValue(Type type, const Value& value) {
  switch (type) {
    case Type::kText:
    case Type::kChoice:
      return QuoteToml(value.text);
    case Type::kList: {
      std::string text = "[";
      for (const std::string& item : value.list) {
        text += (text.size() > 1 ? ", " : "") + QuoteToml(item);
      }
      return text + "]";
    }
    case Type::kBool:
      return value.flag ? "true" : "false";
    case Type::kInteger:
      return std::to_string(value.number);
    case Type::kAutoInteger:
      return value.number == 0 ? "\"auto\"" : std::to_string(value.number);
    case Type::kDuration:
      return QuoteToml(FormatDuration(Duration(value.number)));
    case Type::kSize: {
      const std::string text = FormatSize(value.number);
      return IsDigit(text.back()) ? text : QuoteToml(text);
    }
  }
  return "";
}

Result<Duration> ParseDuration(std::string_view text) {
  const Error form = Invalid("needs " + std::string(kDurationForm));
  if (text == "0") return Duration::zero();
  if (text.empty()) return form;
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::int64_t number = 0;
    if (!TakeNumber(rest, number)) return form;
    const std::string_view name = TakeUnit(rest);
    while (next_unit < kDurationUnits.size() && kDurationUnits[next_unit].name != name) ++next_unit;
    if (next_unit == kDurationUnits.size()) return form;
    std::int64_t part = 0;
    if (__builtin_mul_overflow(number, kDurationUnits[next_unit++].scale, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return Invalid("is too long a duration");
    }
  }
  return Duration(total);
}

std::string FormatDuration(Duration duration) {
  std::string text;
  std::int64_t rest = duration.count();
  for (const Unit& unit : kDurationUnits) {
    if (unit.name == "d" || rest < unit.scale) continue;
    text += std::to_string(rest / unit.scale) + std::string(unit.name);
    rest %= unit.scale;
  }
  return text.empty() ? "0s" : text;
}

Result<std::int64_t> ParseSize(std::string_view text) {
  const Error form = Invalid("needs " + std::string(kSizeForm));
  std::int64_t number = 0;
  std::string_view rest = text;
  if (rest.empty() || !TakeNumber(rest, number)) return form;
  if (rest.empty()) return number;
  for (const Unit& unit : kSizeUnits) {
    if (rest != unit.name) continue;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(number, unit.scale, &bytes)) return Invalid("is too large a size");
    return bytes;
  }
  return form;
}

std::string FormatSize(std::int64_t bytes) {
  for (const Unit& unit : kSizeUnits) {
    if (unit.scale == 1 || bytes < unit.scale || bytes % unit.scale != 0) continue;
    return std::to_string(bytes / unit.scale) + std::string(unit.name);
  }
  return std::to_string(bytes);
}

Result<std::int64_t> ParseInteger(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return Invalid("is too large an integer");
  if (error != std::errc() || end != text.data() + text.size()) return Invalid("needs an integer");
  return number;
}

std::string QuoteToml(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += "\\u00";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace leaf::config
