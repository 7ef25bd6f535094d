#include "config/config_store.h"

#include <algorithm>

#include "config/config_files.h"
#include "config/config_snowflake.h"
#include "config/url.h"

namespace leaf::config {
namespace {

bool IsTableName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void CheckTable(const Setting& table, std::string_view kind, Findings& findings) {
  const std::string_view text = table.value.text;
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) {
    if (!IsTableName(text))
      findings.Error(table.origin,
                     "store.table must be 1 to 64 of [A-Za-z0-9_], or DATABASE.TABLE (postgres: "
                     "SCHEMA.TABLE)");
  } else if (!IsTableName(text.substr(0, dot)) || !IsTableName(text.substr(dot + 1))) {
    findings.Error(
        table.origin,
        "store.table must be 1 to 64 of [A-Za-z0-9_], or DATABASE.TABLE (postgres: SCHEMA.TABLE)");
  } else if (kind != "mysql" && kind != "postgres") {
    findings.Error(table.origin,
                   "store.table: DATABASE.TABLE is for mysql, SCHEMA.TABLE for postgres only");
  }
}

void CheckFiles(const StoreUrl& url, const std::string& origin, Findings& findings) {
  for (const char* name :
       {"ssl-ca", "ssl-cert", "ssl-key", "server-public-key", "sslrootcert", "sslcert", "sslkey"}) {
    const auto it = url.parameters.find(name);
    if (it == url.parameters.end()) continue;
    const auto readable = CheckReadable(it->second);
    if (!readable.ok()) {
      findings.Error(
          origin, "store.url: the file of " + std::string(name) + " " + readable.error().message);
    }
  }
}

/// leaf.jdbc.username and .password belong to the URL of the same file; one given more strongly
/// brings its own.
void TakeLeafCredentials(const LeafFile& leaf, StoreUrl& url, Findings& findings) {
  if (leaf.user) url.user = leaf.user->text;
  if (!leaf.password) return;
  url.password = leaf.password->text;
  if (url.password->ends_with(' ') || url.password->ends_with('\t')) {
    findings.Warn(leaf.password->origin, "the password ends in a blank, which is kept, as in Java");
  }
}

void TakePasswordFile(const Setting& file, const Setting& url_setting, StoreUrl& url,
                      Findings& findings) {
  if (file.value.text.empty()) return;
  if (url.kind == "sqlite" || url.kind == "memory") {
    findings.Error(file.origin, "store.password_file: a " + url.kind + " store has no password");
    return;
  }
  if (url.password && file.rank <= url_setting.rank) {
    findings.Error(file.origin, "store.password_file: the URL (" + url_setting.origin +
                                    ") has a password as well; keep one");
    return;
  }
  auto password = ReadPasswordFile(file.value.text);
  if (!password.ok()) {
    findings.Error(file.origin, "store.password_file: " + Printable(file.value.text) + " " +
                                    password.error().message);
    return;
  }
  url.password = std::move(password).value();
}

void CheckDurability(const Settings& settings, std::string_view kind, Findings& findings) {
  const Setting& durability = settings.at("store.min_durability");
  if (kind == "memory" && durability.value.text != "volatile") {
    findings.Error(settings.at("store.url").origin,
                   "memory: forgets every id when leafd ends, so ids repeat after a restart; if "
                   "that is meant, set "
                   "store.min_durability = \"volatile\"");
  } else if (kind == "sqlite" && durability.value.text == "replicated") {
    findings.Error(durability.origin,
                   "store.min_durability: sqlite keeps one copy and is never \"replicated\"");
  }
}

std::string AbsolutePath(const std::string& path, const std::string& folder) {
  return path.starts_with('/') ? path : folder + "/" + path;
}

void Fill(StoreUrl url, Config& config) {
  StoreOptions& store = config.store;
  if (url.kind == "sqlite") url.path = AbsolutePath(url.path, config.server.state_dir);
  store.display_url = DisplayUrl(url);
  store.kind = std::move(url.kind);
  store.path = std::move(url.path);
  store.host = std::move(url.host);
  store.port = url.port;
  store.servers = std::move(url.servers);
  store.database = std::move(url.database);
  store.user = std::move(url.user);
  store.password = std::move(url.password).value_or("");
  store.parameters = std::move(url.parameters);
  if (!url.schema.empty() && store.table.find('.') == std::string::npos)
    store.table = url.schema + "." + store.table;
}

}  // namespace

void ResolveStore(const Settings& settings, const LeafFile* leaf, Config& config,
                  Findings& findings) {
  const Setting& setting = settings.at("store.url");
  const bool of_leaf = leaf != nullptr && setting.rank == Rank::kFile;
  auto parsed = ParseStoreUrl(setting.value.text);
  if (!parsed.ok()) {
    // As Leaf, which does not look at the address of a mode that is off.
    const bool unused = of_leaf && !config.segment.enabled && !KeepsWorkersInStore(config);
    unused ? findings.Warn(setting.origin, parsed.error().message)
           : findings.Error(setting.origin, parsed.error().message);
    return;
  }
  StoreUrl url = std::move(parsed).value();
  for (const std::string& warning : url.warnings) findings.Warn(setting.origin, warning);
  if (of_leaf) TakeLeafCredentials(*leaf, url, findings);
  const bool needed = config.segment.enabled || KeepsWorkersInStore(config);
  if ((url.kind == "mysql" || url.kind == "postgres") && url.user.empty() && needed) {
    findings.Error(setting.origin,
                   of_leaf ? "leaf.jdbc.username is missing" : "store.url: the user is missing");
  }
  TakePasswordFile(settings.at("store.password_file"), setting, url, findings);
  if (url.password == "***") {
    findings.Warn(
        setting.origin,
        "the password is \"***\", which --print-config shows in place of one; is the real "
        "one missing?");
  }
  CheckFiles(url, setting.origin, findings);
  CheckTable(settings.at("store.table"), url.kind, findings);
  if (needed) CheckDurability(settings, url.kind, findings);
  Fill(std::move(url), config);
}

}  // namespace leaf::config
