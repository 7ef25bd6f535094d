#include "config/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/host_lookup.h"
#include "config/config_jdbc.h"
#include "config/config_keys.h"

namespace leaf {
namespace {

using url::Invalid;

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

/// Without the first characters of `text` if they are `prefix`.
bool Consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<StoreUrl> ParseSqlite(std::string_view rest) {
  if (rest.starts_with("///")) {
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()) - 1);
  } else if (rest.starts_with("//")) {
    return Invalid(
        "store.url: sqlite takes a path: sqlite:leafd.db or sqlite:/var/lib/leafd/leafd.db");
  }
  if (rest.empty() || rest.back() == '/')
    return Invalid("store.url: sqlite needs the path of a file");
  if (rest == ":memory:")
    return Invalid("store.url: ids in memory are memory:, not sqlite::memory:");
  if (rest.starts_with("~")) return Invalid("store.url: ~ is not expanded; write the whole path");
  if (rest.find('?') != std::string_view::npos)
    return Invalid("store.url: sqlite takes no parameters");
  if (HasControl(rest)) return Invalid("store.url: the path has a control character");
  StoreUrl result;
  result.kind = "sqlite";
  result.path = rest;
  return result;
}

constexpr std::array<std::string_view, 7> kMysqlParameters = {
    "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "server-public-key", "plugin-dir", "socket"};

Result<void> TakeMysqlParameters(std::string_view query, StoreUrl& result) {
  LEAF_RETURN_IF_ERROR(url::TakeParameters(query, kMysqlParameters, result));
  const auto socket = result.parameters.find("socket");
  if (socket == result.parameters.end()) return {};
  if (!result.host.empty())
    return Invalid("store.url: give a host or the parameter socket, not both");
  if (socket->second.front() != '/')
    return Invalid("store.url: the parameter socket needs an absolute path");
  result.host = socket->second;
  result.parameters.erase(socket);
  return {};
}

Result<StoreUrl> ParseMysql(std::string_view rest) {
  if (!Consume(rest, "//"))
    return Invalid("store.url: write mysql://USER:PASSWORD@HOST:PORT/DATABASE");
  StoreUrl result;
  result.kind = "mysql";
  url::Parts parts = url::Split(rest);
  LEAF_RETURN_IF_ERROR(url::TakeUserInfo(parts.authority, result));
  if (parts.authority.find(',') != std::string_view::npos) {
    return Invalid(
        "store.url: one host only; ids must come from the one server that holds the row");
  }
  if (!parts.authority.empty()) LEAF_RETURN_IF_ERROR(url::ReadHost(parts.authority, result));
  LEAF_RETURN_IF_ERROR(url::ReadDatabase(parts.path, result));
  LEAF_RETURN_IF_ERROR(TakeMysqlParameters(parts.query, result));
  if (result.host.empty()) return Invalid("store.url: the host is missing");
  if (result.user.empty())
    return Invalid("store.url: the user is missing: mysql://USER:PASSWORD@HOST/DATABASE");
  LEAF_RETURN_IF_ERROR(url::CheckTls(result));
  return result;
}

/// The letters before the first ':', if they look like a scheme.
std::string Scheme(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > 16) return "";
  const std::string_view scheme = text.substr(0, colon);
  const bool plain = std::all_of(scheme.begin(), scheme.end(),
                                 [](char c) { return IsAlphanumeric(c) || c == '+'; });
  return plain ? std::string(scheme) : "";
}

Error UnknownScheme(std::string_view scheme) {
  static const std::vector<std::string> kSchemes = {"sqlite", "mysql",  "postgres",
                                                    "etcd",   "memory", "jdbc"};
  const std::string suggestion = config::Suggest(scheme, kSchemes);
  return Invalid(
      "store.url: unknown scheme (there are sqlite:, mysql://, postgres://, etcd:// and memory:)" +
      (suggestion.empty() ? "" : "; did you mean " + suggestion + ":?"));
}

}  // namespace

