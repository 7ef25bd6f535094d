#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leaf/result.h"

namespace leaf {

/// A store's URL, taken apart and decoded.
struct StoreUrl {
  std::string kind;  ///< memory, sqlite, mysql, postgres, etcd
  std::string path;  ///< sqlite: as written, maybe relative; etcd: prefix of the keys, "/leafd"
  std::string host;  ///< mysql; begins with '/' for a unix socket
  int port = 3306;   ///< mysql; postgres with a socket
  /// postgres, etcd: "H1:P1,H2:P2", IPv6 in brackets; postgres: or the folder of a unix socket.
  std::string servers;
  std::string database;
  std::string schema;  ///< jdbc:postgresql: currentSchema, where a store.table without one stands
  std::string user;
  std::optional<std::string> password;
  /// mysql: "ssl-mode" (always: disabled, preferred, required, verify-ca, verify-identity), and
  /// where given "ssl-ca", "ssl-cert", "ssl-key", "server-public-key", "plugin-dir".
  /// etcd: "ssl-mode" (always: disabled, required, verify-ca, verify-identity) and the files.
  /// postgres: "sslmode" (always), and where given "sslrootcert", "sslcert", "sslkey".
  std::map<std::string, std::string> parameters;
  std::vector<std::string> warnings;  ///< what was given and is not used
};

/// Reads sqlite:, mysql:, postgres:, etcd:, memory: and jdbc:mysql:, jdbc:mariadb:,
/// jdbc:postgresql: URLs. The user may be missing
/// (then it is empty). Neither errors nor warnings repeat any part of the URL but its scheme and
/// names of parameters: a password with a '/' or '@' in it can land in every other part.
Result<StoreUrl> ParseStoreUrl(std::string_view text);

/// The URL for people: the password is "***", parameters in their order.
std::string DisplayUrl(const StoreUrl& url);

/// %XX as bytes; nullopt for a malformed escape or a NUL.
std::optional<std::string> PercentDecode(std::string_view text);
/// Leaves [A-Za-z0-9._~-], and the characters of `also`, alone.
std::string PercentEncode(std::string_view text, std::string_view also = {});

/// Whether `text` is an IPv6 address (without brackets; a zone may follow), or a name or IPv4
/// address.
bool IsIpV6(std::string_view text);
bool IsHostName(std::string_view text);

/// The pieces that both forms of a MySQL URL share.
namespace url {

Error Invalid(std::string message);

/// The name of a parameter, if it looks like one, in quotes; what does not may be part of a
/// password.
std::string PrintableName(std::string_view name);

/// An error if `text`, from behind the host, has an '@': then it is the tail of an unescaped
/// password.
Result<void> RefuseAt(std::string_view text);

struct Parts {
  std::string_view authority, path, query;  ///< without their separators
};
/// Splits what follows "//".
Parts Split(std::string_view rest);

/// Fills host and port from "HOST", "HOST:PORT", "[V6]:PORT" or an encoded path of a socket.
Result<void> ReadHost(std::string_view text, StoreUrl& url);
/// Cuts "USER:PASSWORD@" off `authority` and keeps it in `url`.
Result<void> TakeUserInfo(std::string_view& authority, StoreUrl& url);
Result<void> ReadDatabase(std::string_view path, StoreUrl& url);
/// Fills parameters from a query whose names are `known`; each once, with a value.
Result<void> TakeParameters(std::string_view query, std::span<const std::string_view> known,
                            StoreUrl& url);
/// ssl-* agree with each other; ssl-mode is filled in where it is missing.
Result<void> CheckTls(StoreUrl& url);

/// What follows "postgres:" or "etcd:". With `jdbc`, the user and password may be parameters and
/// what is not known is a warning.
Result<StoreUrl> ParsePostgres(std::string_view rest, bool jdbc);
Result<StoreUrl> ParseEtcd(std::string_view rest);
/// The part of DisplayUrl behind "postgres://USER@".
std::string DisplayServers(const StoreUrl& url);

}  // namespace url
}  // namespace leaf
