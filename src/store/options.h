#pragma once

#include <map>
#include <string>

#include "base/time.h"
#include "core/segment/segment_store.h"

namespace leaf {

/// Where the table is and how much is demanded of it. The URL is parsed by configuration.
struct StoreOptions {
  std::string kind = "sqlite";  ///< memory, sqlite, mysql, postgres, etcd
  std::string path;     ///< sqlite: absolute path of the file; etcd: prefix of the keys, "/leafd"
  std::string host;     ///< mysql; a path that begins with / is a unix socket
  int port = 3306;      ///< mysql
  std::string servers;  ///< postgres, etcd: "H1:P1,H2:P2", IPv6 in brackets
  std::string database, user, password;
  std::map<std::string, std::string>
      parameters;  ///< of the URL's query, names as leafd spells them (docs/configuration.md)
  std::string table = "leaf_alloc";            ///< [A-Za-z0-9_]+ or DB.TABLE, SCHEMA.TABLE
  Duration timeout = std::chrono::seconds(1);  ///< bound on each call, connecting included
  Durability min_durability = Durability::kPower;
  std::string display_url;  ///< for people: without secrets
};

}  // namespace leaf
