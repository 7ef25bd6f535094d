#pragma once

#include <string>

#include "leaf/result.h"
#include "store/options.h"

namespace leaf {

/// What StoreOptions ask of this driver, checked and spelt out. A plain value.
///
/// Parameters understood (StoreOptions::parameters); any other is an error:
/// - `ssl-mode`: `disabled`; `preferred` (TLS if the server offers it, nothing verified);
/// `required`
///   (TLS or no connection, nothing verified); `verify-ca` (its certificate must descend from
///   `ssl-ca`, or from one of the system's authorities); `verify-identity` (and must name `host`).
///   Default: `verify-identity` with `ssl-ca`, else `preferred`; a unix socket needs and takes no
///   TLS.
/// - `ssl-ca`, `ssl-cert`, `ssl-key`: PEM files; the last two belong together.
/// - `plugin-dir`: folder of libmariadb's authentication plugins, where it is not the built-in one.
/// - `server-public-key`: PEM file of the server's RSA key, for MySQL's caching_sha2_password
/// without
///   TLS; without it the key is taken from the server, unverified.
struct MysqlSettings {
  enum class Tls { kDisabled, kPreferred, kRequired, kVerifyCa, kVerifyIdentity };

  std::string host;  ///< empty with a unix socket
  int port = 0;
  std::string unix_socket;  ///< path, or empty
  std::string user, password;
  Tls tls = Tls::kPreferred;
  std::string ca, cert, key, plugin_dir, server_public_key;
  std::string schema, table;  ///< [A-Za-z0-9_$-]+, not quoted
  Duration timeout{};         ///< bound on one call
};

/// kInvalidArgument: an unknown or contradictory parameter, a name with other characters, no
/// database.
Result<MysqlSettings> ParseMysqlSettings(const StoreOptions& options);

/// `schema`.`table`, quoted.
std::string QuotedTable(const MysqlSettings& settings);

/// The statement that makes Leaf's table.
std::string LeafTableDdl(const MysqlSettings& settings);

}  // namespace leaf
