#pragma once

#include <string>
#include <string_view>

namespace leaf {

/// What stands before the path in a curl command that changes something by way of the admin
/// listener `listen` (server.admin_listen), given on its own host: an address, with options where
/// the Host that curl would send is one that RefuseChange refuses. Empty if there is no listener.
std::string CurlTarget(std::string_view listen);

}  // namespace leaf
