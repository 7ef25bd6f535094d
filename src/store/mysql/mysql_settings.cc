#include "store/mysql/mysql_settings.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace leaf {
namespace {

using Tls = MysqlSettings::Tls;

Error Invalid(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

// Names are quoted, but never escaped: only characters that need none are let in.
bool PlainName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '-';
  });
}

std::optional<Tls> TlsByName(std::string_view name) {
  if (name == "disabled") return Tls::kDisabled;
  if (name == "preferred") return Tls::kPreferred;
  if (name == "required") return Tls::kRequired;
  if (name == "verify-ca") return Tls::kVerifyCa;
  if (name == "verify-identity") return Tls::kVerifyIdentity;
  return std::nullopt;
}

Result<void> ReadParameters(const StoreOptions& options, MysqlSettings& to,
                            std::optional<Tls>& mode) {
  for (const auto& [key, value] : options.parameters) {
    if (key == "ssl-mode") {
      mode = TlsByName(value);
      if (!mode) {
        return Invalid("ssl-mode '" + value +
                       "' is none of disabled, preferred, required, verify-ca, verify-identity");
      }
    } else if (key == "ssl-ca") {
      to.ca = value;
    } else if (key == "ssl-cert") {
      to.cert = value;
    } else if (key == "ssl-key") {
      to.key = value;
    } else if (key == "plugin-dir") {
      to.plugin_dir = value;
    } else if (key == "server-public-key") {
      to.server_public_key = value;
    } else {
      return Invalid("unknown parameter '" + key +
                     "' of a mysql store; known are ssl-mode, ssl-ca, ssl-cert, ssl-key, "
                     "plugin-dir, server-public-key");
    }
  }
  return {};
}

Result<void> SettleTls(std::optional<Tls> mode, MysqlSettings& to) {
  if (to.cert.empty() != to.key.empty()) return Invalid("ssl-cert and ssl-key belong together");
  if (!to.unix_socket.empty()) {
    if (mode && *mode != Tls::kDisabled && *mode != Tls::kPreferred) {
      return Invalid(
          "ssl-mode asks for TLS, but a unix socket has none; leave it out or set "
          "ssl-mode=disabled");
    }
    to.tls = Tls::kDisabled;
    return {};
  }
  to.tls = mode.value_or(to.ca.empty() ? Tls::kPreferred : Tls::kVerifyIdentity);
  if (to.tls < Tls::kVerifyCa && !to.ca.empty()) {
    return Invalid(
        "ssl-ca is given, but ssl-mode does not verify; use verify-ca or verify-identity");
  }
  return {};
}

}  // namespace

Result<MysqlSettings> ParseMysqlSettings(const StoreOptions& options) {
  MysqlSettings to;
  if (options.host.starts_with('/')) {
    to.unix_socket = options.host;
  } else if (options.host.empty() || options.port <= 0 || options.port > 65535) {
    return Invalid("a mysql store needs a host and a port from 1 to 65535");
  } else {
    to.host = options.host;
    to.port = options.port;
  }
  to.user = options.user;
  to.password = options.password;
  to.timeout = options.timeout;

  const std::size_t dot = options.table.find('.');
  to.schema = dot == std::string::npos ? options.database : options.table.substr(0, dot);
  to.table = dot == std::string::npos ? options.table : options.table.substr(dot + 1);
  if (to.schema.empty()) return Invalid("store.url names no database: mysql://HOST:PORT/DATABASE");
  if (!PlainName(to.schema) || !PlainName(to.table)) {
    return Invalid("the table '" + to.schema + "." + to.table +
                   "' has characters other than letters, digits, '_', '$' and '-'");
  }

  std::optional<Tls> mode;
  LEAF_RETURN_IF_ERROR(ReadParameters(options, to, mode));
  LEAF_RETURN_IF_ERROR(SettleTls(mode, to));
  return to;
}

std::string QuotedTable(const MysqlSettings& settings) {
  return "`" + settings.schema + "`.`" + settings.table + "`";
}

std::string LeafTableDdl(const MysqlSettings& settings) {
  return "CREATE TABLE " + QuotedTable(settings) +
         " (`biz_tag` varchar(128) NOT NULL DEFAULT '', `max_id` bigint(20) NOT NULL DEFAULT '1', "
         "`step` int(11) NOT NULL, "
         "`description` varchar(256) DEFAULT NULL, `update_time` timestamp NOT NULL DEFAULT "
         "CURRENT_TIMESTAMP ON UPDATE "
         "CURRENT_TIMESTAMP, PRIMARY KEY (`biz_tag`)) ENGINE=InnoDB;";
}

}  // namespace leaf
