#include "store/postgres/postgres_settings.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace leaf {
namespace {

constexpr int kPort = 5432;
constexpr std::array<std::string_view, 5> kModes = {"disable", "prefer", "require", "verify-ca",
                                                    "verify-full"};

Error Invalid(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

Result<void> TakeParameters(const StoreOptions& options, PostgresSettings& settings) {
  for (const auto& [name, value] : options.parameters) {
    if (name == "sslmode") {
      settings.sslmode = value;
    } else if (name == "sslrootcert") {
      settings.sslrootcert = value;
    } else if (name == "sslcert") {
      settings.sslcert = value;
    } else if (name == "sslkey") {
      settings.sslkey = value;
    } else {
      return Invalid("postgres: unknown parameter " + name +
                     " (there are sslmode, sslrootcert, sslcert, sslkey)");
    }
  }
  if (settings.sslmode.empty())
    settings.sslmode = settings.sslrootcert.empty() ? "prefer" : "verify-full";
  if (std::find(kModes.begin(), kModes.end(), settings.sslmode) == kModes.end()) {
    return Invalid("postgres: sslmode is disable, prefer, require, verify-ca or verify-full, not " +
                   settings.sslmode);
  }
  const bool verifies = settings.sslmode.starts_with("verify");
  if (verifies && settings.sslrootcert.empty()) {
    return Invalid("postgres: sslmode=" + settings.sslmode +
                   " needs sslrootcert, the file of the authority's certificate");
  }
  if (!verifies && !settings.sslrootcert.empty()) {
    return Invalid(
        "postgres: sslrootcert has no effect unless sslmode is verify-ca or verify-full");
  }
  if (settings.sslcert.empty() != settings.sslkey.empty())
    return Invalid("postgres: sslcert and sslkey belong together");
  return {};
}

}  // namespace

Result<PostgresSettings> ParsePostgresSettings(const StoreOptions& options) {
  PostgresSettings settings;
  if (options.servers.starts_with('/')) {
    settings.servers = {HostPort{options.servers, options.port}};
  } else {
    auto servers = ParseHostPorts(options.servers, kPort);
    if (!servers.ok()) return Invalid("postgres: " + servers.error().message);
    settings.servers = std::move(*servers);
  }
  settings.database = options.database;
  settings.user = options.user;
  settings.password = options.password;
  settings.timeout = options.timeout;
  if (settings.database.empty()) return Invalid("postgres: the database is missing");
  if (settings.user.empty()) return Invalid("postgres: the user is missing");
  LEAF_RETURN_IF_ERROR(TakeParameters(options, settings));
  const auto dot = options.table.find('.');
  if (dot != std::string::npos) settings.schema = options.table.substr(0, dot);
  settings.table = dot == std::string::npos ? options.table : options.table.substr(dot + 1);
  return settings;
}

std::string QuotedName(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string QuotedTable(const PostgresSettings& settings) {
  return (settings.schema.empty() ? "" : QuotedName(settings.schema) + ".") +
         QuotedName(settings.table);
}

std::string LeafTableDdl(const PostgresSettings& settings) {
  return "CREATE TABLE " + QuotedTable(settings) +
         " (biz_tag varchar(128) NOT NULL DEFAULT '' PRIMARY KEY, max_id bigint NOT NULL DEFAULT "
         "1, step int NOT NULL, description varchar(256) DEFAULT NULL, update_time timestamp NOT "
         "NULL DEFAULT CURRENT_TIMESTAMP);";
}

}  // namespace leaf
