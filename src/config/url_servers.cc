// URLs that may name several servers: PostgreSQL and etcd.

#include <algorithm>
#include <array>
#include <cctype>

#include "base/host_lookup.h"
#include "config/url.h"

namespace leaf::url {
namespace {

constexpr int kPostgresPort = 5432, kEtcdPort = 2379;
constexpr std::array<std::string_view, 4> kPostgresParameters = {"sslmode", "sslrootcert",
                                                                 "sslcert", "sslkey"};
constexpr std::array<std::string_view, 4> kEtcdParameters = {"ssl-mode", "ssl-ca", "ssl-cert",
                                                             "ssl-key"};

/// "H1:P1,H2" as servers, each with its port; or, encoded, the folder of a socket.
Result<void> ReadServers(std::string_view authority, int port, StoreUrl& url) {
  for (;;) {
    const std::string_view entry = authority.substr(0, authority.find(','));
    StoreUrl one;
    one.port = port;
    if (entry.empty()) return Invalid("store.url: the host is missing");
    LEAF_RETURN_IF_ERROR(ReadHost(entry, one));
    if (one.host.starts_with('/')) {
      if (entry.size() != authority.size() || !url.servers.empty() || url.kind != "postgres")
        return Invalid("store.url: a unix socket stands alone, and in a postgres:// URL");
      url.servers = one.host;
      url.port = one.port;
      return {};
    }
    url.servers += (url.servers.empty() ? "" : ",") + ToString(HostPort{one.host, one.port});
    if (entry.size() == authority.size()) return {};
    authority.remove_prefix(entry.size() + 1);
  }
}

bool IsIn(std::string_view value, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), value) != all.end();
}

Result<void> CheckPostgresTls(StoreUrl& url) {
  auto& parameters = url.parameters;
  const bool socket = url.servers.starts_with('/');
  // Who names an authority wants the server verified.
  parameters.emplace("sslmode", parameters.contains("sslrootcert") ? "verify-full"
                                : socket                           ? "disable"
                                                                   : "prefer");
  const std::string& mode = parameters["sslmode"];
  if (!IsIn(mode, {"disable", "prefer", "require", "verify-ca", "verify-full"})) {
    return Invalid(
        "store.url: sslmode must be one of disable, prefer, require, verify-ca, verify-full");
  }
  const bool verifies = mode.starts_with("verify");
  if (socket && (verifies || mode == "require"))
    return Invalid("store.url: a socket has no TLS, but sslmode or sslrootcert asks for it");
  if (verifies && !parameters.contains("sslrootcert"))
    return Invalid("store.url: sslmode=" + mode + " needs sslrootcert, the authority's file");
  if (parameters.contains("sslrootcert") && !verifies) {
    return Invalid(
        "store.url: sslrootcert has no effect unless sslmode is verify-ca or verify-full");
  }
  if (parameters.contains("sslcert") != parameters.contains("sslkey"))
    return Invalid("store.url: sslcert and sslkey need each other");
  if (parameters.contains("sslcert") && mode == "disable")
    return Invalid("store.url: sslcert has no effect while sslmode is disable");
  return {};
}

/// What of a JDBC URL has other names in ours: 42.x of the driver verifies the server where `ssl`
/// is said without `sslmode`, but for a factory that does not.
struct JdbcTls {
  bool ssl = false, validates = true;
};

Result<bool> TakeJdbcParameter(const std::string& name, const std::string& value, JdbcTls& tls,
                               StoreUrl& url) {
  if (name == "user") {
    url.user = value;
  } else if (name == "password") {
    url.password = value;
  } else if (name == "ssl") {
    if (!IsIn(value, {"true", "false", ""}))
      return Invalid("store.url: the JDBC parameter ssl is true or false");
    tls.ssl = value != "false";
  } else if (name == "sslfactory") {
    tls.validates = value != "org.postgresql.ssl.NonValidatingFactory";
  } else if (name == "currentSchema") {
    const bool plain = std::all_of(value.begin(), value.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_';
    });
    if (!plain) {
      return Invalid(
          "store.url: the JDBC parameter currentSchema is not one plain name; drop it and say "
          "which "
          "schema has the table: store.table = \"SCHEMA.leaf_alloc\"");
    }
    url.schema = value;
  } else if (name == "options" && value.find("search_path") != std::string::npos) {
    return Invalid(
        "store.url: the JDBC parameter options sets search_path, which is not taken; drop it and "
        "set store.table = \"SCHEMA.leaf_alloc\"");
  } else {
    return false;
  }
  return true;
}