namespace url {

Error Invalid(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

Result<void> RefuseAt(std::string_view text) {
  if (text.find('@') == std::string_view::npos) return {};
  return Invalid(
      "store.url: an '@' after the host; in a password '/' must be %2F, '?' %3F and '@' %40");
}

std::string PrintableName(std::string_view name) {
  const bool plain =
      !name.empty() && name.size() <= 40 && std::all_of(name.begin(), name.end(), [](char c) {
        return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
      });
  return plain ? "\"" + std::string(name) + "\"" : "of an unprintable name";
}

Parts Split(std::string_view rest) {
  Parts parts;
  parts.authority = rest.substr(0, rest.find_first_of("/?"));
  rest.remove_prefix(parts.authority.size());
  parts.path = rest.substr(0, rest.find('?'));
  rest.remove_prefix(parts.path.size());
  if (!parts.path.empty()) parts.path.remove_prefix(1);
  if (!rest.empty()) parts.query = rest.substr(1);
  return parts;
}

Result<void> ReadPort(std::string_view text, StoreUrl& url) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), url.port);
  if (error == std::errc() && end == text.data() + text.size() && url.port >= 1 &&
      url.port <= 65535)
    return {};
  return Invalid("store.url: the port must be a number from 1 to 65535");
}

Result<void> ReadIpV6(std::string_view text, StoreUrl& url) {
  const auto end = text.find(']');
  const std::string_view host = text.substr(1, std::max<std::size_t>(end, 1) - 1);
  if (end == std::string_view::npos || !IsIpV6(host))
    return Invalid("store.url: [...] holds no IPv6 address");
  url.host = host;
  std::string_view port = text.substr(end + 1);
  if (port.empty()) return {};
  if (!Consume(port, ":")) return Invalid("store.url: after ] comes :PORT");
  return ReadPort(port, url);
}

Result<void> ReadHost(std::string_view text, StoreUrl& url) {
  if (text.starts_with('[')) return ReadIpV6(text, url);
  const auto colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (port.find(':') != std::string_view::npos) {
      return Invalid(
          "store.url: an IPv6 address needs [ and ], and a '/' in a password must be %2F");
    }
    LEAF_RETURN_IF_ERROR(ReadPort(port, url));
  }
  const auto host = PercentDecode(text.substr(0, colon));
  const bool is_socket = host && host->starts_with('/') && !HasControl(*host);
  if (!is_socket && (!host || !IsHostName(*host))) {
    return Invalid("store.url: the host is neither a name nor an address");
  }
  url.host = *host;
  return {};
}

Result<void> TakeUserInfo(std::string_view& authority, StoreUrl& url) {
  const auto at = authority.rfind('@');
  if (at == std::string_view::npos) return {};
  const std::string_view info = authority.substr(0, at);
  authority.remove_prefix(at + 1);
  const auto colon = info.find(':');
  const auto user = PercentDecode(info.substr(0, colon));
  if (!user) return Invalid("store.url: the user has a bad escape (% must be %25)");
  url.user = *user;
  if (colon == std::string_view::npos) return {};
  url.password = PercentDecode(info.substr(colon + 1));
  if (!url.password) return Invalid("store.url: the password has a bad escape (% must be %25)");
  return {};
}

Result<void> ReadDatabase(std::string_view path, StoreUrl& url) {
  LEAF_RETURN_IF_ERROR(RefuseAt(path));
  const auto decoded = PercentDecode(path);
  if (!decoded || decoded->empty())
    return Invalid("store.url: the database is missing (HOST:PORT/DATABASE)");
  const bool plain = std::all_of(decoded->begin(), decoded->end(), [](char c) {
    return IsAlphanumeric(c) || c == '_' || c == '$' || c == '-';
  });
  if (!plain || decoded->size() > 64) {
    return Invalid("store.url: the database must be 1 to 64 of letters, digits, '_', '$' and '-'");
  }
  url.database = *decoded;
  return {};
}

Error UnknownParameter(std::string_view name, std::span<const std::string_view> known) {
  const std::vector<std::string> names(known.begin(), known.end());
  std::string all;
  for (const std::string_view each : known) all += (all.empty() ? "" : ", ") + std::string(each);
  return Invalid("store.url: unknown parameter " + PrintableName(name) + " (there are " + all +
                 ")" + config::SuggestionText(name, names));
}

Result<void> TakeParameter(std::string_view pair, std::span<const std::string_view> known,
                           StoreUrl& url) {
  const auto equals = pair.find('=');
  const auto name = PercentDecode(pair.substr(0, equals));
  if (!name || std::find(known.begin(), known.end(), *name) == known.end())
    return UnknownParameter(pair.substr(0, equals), known);
  const auto value =
      equals == std::string_view::npos ? std::nullopt : PercentDecode(pair.substr(equals + 1));
  if (!value || value->empty() || HasControl(*value))
    return Invalid("store.url: the parameter " + *name + " needs a value");
  if (!url.parameters.emplace(*name, *value).second)
    return Invalid("store.url: the parameter " + *name + " is given twice");
  return {};
}

