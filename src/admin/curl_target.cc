#include "admin/curl_target.h"

namespace leaf {

std::string CurlTarget(std::string_view listen) {
  constexpr std::string_view kUnix = "unix:";
  if (listen.empty()) return {};
  if (listen.starts_with(kUnix)) {
    return "--unix-socket '" + std::string(listen.substr(kUnix.size())) + "' http://localhost";
  }
  const std::size_t colon = listen.rfind(':');
  std::string host(listen.substr(0, colon));
  const std::string port(listen.substr(colon));
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "[::]") host = "[::1]";
  const bool accepted = host == "127.0.0.1" || host == "localhost" || host == "[::1]";
  return (accepted ? "http://" : "-H 'Host: localhost' http://") + host + port;
}

}  // namespace leaf
