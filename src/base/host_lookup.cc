#include "base/host_lookup.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <memory>

namespace leaf {
namespace {

Error Bad(std::string_view entry, const char* why) {
  return {Code::kInvalidArgument, "'" + std::string(entry) + "' " + why};
}

Result<HostPort> ParseHostPort(std::string_view entry, int port) {
  HostPort at;
  at.port = port;
  std::string_view rest;
  if (entry.starts_with('[')) {
    const auto close = entry.find(']');
    if (close == std::string_view::npos) return Bad(entry, "has a [ without its ]");
    at.host = entry.substr(1, close - 1);
    rest = entry.substr(close + 1);
  } else {
    const auto colon = entry.find(':');
    if (colon != std::string_view::npos && entry.find(':', colon + 1) != std::string_view::npos)
      return Bad(entry, "looks like IPv6, which stands in brackets: [ADDRESS]:PORT");
    at.host = entry.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : entry.substr(colon);
  }
  if (at.host.empty()) return Bad(entry, "has no host");
  if (at.host.find_first_of(" \t/@") != std::string::npos) return Bad(entry, "is no HOST:PORT");
  if (rest.empty()) return at;
  const char* end = rest.data() + rest.size();
  const auto [stop, failed] = std::from_chars(rest.data() + 1, end, at.port);
  if (!rest.starts_with(':') || failed != std::errc() || stop != end || at.port < 1 ||
      at.port > 65535)
    return Bad(entry, "has a bad port; it is 1 to 65535");
  return at;
}

}  // namespace

std::string ToString(const HostPort& at) {
  const bool v6 = at.host.find(':') != std::string::npos;
  return (v6 ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

Result<std::vector<HostPort>> ParseHostPorts(std::string_view text, int port) {
  std::vector<HostPort> all;
  for (;;) {
    const auto comma = text.find(',');
    LEAF_ASSIGN_OR_RETURN(HostPort at, ParseHostPort(text.substr(0, comma), port));
    if (std::find(all.begin(), all.end(), at) == all.end()) all.push_back(std::move(at));
    if (comma == std::string_view::npos) return all;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<std::string>> LookUpHost(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_protocol = IPPROTO_TCP;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return Error{Code::kUnavailable, "host '" + host + "': " + gai_strerror(failed)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) ==
        0)
      addresses.emplace_back(text);
  }
  if (addresses.empty()) return Error{Code::kUnavailable, "host '" + host + "' has no address"};
  return addresses;
}

}  // namespace leaf
