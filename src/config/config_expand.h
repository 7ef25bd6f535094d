#pragma once

#include <map>
#include <string>
#include <string_view>

#include "config/config_values.h"
#include "leaf/result.h"

namespace leaf::config {

/// Replaces each ${NAME} by the variable's value, which is not expanded again; $${ stands for ${.
/// Inside the user or password of a URL ("://...${NAME}...@") the value is percent-encoded, so that
/// it is taken as it is. Errors, by the variable's name alone: undefined, malformed name, no '}'.
Result<std::string> Expand(std::string_view text,
                           const std::map<std::string, std::string>& environment);

/// Expands the strings of a TOML value in place; true if a variable was in them.
Result<bool> ExpandRaw(Raw& raw, const std::map<std::string, std::string>& environment);

}  // namespace leaf::config
