#include "config/config.h"

#include <algorithm>
#include <optional>
#include <set>

#include "config/config_checks.h"
#include "config/config_expand.h"
#include "config/config_files.h"
#include "config/config_leaf.h"
#include "config/config_settings.h"
#include "config/config_snowflake.h"
#include "config/config_store.h"
#include "config/config_toml.h"
#include "config/registry_url.h"
#include "config/url.h"

// From the sources to a Config: each source puts its values into Settings, which keeps the
// strongest; defaults that depend on the host or on other keys follow; then the values are applied,
// the store's URL is resolved, and everything is checked together. Nothing stops at the first
// finding.

namespace leaf {
namespace {

using namespace config;

using Environment = std::map<std::string, std::string>;

constexpr std::string_view kPrefix = "LEAFD_";
constexpr std::int64_t kReservedFiles = 64;

class Loader {
 public:
  Loader(const CommandLine& command_line, const Environment& environment)
      : command_line_(command_line), environment_(environment), settings_(findings_) {}

  Result<Config> Load();

 private:
  void ReadFile();
  void ReadTomlFile(std::string_view bytes);
  void TakeToml(const TomlEntry& entry, std::set<std::string>& seen);
  void ReadEnvironment();
  void ReadFlags();
  void ResolveDefaults();
  void ResolveConnections();
  void Apply(Config& config);
  void WarnOfReadableSecret();
  void WarnOfReadableRegistry();
  void ListItems(Config& config);

