#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_keys.h"

namespace leaf::config {

/// What was found wrong, in the order found; every entry is one line, "WHERE: WHAT".
struct Findings {
  std::vector<std::string> errors, warnings, notices;

  void Error(std::string_view origin, std::string_view text) { Add(errors, origin, text); }
  void Warn(std::string_view origin, std::string_view text) { Add(warnings, origin, text); }

 private:
  static void Add(std::vector<std::string>& list, std::string_view origin, std::string_view text);
};

/// Where a value came from, weakest first.
enum class Rank : std::uint8_t { kDefault, kBeLeaf, kFile, kEnvironment, kFlag };

struct Setting {
  const Key* key = nullptr;
  Value value;
  std::string origin;  ///< for people
  Rank rank = Rank::kDefault;
};

/// The strongest value of each key. Starts with the defaults of the table. Thread-compatible.
class Settings {
 public:
  explicit Settings(Findings& findings);

  /// Takes what a source says of a known key, unless a stronger source spoke before; the later of
  /// two equal ones wins. What does not fit the key becomes an error, wherever it came from.
  void Put(const Key& key, const Raw& raw, Rank rank, const std::string& origin);

  /// REQUIRES: a key of the table that is available.
  Setting& operator[](std::string_view name);
  const Setting& at(std::string_view name) const;

  /// Makes `name`, if no source has set it, `value`.
  void Default(std::string_view name, Value value, const std::string& origin,
               Rank rank = Rank::kDefault);

 private:
  Findings& findings_;
  std::map<std::string_view, Setting> chosen_;
};

/// "FILE:LINE".
std::string At(std::string_view file, int line);

/// Replaces what would break the line or the terminal (a key may come from anywhere).
std::string Printable(std::string_view text);

}  // namespace leaf::config
