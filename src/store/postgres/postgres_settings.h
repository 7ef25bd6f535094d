#pragma once

#include <string>
#include <vector>

#include "base/host_lookup.h"
#include "leaf/result.h"
#include "store/options.h"

namespace leaf {

/// What StoreOptions ask of this driver, checked and spelt out. A plain value.
///
/// Parameters understood (StoreOptions::parameters) are libpq's; any other is an error:
/// - `sslmode`: `disable`, `prefer` (TLS if the server offers it, nothing verified), `require`
///   (TLS or no connection, nothing verified), `verify-ca` (its certificate must descend from
///   `sslrootcert`), `verify-full` (and must name the host). Default: `verify-full` with
///   `sslrootcert`, else `prefer`; a unix socket needs and takes no TLS.
/// - `sslrootcert`, `sslcert`, `sslkey`: PEM files; the last two belong together.
struct PostgresSettings {
  /// In the order to be tried; a host that begins with / is the folder of a unix socket.
  std::vector<HostPort> servers;
  std::string database, user, password;
  std::string sslmode, sslrootcert, sslcert, sslkey;
  std::string schema;  ///< "" for the one that the server's search_path finds
  std::string table;
  Duration timeout{};  ///< bound on one call
};

/// kInvalidArgument: an unknown or contradictory parameter, no database, no user.
Result<PostgresSettings> ParsePostgresSettings(const StoreOptions& options);

/// "schema"."table" or "table", quoted.
std::string QuotedTable(const PostgresSettings& settings);
/// `name` as an identifier of SQL.
std::string QuotedName(const std::string& name);

/// The statement that makes a table as Leaf's is, in PostgreSQL's words.
std::string LeafTableDdl(const PostgresSettings& settings);

}  // namespace leaf
