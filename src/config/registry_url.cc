#include "config/registry_url.h"

#include <algorithm>
#include <array>
#include <vector>

#include "config/config_keys.h"
#include "config/config_values.h"
#include "config/url.h"

namespace leaf {
namespace {

using config::ParseInteger;
using url::Invalid;

constexpr std::string_view kZooKeeper = "zookeeper://";
constexpr std::string_view kFixed = "fixed:";
constexpr std::int64_t kMaxPort = 65535;
/// Beyond every layout; the configured one is checked with it.
constexpr std::int64_t kMaxWorker = (std::int64_t{1} << 20) - 1;

bool IsServer(std::string_view text) {
  const auto colon = text.rfind(':');
  const bool bracketed = text.ends_with(']');
  if (colon != std::string_view::npos && !bracketed) {
    const std::string_view digits = text.substr(colon + 1);
    const auto port = ParseInteger(digits);
    if (!port.ok() || *port < 1 || *port > kMaxPort || digits.front() == '-') return false;
    text = text.substr(0, colon);
  }
  if (!text.starts_with('[')) return IsHostName(text);
  return text.ends_with(']') && IsIpV6(text.substr(1, text.size() - 2));
}

bool HasPort(std::string_view server) {
  return server.rfind(':') != std::string_view::npos && !server.ends_with(']');
}

Result<RegistryUrl> ParseFixed(std::string_view digits) {
  const bool plain =
      !digits.empty() && digits.size() <= 7 && (digits.size() == 1 || digits.front() != '0') &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  RegistryUrl result;
  result.kind = "fixed";
  if (plain) result.worker = *ParseInteger(digits);
  if (!plain || result.worker > kMaxWorker) {
    return Invalid(
        "snowflake.registry: fixed:N needs a worker in decimal digits, from 0 to what the layout "
        "holds (1023 in layout leaf)");
  }
  return result;
}

Result<void> ReadServers(std::string_view authority, RegistryUrl& result) {
  if (authority.empty())
    return Invalid("snowflake.registry: the servers of zookeeper:// are missing");
  for (;;) {
    const std::string_view server = authority.substr(0, authority.find(','));
    if (!IsServer(server)) {
      return Invalid(
          "snowflake.registry: zookeeper:// needs HOST:PORT,HOST:PORT (a '/' in a password must be "
          "%2F, an '@' %40, a ',' %2C)");
    }
    result.servers += (result.servers.empty() ? "" : ",") + std::string(server);
    if (!HasPort(server)) result.servers += ":2181";
    if (server.size() == authority.size()) return {};
    authority.remove_prefix(server.size() + 1);
  }
}

Result<void> ReadChroot(std::string_view path, RegistryUrl& result) {
  auto decoded = PercentDecode(path);
  while (decoded && decoded->ends_with('/')) decoded->pop_back();
  if (!decoded) return Invalid("snowflake.registry: the path has a bad escape");
  if (decoded->empty()) return {};
  result.chroot = "/" + *decoded;
  const bool control = std::any_of(decoded->begin(), decoded->end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (control || result.chroot.find("//") != std::string::npos ||
      (result.chroot + "/").find("/./") != std::string::npos ||
      (result.chroot + "/").find("/../") != std::string::npos) {
    return Invalid("snowflake.registry: the path is none that ZooKeeper can have");
  }
  return {};
}

Result<void> TakeParameter(std::string_view pair, RegistryUrl& result) {
  static const std::vector<std::string> kNames = {"layout", "acl"};
  const auto equals = pair.find('=');
  const std::string_view name = pair.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
  const bool layout = name == "layout";
  if (!layout && name != "acl") {
    return Invalid("snowflake.registry: unknown parameter " + url::PrintableName(name) +
                   " (there are layout and acl)" + config::SuggestionText(name, kNames));
  }
  std::optional<bool>& target = layout ? result.leaf_layout : result.private_nodes;
  if (target)
    return Invalid("snowflake.registry: the parameter " + std::string(name) + " is given twice");
  const std::string_view yes = layout ? "leaf" : "creator", no = layout ? "native" : "world";
  if (value != yes && value != no) {
    return Invalid("snowflake.registry: the parameter " + std::string(name) + " is " +
                   std::string(yes) + " or " + std::string(no));
  }
  target = value == yes;
  return {};
}

Result<RegistryUrl> ParseZooKeeper(std::string_view rest) {
  RegistryUrl result;
  result.kind = "zookeeper";
  url::Parts parts = url::Split(rest);
  if (parts.path.find('@') != std::string_view::npos ||
      parts.query.find('@') != std::string_view::npos) {
    // Most likely the end of a password, so nothing of it is repeated.
    return Invalid(
        "snowflake.registry: an '@' after the servers; in a password '/' must be %2F, '?' %3F and "
        "'@' %40");
  }
  const auto at = parts.authority.rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view info = parts.authority.substr(0, at);
    const auto colon = info.find(':');
    const auto user = PercentDecode(info.substr(0, colon));
    const auto password =
        colon == std::string_view::npos ? std::nullopt : PercentDecode(info.substr(colon + 1));
    if (!user || user->empty() || !password || password->empty()) {
      return Invalid(
          "snowflake.registry: write zookeeper://USER:PASSWORD@HOST:PORT/, with % as %25");
    }
    if (user->find(':') != std::string::npos)
      return Invalid("snowflake.registry: a user of ZooKeeper cannot have a ':'");
    result.user = *user;
    result.password = *password;
    parts.authority.remove_prefix(at + 1);
  }
  LEAF_RETURN_IF_ERROR(ReadServers(parts.authority, result));
  LEAF_RETURN_IF_ERROR(ReadChroot(parts.path, result));
  while (!parts.query.empty()) {
    const std::string_view pair = parts.query.substr(0, parts.query.find('&'));
    LEAF_RETURN_IF_ERROR(TakeParameter(pair, result));
    parts.query.remove_prefix(std::min(parts.query.size(), pair.size() + 1));
  }
  if (result.private_nodes.value_or(false) && result.user.empty()) {
    return Invalid("snowflake.registry: acl=creator needs USER:PASSWORD@ before the servers");
  }
  return result;
}

Result<RegistryUrl> ParseEtcd(std::string_view text) {
  auto parsed = ParseStoreUrl(text);
  if (!parsed.ok()) {
    constexpr std::string_view kOther = "store.url: ";
    std::string_view message = parsed.error().message;
    if (message.starts_with(kOther)) message.remove_prefix(kOther.size());
    return Invalid("snowflake.registry: " + std::string(message));
  }
  RegistryUrl result;
  result.kind = "etcd";
  result.servers = std::move(parsed->servers);
  result.chroot = std::move(parsed->path);
  result.user = std::move(parsed->user);
  result.password = std::move(parsed->password).value_or("");
  result.parameters = std::move(parsed->parameters);
  return result;
}

StoreUrl ToStoreUrl(const RegistryUrl& url) {
  StoreUrl store;
  store.kind = "etcd";
  store.servers = url.servers;
  store.path = url.chroot;
  store.user = url.user;
  if (!url.password.empty()) store.password = url.password;
  store.parameters = url.parameters;
  return store;
}

}  // namespace

Result<RegistryUrl> ParseRegistryUrl(std::string_view text) {
  if (text == "store") {
    RegistryUrl result;
    result.kind = "store";
    return result;
  }
  if (text.starts_with(kFixed)) return ParseFixed(text.substr(kFixed.size()));
  if (text.starts_with(kZooKeeper)) return ParseZooKeeper(text.substr(kZooKeeper.size()));
  if (text.starts_with("etcd:")) return ParseEtcd(text);
  if (text.starts_with("zk://"))
    return Invalid("snowflake.registry: write zookeeper:// in place of zk://");
  return Invalid(
      "snowflake.registry is store, zookeeper://HOST:PORT,HOST:PORT/, etcd://HOST:PORT/PREFIX or "
      "fixed:N");
}

std::string DisplayUrl(const RegistryUrl& url) {
  if (url.kind == "store") return "store";
  if (url.kind == "fixed") return "fixed:" + std::to_string(url.worker);
  if (url.kind == "etcd") return DisplayUrl(ToStoreUrl(url));
  std::string text(kZooKeeper);
  if (!url.user.empty()) text += PercentEncode(url.user) + ":***@";
  text += url.servers + (url.chroot.empty() ? "/" : PercentEncode(url.chroot, "/"));
  const char* separator = "?";
  if (url.leaf_layout) {
    text += std::string(separator) + "layout=" + (*url.leaf_layout ? "leaf" : "native");
    separator = "&";
  }
  if (url.private_nodes)
    text += std::string(separator) + "acl=" + (*url.private_nodes ? "creator" : "world");
  return text;
}

bool IsZooKeeperAddress(std::string_view text) {
  text = text.substr(0, text.find('/'));
  for (;;) {
    const std::string_view server = text.substr(0, text.find(','));
    if (!IsServer(server)) return false;
    if (server.size() == text.size()) return true;
    text.remove_prefix(server.size() + 1);
  }
}

}  // namespace leaf
