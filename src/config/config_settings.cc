#include "config/config_settings.h"

#include "base/assert.h"

namespace leaf::config {
namespace {

constexpr std::string_view kNotInThisVersion = "not in this version: ";

/// Whether this word, of a choice, is for a later version.
bool IsLaterChoice(const Key& key, std::string_view word) {
  return !key.later_choices.empty() && word == key.later_choices;
}

bool IsAvailable(const Key& key, const Raw& raw) {
  if (key.availability == Availability::kOffOnly) return raw.text != "true";
  return key.availability == Availability::kNow;
}

}  // namespace

void Findings::Add(std::vector<std::string>& list, std::string_view origin, std::string_view text) {
  list.push_back(origin.empty() ? std::string(text)
                                : std::string(origin) + ": " + std::string(text));
}

Settings::Settings(Findings& findings) : findings_(findings) {
  for (const Key& key : Keys()) {
    if (key.availability == Availability::kLater) continue;
    chosen_[key.name] = Setting{&key, Fallback(key), "default", Rank::kDefault};
  }
}

void Settings::Put(const Key& key, const Raw& raw, Rank rank, const std::string& origin) {
  const std::string name(key.name);
  if (!IsAvailable(key, raw)) {
    findings_.Error(origin, std::string(kNotInThisVersion) + name);
    return;
  }
  if (IsLaterChoice(key, raw.text)) {
    findings_.Error(origin, std::string(kNotInThisVersion) + name + " " + raw.text);
    return;
  }
  auto value = ReadValue(key.type, raw, key.bounds);
  if (!value.ok()) {
    findings_.Error(origin, name + " " + value.error().message);
    return;
  }
  Setting& setting = chosen_.at(key.name);
  if (rank >= setting.rank) setting = Setting{&key, std::move(value).value(), origin, rank};
}

Setting& Settings::operator[](std::string_view name) {
  const auto it = chosen_.find(name);
  LEAF_ASSERT(it != chosen_.end());
  return it->second;
}

const Setting& Settings::at(std::string_view name) const {
  const auto it = chosen_.find(name);
  LEAF_ASSERT(it != chosen_.end());
  return it->second;
}

void Settings::Default(std::string_view name, Value value, const std::string& origin, Rank rank) {
  Setting& setting = (*this)[name];
  if (setting.rank == Rank::kDefault)
    setting = Setting{setting.key, std::move(value), origin, rank};
}

std::string At(std::string_view file, int line) {
  return std::string(file) + ":" + std::to_string(line);
}

std::string Printable(std::string_view text) {
  constexpr std::size_t kLongest = 128;
  std::string result(text.substr(0, kLongest));
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return result + (text.size() > kLongest ? "..." : "");
}

}  // namespace leaf::config
