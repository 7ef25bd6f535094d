#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"

namespace leaf {

/// Which registry keeps the workers, and as whom this server comes. The URL is parsed by
/// configuration.
struct RegistryOptions {
  std::string kind = "store";                  ///< store, zookeeper, etcd, fixed
  std::string cluster = "leaf";                ///< snowflake.name
  std::string identity;                        ///< HOST:PORT
  Duration timeout = std::chrono::seconds(1);  ///< bound on each call, connecting included

  std::string servers;         ///< zookeeper, etcd: "H1:2181,H2:2181"
  std::string chroot;          ///< zookeeper: "" or "/path", etcd: "/leafd"; all lives below it
  bool leaf_layout = true;     ///< zookeeper: Leaf's nodes; otherwise the native ones
  std::string user, password;  ///< zookeeper: digest authentication; etcd; empty: none
  std::map<std::string, std::string> parameters;  ///< etcd: "ssl-mode", "ssl-ca", ...
  bool private_nodes = false;  ///< zookeeper: nodes made are the user's alone, not the world's

  std::int64_t worker = 0;            ///< fixed
  std::string display_url = "store";  ///< for people: without secrets
};

}  // namespace leaf
