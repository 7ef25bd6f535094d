#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "leaf/result.h"

namespace leaf {

/// snowflake.registry, taken apart and decoded.
struct RegistryUrl {
  std::string kind;                 ///< store, zookeeper, etcd, fixed
  std::int64_t worker = 0;          ///< fixed
  std::string servers;              ///< zookeeper, etcd: "H1:2181,H2:2181", each with its port
  std::string chroot;               ///< zookeeper: "" or "/path"; etcd: "/leafd"
  std::optional<bool> leaf_layout;  ///< zookeeper: as the query says
  std::optional<bool> private_nodes;
  std::string user, password;
  std::map<std::string, std::string> parameters;  ///< etcd: as in StoreUrl
};

/// Reads `store`, `fixed:N` and `zookeeper://[USER:PASSWORD@]H1[:PORT],H2/[CHROOT][?layout=leaf|
/// native][&acl=world|creator]`, and `etcd://` as in store.url. kInvalidArgument; no part of the
/// URL is repeated but its scheme and names of parameters.
Result<RegistryUrl> ParseRegistryUrl(std::string_view text);

/// The URL for people: the password is "***".
std::string DisplayUrl(const RegistryUrl& url);

/// "h1:2181,h2/chroot" of leaf.properties: the port may be missing.
bool IsZooKeeperAddress(std::string_view text);

}  // namespace leaf
