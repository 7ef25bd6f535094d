#include "config/config_expand.h"

#include <algorithm>

#include "config/url.h"

namespace leaf::config {
namespace {

Error Invalid(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// Whether between these two texts there is a URL's user or password.
bool IsUserInfo(std::string_view before, std::string_view after) {
  const auto slashes = before.find("://");
  if (slashes == std::string_view::npos) return false;
  return before.find_first_of("/?@", slashes + 3) == std::string_view::npos &&
         after.find('@') != std::string_view::npos;
}

}  // namespace

Result<std::string> Expand(std::string_view text,
                           const std::map<std::string, std::string>& environment) {
  std::string result;
  std::size_t at = 0;
  for (;;) {
    const auto dollar = text.find("${", at);
    result += text.substr(at, dollar - at);
    if (dollar == std::string_view::npos) return result;
    if (dollar > at && text[dollar - 1] == '$') {
      result.back() = '$';
      result += '{';
      at = dollar + 2;
      continue;
    }
    const auto end = text.find('}', dollar);
    if (end == std::string_view::npos)
      return Invalid("${ has no }; write $${ for the two characters");
    const std::string_view name = text.substr(dollar + 2, end - dollar - 2);
    if (!IsName(name)) return Invalid("${...} needs the name of a variable");
    const auto variable = environment.find(std::string(name));
    if (variable == environment.end())
      return Invalid("the variable " + std::string(name) + " is not set");
    result += IsUserInfo(text.substr(0, dollar), text.substr(end)) ? PercentEncode(variable->second)
                                                                   : variable->second;
    at = end + 1;
  }
}

Result<bool> ExpandRaw(Raw& raw, const std::map<std::string, std::string>& environment) {
  bool found = false;
  const auto expand = [&](std::string& text) -> Result<void> {
    found = found || text.find("${") != std::string::npos;
    LEAF_ASSIGN_OR_RETURN(text, Expand(text, environment));
    return {};
  };
  if (raw.form == Raw::Form::kString) LEAF_RETURN_IF_ERROR(expand(raw.text));
  for (std::string& text : raw.list) LEAF_RETURN_IF_ERROR(expand(text));
  return found;
}

}  // namespace leaf::config
