#pragma once

#include <string_view>

namespace leaf::http1 {

/// Whether `text` is uri-host [":" port] of RFC 3986, not empty and without user information: a
/// name, an IPv4 address or an IPv6 address in brackets.
bool IsHost(std::string_view text) noexcept;

}  // namespace leaf::http1
