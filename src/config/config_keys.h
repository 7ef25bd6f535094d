#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/config_values.h"

namespace leaf::config {

/// Whether this version has what a key is for.
enum class Availability : std::uint8_t {
  kNow,
  kLater,    ///< giving the key is an error: not in this version
  kOffOnly,  ///< only `false` can be given
};

/// One key. The table of them drives every source, --print-config, the suggestions and the check of
/// docs/configuration.md.
struct Key {
  std::string_view name;
  Type type = Type::kText;
  std::string_view fallback = {};  ///< the default in plain form
  Bounds bounds = {};
  std::string_view later_choices = {};  ///< of a kChoice: words that a later version will know
  std::string_view leaf_names = {};     ///< of leaf.properties, separated by blanks
  Availability availability = Availability::kNow;
  bool secret = false;     ///< its text may hold a password
  bool dependent = false;  ///< the default depends on the host or on another key
  void (*apply)(Config& config, const Value& value) = nullptr;
};

/// Every key, in the order of docs/configuration.md.
std::span<const Key> Keys();

/// nullptr if there is none of that name.
const Key* FindKey(std::string_view name);

/// Whether keys begin with "NAME.".
bool IsSection(std::string_view name);

/// LEAFD_<SECTION>_<KEY>.
std::string EnvironmentName(const Key& key);

/// The default as a value. REQUIRES: the key is available.
Value Fallback(const Key& key);

/// Every name of leaf.properties in the table.
std::vector<std::string> LeafNames();

/// Of `candidates` the one that `word` is probably a misspelling of; empty if none is near.
std::string Suggest(std::string_view word, std::span<const std::string> candidates);
/// ` (did you mean "NAME"?)` for the nearest key, or nothing.
std::string SuggestKey(std::string_view word);
std::string SuggestionText(std::string_view word, std::span<const std::string> candidates);

}  // namespace leaf::config
