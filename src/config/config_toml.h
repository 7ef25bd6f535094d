#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_values.h"

namespace leaf::config {

/// A value of a TOML document with its whole key ("server.listen"); an empty table is one as well.
struct TomlEntry {
  std::string key;
  Raw raw;
  int line = 0;
};

struct TomlFile {
  struct Problem {
    int line = 0, column = 0;
    std::string text;  ///< never holds more of the document than a key or a single character
  };
  std::vector<TomlEntry> entries;  ///< in the order of lines
  std::optional<Problem> problem;  ///< TOML's syntax; nothing else was read then
};

TomlFile ParseToml(std::string_view document);

}  // namespace leaf::config
