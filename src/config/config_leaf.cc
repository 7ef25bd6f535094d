#include "config/config_leaf.h"

#include <algorithm>
#include <array>
#include <map>

#include "config/properties.h"
#include "config/registry_url.h"
#include "config/url.h"

namespace leaf::config {
namespace {

constexpr std::string_view kPort = "server.port";
constexpr std::string_view kAddress = "server.address";
constexpr std::int64_t kMaxPort = 65535;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\f";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool IsWord(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

class LeafReader {
 public:
  LeafReader(std::string_view file, Settings& settings, Findings& findings)
      : file_(file), settings_(settings), findings_(findings) {
    leaf_.file = file;
  }

  LeafFile Read(std::string_view bytes);

 private:
  void Collect(const PropertiesFile& properties);
  void CheckName(const Property& property);
  const Property* Find(std::string_view name) const;
  /// The property under either name; both with differing values are an error.
  const Property* Pick(std::string_view name, std::string_view alias);
  /// As Java reads a boolean: "true" in any case, else false. Absent means true.
  bool Flag(std::string_view name, std::string& origin);
  static std::optional<std::int64_t> Number(const Property& property, std::int64_t max);
  void ReadListen();
  void ReadSegment();
  void ReadSnowflake();
  void ReadZooKeeper();
  void ReadNode();
  /// What is wrong, unless a stronger source gives `key`.
  void SnowflakeProblem(std::string_view key, const Property* property, std::string_view text);
  void BeLeaf(std::string_view key, std::string text);

  std::string Where(const Property& property) const { return At(file_, property.line); }