  const CommandLine& command_line_;
  const Environment& environment_;
  Findings findings_;
  Settings settings_;
  std::optional<LeafFile> leaf_;
  bool file_is_public_ = false;
  bool url_has_variable_ = false, registry_has_variable_ = false;
};

Result<Config> Loader::Load() {
  ReadFile();
  ReadEnvironment();
  ReadFlags();
  ResolveDefaults();
  Config config;
  Apply(config);
  if (!findings_.errors.empty()) {
    std::string message;
    for (const std::string& line : findings_.errors)
      message += (message.empty() ? "" : "\n") + line;
    return Error{Code::kInvalidArgument, message};
  }
  ListItems(config);
  config.warnings = std::move(findings_.warnings);
  config.notices = std::move(findings_.notices);
  return config;
}

void Loader::ReadFile() {
  const std::string& file = command_line_.config_file;
  if (file.empty()) return;
  const auto text = ReadConfigFile(file);
  if (!text.ok()) {
    findings_.Error(file, text.error().message);
    return;
  }
  file_is_public_ = text->others_can_read;
  if (file.ends_with(".properties")) {
    leaf_ = ReadLeafFile(file, text->bytes, settings_, findings_);
  } else {
    ReadTomlFile(text->bytes);
  }
}

void Loader::ReadTomlFile(std::string_view bytes) {
  const std::string& file = command_line_.config_file;
  const TomlFile toml = ParseToml(bytes);
  if (toml.problem) {
    findings_.Error(At(file, toml.problem->line) + ":" + std::to_string(toml.problem->column),
                    toml.problem->text);
    return;
  }
  std::set<std::string> seen;
  for (const TomlEntry& entry : toml.entries) TakeToml(entry, seen);
}

void Loader::TakeToml(const TomlEntry& entry, std::set<std::string>& seen) {
  const std::string origin = At(command_line_.config_file, entry.line);
  const Key* key = FindKey(entry.key);
  if (key == nullptr && IsSection(entry.key)) {
    if (entry.raw.form != Raw::Form::kTable)
      findings_.Error(origin, entry.key + " is a section, not a key");
    return;
  }
  if (key == nullptr) {
    findings_.Error(origin, "unknown key \"" + Printable(entry.key) + "\"" + SuggestKey(entry.key));
    return;
  }
  if (!seen.insert(entry.key).second) {
    findings_.Error(origin, entry.key + " is given twice");
    return;
  }
  Raw raw = entry.raw;
  const auto expanded = ExpandRaw(raw, environment_);
  if (!expanded.ok()) {
    findings_.Error(origin, entry.key + ": " + expanded.error().message);
    return;
  }
  if (key->name == "store.url") url_has_variable_ = *expanded;
  if (key->name == "snowflake.registry") registry_has_variable_ = *expanded;
  settings_.Put(*key, raw, Rank::kFile, origin);
}

void Loader::ReadEnvironment() {
  std::set<std::string> known;
  for (const Key& key : Keys()) {
    const std::string name = EnvironmentName(key);
    known.insert(name);
    const auto it = environment_.find(name);
    if (it == environment_.end()) continue;
    settings_.Put(key, {Raw::Form::kPlain, it->second, {}}, Rank::kEnvironment,
                  "environment " + name);
  }
  const std::vector<std::string> names(known.begin(), known.end());
  for (auto it = environment_.lower_bound(std::string(kPrefix)); it != environment_.end(); ++it) {
    if (!it->first.starts_with(kPrefix)) break;
    if (known.contains(it->first)) continue;
    findings_.Warn("environment " + Printable(it->first),
                   "no key has this name; not used" + SuggestionText(it->first, names));
  }
}

void Loader::ReadFlags() {
  std::map<std::string_view, std::string> seen;
  std::vector<std::string> listeners;
  for (const auto& [name, value] : command_line_.settings) {
    const bool is_set = !name.starts_with("--");
    const std::string key_name = is_set ? name : name == "--listen" ? "server.listen" : "store.url";
    const Key* key = FindKey(key_name);
    const std::string origin = is_set ? "flag --set" : "flag " + name;
    if (key == nullptr) {
      findings_.Error(origin, "unknown key \"" + Printable(name) + "\"" + SuggestKey(name));
      continue;
    }
    const auto [it, first] = seen.emplace(key->name, origin);
    if (!first && !(name == "--listen" && it->second == origin)) {
      findings_.Error(origin, key_name + " is given twice");
      continue;
    }
    Raw raw{Raw::Form::kPlain, value, {}};
    if (name == "--listen") {
      listeners.push_back(value);
      raw = Raw{Raw::Form::kStrings, "", listeners};
    }
    settings_.Put(*key, raw, Rank::kFlag, origin);
  }
}

void Loader::ResolveDefaults() {
  if (settings_.at("server.state_dir").rank == Rank::kDefault) {
    Value folder;
    const auto path = DefaultStateDir(environment_, "/var/lib/leafd");
    if (path.ok()) {
      folder.text = *path;
    } else {
      findings_.Error("default", path.error().message);
    }
    settings_.Default("server.state_dir", folder, "default");
  }
  // The two parts of compat.leaf go with it, and are as strong as it is when a .properties file set
  // it.
  const Setting leaf = settings_.at("compat.leaf");
  const bool be_leaf = leaf.rank == Rank::kBeLeaf;
  for (const char* name : {"compat.cut_after_dot", "compat.pages_on_main"}) {
    settings_.Default(name, leaf.value, be_leaf ? leaf.origin : "default, as compat.leaf",
                      be_leaf ? Rank::kBeLeaf : Rank::kDefault);
  }
  Value alone;
  const std::string& url = settings_.at("store.url").value.text;
  alone.flag = url.starts_with("sqlite:") || url.starts_with("memory:");
  settings_.Default("segment.auto_create", alone, "default");
  ResolveConnections();
}

void Loader::ResolveConnections() {
  const std::int64_t limit = std::max<std::int64_t>(1, OpenFileLimit() - kReservedFiles);
  Setting& connections = settings_["server.max_connections"];
  if (connections.value.number <= limit) return;
  const std::string reason = "the limit of open files less " + std::to_string(kReservedFiles);
  if (connections.rank != Rank::kDefault) {
    findings_.Warn(connections.origin,
                   "server.max_connections is reduced to " + std::to_string(limit) + ", " + reason);
  }
  connections.value.number = limit;
  connections.origin += ", reduced to " + reason;
}

void Loader::Apply(Config& config) {
  for (const Key& key : Keys()) {
    if (key.availability != Availability::kLater) key.apply(config, settings_.at(key.name).value);
  }
  const LeafFile* leaf = leaf_ ? &*leaf_ : nullptr;
  if (leaf != nullptr) FinishLeafFile(*leaf, settings_, findings_);
  ResolveSnowflake(settings_, leaf, config, findings_);
  ResolveStore(settings_, leaf, config, findings_);
  CheckLocalRegistry(settings_, config);
  CheckTogether(settings_, config, findings_);
  WarnOfReadableSecret();
  WarnOfReadableRegistry();
}

void Loader::WarnOfReadableSecret() {
  const Setting& url = settings_.at("store.url");
  if (!file_is_public_ || url.rank != Rank::kFile || url_has_variable_) return;
  const auto parsed = ParseStoreUrl(url.value.text);
  const bool in_leaf = leaf_ && leaf_->password && !leaf_->password->text.empty();
  if (!in_leaf && !(parsed.ok() && parsed->password && !parsed->password->empty())) return;
  findings_.Warn(in_leaf ? leaf_->password->origin : url.origin,
                 "every user of this host can read the password; chmod 0640 the file");
}

void Loader::WarnOfReadableRegistry() {
  const Setting& registry = settings_.at("snowflake.registry");
  if (!file_is_public_ || registry.rank != Rank::kFile || registry_has_variable_) return;
  const auto parsed = ParseRegistryUrl(registry.value.text);
  if (!parsed.ok() || parsed->password.empty()) return;
  findings_.Warn(registry.origin,
                 "every user of this host can read the password of snowflake.registry; chmod 0640 "
                 "the file");
}

void Loader::ListItems(Config& config) {
  for (const Key& key : Keys()) {
    if (key.availability == Availability::kLater) continue;
    const Setting& setting = settings_.at(key.name);
    std::string value =
        key.secret ? QuoteToml(key.name == "store.url" ? config.store.display_url
                                                       : config.snowflake.registry.display_url)
                   : FormatValue(key.type, setting.value);
    if (key.name == "snowflake.identity") value = QuoteToml(config.snowflake.registry.identity);
    config.items.push_back({std::string(key.name), std::move(value), Printable(setting.origin)});
  }
}

}  // namespace

Result<Config> LoadConfig(const CommandLine& command_line, const Environment& environment) {
  return Loader(command_line, environment).Load();
}

}  // namespace leaf