/// Of a JDBC URL: the user, the password, the schema and TLS; the rest is the Java driver's.
Result<void> TakeJdbcParameters(std::string_view query, StoreUrl& url) {
  JdbcTls tls;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const auto equals = pair.find('=');
    const auto name = PercentDecode(pair.substr(0, equals));
    const auto value =
        PercentDecode(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    if (!name || !value) return Invalid("store.url: the JDBC URL has a bad escape (% must be %25)");
    LEAF_ASSIGN_OR_RETURN(const bool taken, TakeJdbcParameter(*name, *value, tls, url));
    if (taken) continue;
    if (std::find(kPostgresParameters.begin(), kPostgresParameters.end(), *name) !=
        kPostgresParameters.end()) {
      LEAF_RETURN_IF_ERROR(TakeParameters(pair, kPostgresParameters, url));
    } else {
      LEAF_RETURN_IF_ERROR(RefuseAt(pair));
      url.warnings.push_back("the JDBC parameter " + PrintableName(*name) + " is not used");
    }
  }
  if (tls.ssl) url.parameters.emplace("sslmode", tls.validates ? "verify-full" : "require");
  return {};
}

}  // namespace

Result<StoreUrl> ParsePostgres(std::string_view rest, bool jdbc) {
  if (!rest.starts_with("//"))
    return Invalid("store.url: write postgres://USER:PASSWORD@HOST:PORT/DATABASE");
  StoreUrl result;
  result.kind = "postgres";
  result.port = kPostgresPort;
  Parts parts = Split(rest.substr(2));
  LEAF_RETURN_IF_ERROR(TakeUserInfo(parts.authority, result));
  LEAF_RETURN_IF_ERROR(ReadServers(parts.authority, kPostgresPort, result));
  LEAF_RETURN_IF_ERROR(ReadDatabase(parts.path, result));
  if (jdbc) {
    LEAF_RETURN_IF_ERROR(TakeJdbcParameters(parts.query, result));
  } else {
    LEAF_RETURN_IF_ERROR(TakeParameters(parts.query, kPostgresParameters, result));
    if (result.user.empty())
      return Invalid("store.url: the user is missing: postgres://USER:PASSWORD@HOST/DATABASE");
  }
  LEAF_RETURN_IF_ERROR(CheckPostgresTls(result));
  return result;
}

Result<StoreUrl> ParseEtcd(std::string_view rest) {
  if (!rest.starts_with("//")) return Invalid("store.url: write etcd://HOST:PORT,HOST:PORT/PREFIX");
  StoreUrl result;
  result.kind = "etcd";
  Parts parts = Split(rest.substr(2));
  LEAF_RETURN_IF_ERROR(TakeUserInfo(parts.authority, result));
  if (result.user.empty() != result.password.value_or("").empty() && result.password)
    return Invalid("store.url: write etcd://USER:PASSWORD@HOST:PORT/PREFIX");
  LEAF_RETURN_IF_ERROR(ReadServers(parts.authority, kEtcdPort, result));
  LEAF_RETURN_IF_ERROR(RefuseAt(parts.path));
  auto prefix = PercentDecode(parts.path);
  while (prefix && prefix->ends_with('/')) prefix->pop_back();
  if (!prefix || prefix->find("//") != std::string::npos || prefix->starts_with('/') ||
      std::any_of(prefix->begin(), prefix->end(),
                  [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; })) {
    return Invalid(
        "store.url: the prefix of etcd's keys is a path without blanks and empty parts: "
        "etcd://HOST:PORT/leafd");
  }
  result.path = "/" + (prefix->empty() ? "leafd" : *prefix);
  LEAF_RETURN_IF_ERROR(TakeParameters(parts.query, kEtcdParameters, result));
  const bool tls = !result.parameters.empty();
  result.parameters.emplace("ssl-mode", tls ? "verify-identity" : "disabled");
  if (result.parameters["ssl-mode"] == "preferred") {
    return Invalid(
        "store.url: etcd offers no choice; ssl-mode is disabled, required, verify-ca or "
        "verify-identity");
  }
  LEAF_RETURN_IF_ERROR(CheckTls(result));
  return result;
}

std::string DisplayServers(const StoreUrl& url) {
  if (url.kind == "etcd") return url.servers + PercentEncode(url.path, "/");
  if (!url.servers.starts_with('/')) return url.servers + "/" + PercentEncode(url.database);
  return PercentEncode(url.servers) + ":" + std::to_string(url.port) + "/" +
         PercentEncode(url.database);
}

}  // namespace leaf::url
