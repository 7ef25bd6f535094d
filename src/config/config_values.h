#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "leaf/result.h"

namespace leaf::config {

/// What a key holds. How each is written is said in docs/configuration.md.
enum class Type : std::uint8_t {
  kText,
  kList,         ///< of texts; comma-separated outside TOML
  kBool,         ///< true, false
  kInteger,      ///< decimal
  kAutoInteger,  ///< "auto" (held as 0) or an integer above 0
  kDuration,     ///< "10s", "1h30m"; held in nanoseconds
  kSize,         ///< "64KiB" or a number of bytes; held in bytes
  kChoice,       ///< one of a few words
};

/// A value as its source wrote it, before the type of its key is known.
struct Raw {
  enum class Form : std::uint8_t {
    kPlain,   ///< environment, flag, .properties: untyped text
    kString,  ///< the rest: TOML's types
    kInteger,
    kBool,
    kStrings,  ///< an array that holds strings only
    kTable,    ///< an empty one: whose keys are not elements of their own
    kOther,    ///< `text` names the TOML type
  };
  Form form = Form::kPlain;
  std::string text;               ///< for kInteger and kBool the value in its plain form
  std::vector<std::string> list;  ///< of kStrings
};

/// A value of a known type; which member counts follows from the Type.
struct Value {
  bool flag = false;
  std::int64_t number = 0;
  std::string text;
  std::vector<std::string> list;
};

/// Bounds are inclusive and in the unit that Value::number has; `choices` is "a|b|c".
struct Bounds {
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::string_view choices;
};

/// Reads `raw` as a `type` within `bounds`. The error says what is wrong and how to write it, and
/// never repeats a text, which may be a secret.
Result<Value> ReadValue(Type type, const Raw& raw, const Bounds& bounds);

/// The value as TOML writes it.
std::string FormatValue(Type type, const Value& value);

/// "10s", "500ms", "1h30m": numbers with one of d h m s ms us, larger units first; "0" also.
Result<Duration> ParseDuration(std::string_view text);
/// In the same form, exact to the microsecond. REQUIRES: duration >= 0.
std::string FormatDuration(Duration duration);

/// Bytes: "64KiB", "1MiB", "1GiB", "100B" or a plain number.
Result<std::int64_t> ParseSize(std::string_view text);
std::string FormatSize(std::int64_t bytes);

/// A decimal integer that fills `text`, with an optional '-'.
Result<std::int64_t> ParseInteger(std::string_view text);

/// A TOML basic string.
std::string QuoteToml(std::string_view text);

}  // namespace leaf::config