Result<void> TakeParameters(std::string_view query, std::span<const std::string_view> known,
                            StoreUrl& url) {
  LEAF_RETURN_IF_ERROR(RefuseAt(query));
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    LEAF_RETURN_IF_ERROR(TakeParameter(pair, known, url));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
  }
  return {};
}

Result<void> CheckTls(StoreUrl& url) {
  constexpr std::array<std::string_view, 5> kModes = {"disabled", "preferred", "required",
                                                      "verify-ca", "verify-identity"};
  auto& parameters = url.parameters;
  // Who names a CA wants the server verified.
  parameters.emplace("ssl-mode", parameters.contains("ssl-ca") ? "verify-identity" : "preferred");
  const std::string& mode = parameters["ssl-mode"];
  if (std::find(kModes.begin(), kModes.end(), mode) == kModes.end()) {
    return Invalid(
        "store.url: ssl-mode must be one of disabled, preferred, required, verify-ca, "
        "verify-identity");
  }
  if (parameters.contains("ssl-cert") != parameters.contains("ssl-key")) {
    return Invalid("store.url: ssl-cert and ssl-key need each other");
  }
  const bool verifies = mode.starts_with("verify");
  if (url.host.starts_with('/') && (verifies || mode == "required")) {
    return Invalid("store.url: a socket has no TLS, but ssl-mode or ssl-ca asks for it");
  }
  if (parameters.contains("ssl-ca") && !verifies) {
    return Invalid(
        "store.url: ssl-ca has no effect unless ssl-mode is verify-ca or verify-identity");
  }
  if (parameters.contains("ssl-cert") && mode == "disabled") {
    return Invalid("store.url: ssl-cert has no effect while ssl-mode is disabled");
  }
  return {};
}

}  // namespace url

Result<StoreUrl> ParseStoreUrl(std::string_view text) {
  const std::string scheme = Scheme(text);
  std::string_view rest = text;
  if (Consume(rest, "sqlite:")) return ParseSqlite(rest);
  if (Consume(rest, "mysql:")) return ParseMysql(rest);
  if (Consume(rest, "jdbc:")) return ParseJdbcUrl(text);
  if (Consume(rest, "memory:")) {
    if (!rest.empty() && rest != "//") return Invalid("store.url: memory: takes nothing behind it");
    StoreUrl result;
    result.kind = "memory";
    return result;
  }
  if (Consume(rest, "postgres:") || Consume(rest, "postgresql:"))
    return url::ParsePostgres(rest, false);
  if (Consume(rest, "etcd:")) return url::ParseEtcd(rest);
  return UnknownScheme(scheme);
}

std::string DisplayUrl(const StoreUrl& url) {
  if (url.kind == "memory") return "memory:";
  if (url.kind == "sqlite") return "sqlite:" + url.path;
  std::string text = url.kind + "://";
  if (!url.user.empty()) text += PercentEncode(url.user) + (url.password ? ":***@" : "@");
  if (!url.servers.empty()) {
    text += url::DisplayServers(url);
  } else if (url.host.starts_with('/')) {
    text += PercentEncode(url.host) + "/" + PercentEncode(url.database);
  } else {
    text += ToString(HostPort{url.host, url.port}) + "/" + PercentEncode(url.database);
  }
  char separator = '?';
  for (const auto& [name, value] : url.parameters) {
    text += separator + name + "=" + PercentEncode(value, "/");
    separator = '&';
  }
  return text;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (text[i] == '\0') return std::nullopt;
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexValue(text[i + 1]), low = HexValue(text[i + 2]);
    if (high < 0 || low < 0 || high * 16 + low == 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string PercentEncode(std::string_view text, std::string_view also) {
  std::string encoded;
  for (const char c : text) {
    if (IsAlphanumeric(c) || std::string_view("._~-").find(c) != std::string_view::npos ||
        also.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kHexDigits[byte >> 4];
    encoded += kHexDigits[byte & 15];
  }
  return encoded;
}

bool IsIpV6(std::string_view text) {
  const auto zone = text.find('%');
  if (zone != std::string_view::npos && !IsHostName(text.substr(zone + 1))) return false;
  in6_addr address{};
  return inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(), &address) == 1;
}

bool IsHostName(std::string_view text) {
  constexpr std::size_t kLongest = 253;
  if (text.empty() || text.size() > kLongest) return false;
  // Digits and dots alone were meant to be an address.
  if (text.find_first_not_of("0123456789.") == std::string_view::npos) {
    in_addr address{};
    return inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
  }
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '.' || c == '-' || c == '_'; });
}

}  // namespace leaf
