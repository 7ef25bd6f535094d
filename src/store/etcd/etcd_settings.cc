#include "store/etcd/etcd_settings.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace leaf {
namespace {

using Mode = rpc::TlsSettings::Mode;

constexpr int kDefaultPort = 2379;
constexpr std::size_t kMaxPrefix = 256;

Error Invalid(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

std::optional<Mode> ModeByName(std::string_view name) {
  if (name == "disabled") return Mode::kDisabled;
  if (name == "required") return Mode::kRequired;
  if (name == "verify-ca") return Mode::kVerifyCa;
  if (name == "verify-identity") return Mode::kVerifyIdentity;
  return std::nullopt;
}

Result<void> SettleTls(std::optional<Mode> mode, rpc::TlsSettings& tls) {
  if (tls.cert.empty() != tls.key.empty()) return Invalid("ssl-cert and ssl-key belong together");
  const bool files = !tls.ca.empty() || !tls.cert.empty();
  tls.mode = mode.value_or(files ? Mode::kVerifyIdentity : Mode::kDisabled);
  if (tls.mode == Mode::kDisabled && files)
    return Invalid("ssl-ca or ssl-cert is given, but ssl-mode is disabled");
  if (tls.mode == Mode::kRequired && !tls.ca.empty()) {
    return Invalid(
        "ssl-ca is given, but ssl-mode does not verify; use verify-ca or verify-identity");
  }
  return {};
}

Result<rpc::TlsSettings> ReadParameters(const std::map<std::string, std::string>& parameters) {
  rpc::TlsSettings tls;
  std::optional<Mode> mode;
  for (const auto& [key, value] : parameters) {
    if (key == "ssl-mode") {
      mode = ModeByName(value);
      if (!mode) {
        return Invalid("ssl-mode '" + value +
                       "' is none of disabled, required, verify-ca, verify-identity");
      }
    } else if (key == "ssl-ca") {
      tls.ca = value;
    } else if (key == "ssl-cert") {
      tls.cert = value;
    } else if (key == "ssl-key") {
      tls.key = value;
    } else {
      return Invalid("unknown parameter '" + key +
                     "' of etcd; known are ssl-mode, ssl-ca, ssl-cert, ssl-key");
    }
  }
  LEAF_RETURN_IF_ERROR(SettleTls(mode, tls));
  return tls;
}

}  // namespace

Result<EtcdSettings> ParseEtcdSettings(const EtcdTarget& target) {
  EtcdSettings settings;
  LEAF_ASSIGN_OR_RETURN(settings.endpoints, ParseHostPorts(target.servers, kDefaultPort));
  const std::string& prefix = target.prefix;
  const bool control = std::any_of(prefix.begin(), prefix.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (prefix.size() > kMaxPrefix || control || prefix.ends_with('/')) {
    return Invalid("the prefix of the keys, '" + prefix.substr(0, kMaxPrefix) +
                   "', must be at most 256 bytes, without control characters, and not end with "
                   "a slash");
  }
  settings.prefix = prefix;
  if (target.user.empty() && !target.password.empty())
    return Invalid("a password for etcd without a user: write etcd://USER:PASSWORD@...");
  settings.user = target.user;
  settings.password = target.password;
  LEAF_ASSIGN_OR_RETURN(settings.tls, ReadParameters(target.parameters));
  return settings;
}

}  // namespace leaf
