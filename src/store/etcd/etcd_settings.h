#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/host_lookup.h"
#include "leaf/result.h"
#include "rpc/tls.h"

namespace leaf {

/// How to reach a cluster of etcd, and where our keys are in it.
struct EtcdSettings {
  std::vector<HostPort> endpoints;
  std::string prefix;          ///< of every key, without a slash at its end: "/leafd"
  std::string user, password;  ///< empty: no authentication, or by certificate
  rpc::TlsSettings tls;
};

/// What a URL says of it.
struct EtcdTarget {
  std::string servers;  ///< "H1:2379,H2:2379"
  std::string prefix;
  std::string user, password;
  std::map<std::string, std::string> parameters;  ///< ssl-mode, ssl-ca, ssl-cert, ssl-key
};

/// The default of ssl-mode is `disabled`, and `verify-identity` if ssl-ca or ssl-cert is given.
/// kInvalidArgument says which part cannot be used and why; files are not looked at.
Result<EtcdSettings> ParseEtcdSettings(const EtcdTarget& target);

}  // namespace leaf