  const std::string file_;
  Settings& settings_;
  Findings& findings_;
  std::map<std::string, Property, std::less<>> entries_;
  LeafFile leaf_;
};

LeafFile LeafReader::Read(std::string_view bytes) {
  const PropertiesFile properties = ParseProperties(bytes);
  for (const auto& note : properties.errors) findings_.Error(At(file_, note.line), note.text);
  for (const auto& note : properties.warnings) findings_.Warn(At(file_, note.line), note.text);
  leaf_.broken = !properties.errors.empty();
  Collect(properties);
  ReadListen();
  ReadSegment();
  ReadSnowflake();
  BeLeaf("compat.leaf", "true");
  BeLeaf("store.min_durability", "process");
  BeLeaf("segment.policy", "leaf");
  return std::move(leaf_);
}

void LeafReader::Collect(const PropertiesFile& properties) {
  for (const Property& property : properties.entries) {
    CheckName(property);
    const auto it = entries_.find(property.key);
    if (it != entries_.end()) {
      findings_.Warn(Where(property), Printable(property.key) +
                                          " is given again; this one counts, not that of line " +
                                          std::to_string(it->second.line));
    }
    entries_.insert_or_assign(property.key, property);
  }
}

void LeafReader::CheckName(const Property& property) {
  const std::vector<std::string> names = LeafNames();
  if (std::find(names.begin(), names.end(), property.key) != names.end()) return;
  const std::string text =
      "unknown key \"" + Printable(property.key) + "\"" + SuggestionText(property.key, names);
  if (property.key.starts_with("leaf.")) {
    findings_.Error(Where(property), text);
  } else {
    findings_.Warn(Where(property), text + "; not used");
  }
}

const Property* LeafReader::Find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

const Property* LeafReader::Pick(std::string_view name, std::string_view alias) {
  const Property* first = Find(name);
  const Property* second = Find(alias);
  if (first != nullptr && second != nullptr && first->value != second->value) {
    findings_.Error(Where(*first), std::string(name) + " and " + std::string(alias) + " (" +
                                       Where(*second) + ") mean the same and differ; keep one");
  }
  return first != nullptr ? first : second;
}

bool LeafReader::Flag(std::string_view name, std::string& origin) {
  const Property* property = Find(name);
  origin = property == nullptr ? file_ : Where(*property);
  if (property == nullptr) return true;
  const bool on = IsWord(property->value, "true");
  if (!on && IsWord(Trim(property->value), "true")) {
    findings_.Warn(origin,
                   std::string(name) + " is false, as in Java, because of blanks behind \"true\"");
  } else if (!on && !IsWord(Trim(property->value), "false")) {
    findings_.Warn(origin, std::string(name) + " is false, as in Java, because it is not \"true\"");
  }
  return on;
}

std::optional<std::int64_t> LeafReader::Number(const Property& property, std::int64_t max) {
  const auto number = ParseInteger(Trim(property.value));
  if (number.ok() && *number >= 0 && *number <= max) return *number;
  return std::nullopt;
}

void LeafReader::ReadListen() {
  const Property* port = Find(kPort);
  const Property* address = Find(kAddress);
  std::string listen = "0.0.0.0";
  if (address != nullptr && !Trim(address->value).empty()) {
    listen = Trim(address->value);
    if (listen.find(':') != std::string::npos) listen = "[" + listen + "]";
  }
  const auto number = port == nullptr ? std::optional<std::int64_t>(8080) : Number(*port, kMaxPort);
  if (!number) findings_.Error(Where(*port), "server.port must be a number from 0 to 65535");
  const Raw raw{Raw::Form::kPlain, listen + ":" + std::to_string(number.value_or(0)), {}};
  const Property* said = port != nullptr ? port : address;
  settings_.Put(*FindKey("server.listen"), raw, said == nullptr ? Rank::kBeLeaf : Rank::kFile,
                said == nullptr ? file_ : Where(*said));
}

void LeafReader::ReadSegment() {
  const bool on = Flag("leaf.segment.enable", leaf_.segment_origin);
  settings_.Put(*FindKey("segment.enabled"), {Raw::Form::kBool, on ? "true" : "false", {}},
                Rank::kFile, leaf_.segment_origin);
  const Property* url = Pick("leaf.jdbc.url", "leaf.segment.url");
  const Property* user = Pick("leaf.jdbc.username", "leaf.segment.username");
  const Property* password = Pick("leaf.jdbc.password", "leaf.segment.password");
  if (user != nullptr) leaf_.user = LeafFile::Text{user->value, Where(*user)};
  if (password != nullptr) leaf_.password = LeafFile::Text{password->value, Where(*password)};
  if (url == nullptr || Trim(url->value).empty()) return;
  if (Trim(url->value).size() != url->value.size()) {
    findings_.Warn(Where(*url), url->key + " ends in blanks; read without them");
  }
  settings_.Put(*FindKey("store.url"), {Raw::Form::kPlain, std::string(Trim(url->value)), {}},
                Rank::kFile, Where(*url));
}

void LeafReader::SnowflakeProblem(std::string_view key, const Property* property,
                                  std::string_view text) {
  const std::string where = property == nullptr ? leaf_.snowflake_origin : Where(*property);
  leaf_.snowflake_problems.push_back(
      {std::string(key),
       where + ": " + std::string(text) + "; or switch the mode off: leaf.snowflake.enable=false"});
}

void LeafReader::ReadSnowflake() {
  leaf_.snowflake_on = Flag("leaf.snowflake.enable", leaf_.snowflake_origin);
  settings_.Put(*FindKey("snowflake.enabled"),
                {Raw::Form::kBool, leaf_.snowflake_on ? "true" : "false", {}}, Rank::kFile,
                leaf_.snowflake_origin);
  ReadZooKeeper();
  ReadNode();
  const Property* name = Find("leaf.name");
  if (name != nullptr) {
    settings_.Put(*FindKey("snowflake.name"), {Raw::Form::kPlain, name->value, {}}, Rank::kFile,
                  Where(*name));
  } else {
    BeLeaf("snowflake.name", "null");  // as Java writes what is not there
  }
}

void LeafReader::ReadZooKeeper() {
  const Property* address = Pick("leaf.snowflake.zk.address", "leaf.snowflake.address");
  const std::string_view text = address == nullptr ? std::string_view() : Trim(address->value);
  if (text.empty()) {
    SnowflakeProblem("snowflake.registry", address,
                     "snowflake mode is on, but leaf.snowflake.zk.address is missing");
  } else if (!IsZooKeeperAddress(text)) {
    SnowflakeProblem("snowflake.registry", address, address->key + " must be HOST:PORT,HOST:PORT");
  } else {
    const auto slash = text.find('/');
    std::string url = "zookeeper://" + std::string(text.substr(0, slash)) + "/";
    if (slash != std::string_view::npos) url += PercentEncode(text.substr(slash + 1), "/");
    settings_.Put(*FindKey("snowflake.registry"), {Raw::Form::kPlain, url + "?layout=leaf", {}},
                  Rank::kFile, Where(*address));
  }
}

void LeafReader::ReadNode() {
  const Property* port = Find("leaf.snowflake.port");
  const auto number = port == nullptr ? std::nullopt : Number(*port, kMaxPort);
  if (port == nullptr) {
    SnowflakeProblem("snowflake.identity", port,
                     "snowflake mode is on, but leaf.snowflake.port is missing");
  } else if (!number) {
    SnowflakeProblem("snowflake.identity", port,
                     "leaf.snowflake.port must be a number from 0 to 65535");
  } else {
    // Leaf reads a number, so that 08080 makes the node of 8080.
    leaf_.snowflake_port = LeafFile::Text{std::to_string(*number), Where(*port)};
  }
}

void LeafReader::BeLeaf(std::string_view key, std::string text) {
  settings_.Put(*FindKey(key), {Raw::Form::kPlain, std::move(text), {}}, Rank::kBeLeaf, file_);
}

void FinishSegment(const LeafFile& leaf, const Settings& settings, Findings& findings) {
  if (leaf.broken || !settings.at("segment.enabled").value.flag) return;
  const Setting& url = settings.at("store.url");
  if (url.rank < Rank::kFile) {
    findings.Error(
        leaf.segment_origin,
        "segment mode is on, but leaf.jdbc.url is missing; set it, or switch the mode off: "
        "leaf.segment.enable=false");
  }
}

void FinishSnowflake(const LeafFile& leaf, const Settings& settings, Findings& findings) {
  if (leaf.broken || !settings.at("snowflake.enabled").value.flag) return;
  for (const LeafFile::Problem& problem : leaf.snowflake_problems) {
    if (settings.at(problem.key).rank <= Rank::kFile) findings.errors.push_back(problem.text);
  }
  const Setting& name = settings.at("snowflake.name");
  if (name.rank == Rank::kBeLeaf) {
    findings.Warn(leaf.file,
                  "leaf.name is missing: the cluster is called \"null\", as Leaf's is then");
  }
}

/// Says at start what the kind of the file has decided.
void NoteBeLeaf(const LeafFile& leaf, const Settings& settings, Findings& findings) {
  for (const std::string_view name :
       {"server.listen", "compat.leaf", "compat.cut_after_dot", "compat.pages_on_main",
        "segment.policy", "store.min_durability"}) {
    const Setting& setting = settings.at(name);
    if (setting.rank != Rank::kBeLeaf && !(name == "server.listen" && setting.rank == Rank::kFile))
      continue;
    findings.notices.push_back(std::string(name) + " = " +
                               FormatValue(setting.key->type, setting.value) + ", because " +
                               leaf.file + " is a .properties file");
  }
  if (settings.at("store.min_durability").rank == Rank::kBeLeaf &&
      settings.at("segment.enabled").value.flag) {
    findings.Warn(leaf.file,
                  "store.min_durability is \"process\", as Leaf demands no more: a database that "
                  "does not flush each "
                  "commit can forget the last ones at a power loss, and ids repeat; set "
                  "LEAFD_STORE_MIN_DURABILITY=power "
                  "where it does");
  }
}

}  // namespace

LeafFile ReadLeafFile(std::string_view file, std::string_view bytes, Settings& settings,
                      Findings& findings) {
  return LeafReader(file, settings, findings).Read(bytes);
}

void FinishLeafFile(const LeafFile& leaf, const Settings& settings, Findings& findings) {
  FinishSegment(leaf, settings, findings);
  FinishSnowflake(leaf, settings, findings);
  NoteBeLeaf(leaf, settings, findings);
}

}  // namespace leaf::config
