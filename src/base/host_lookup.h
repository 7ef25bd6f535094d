#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leaf/result.h"

namespace leaf {

/// One address of a server, as people write it.
struct HostPort {
  std::string host;  ///< a name or an address, IPv6 without brackets
  int port = 0;

  friend bool operator==(const HostPort&, const HostPort&) = default;
};
/// "HOST:PORT", with brackets around IPv6.
std::string ToString(const HostPort& at);

/// Reads "H1:P1,H2,[V6]:P3"; an entry without a port gets `port`. kInvalidArgument names the entry.
Result<std::vector<HostPort>> ParseHostPorts(std::string_view text, int port);

/// The numeric addresses of `host`, in the order to be tried; looked up anew at each call, because
/// a server that moved keeps its name only. kUnavailable with the resolver's words. Blocks for as
/// long as the resolver does: drivers are written for that (SegmentDriver). Thread-safe.
Result<std::vector<std::string>> LookUpHost(const std::string& host, int port);

}  // namespace leaf
