#include "config/config_snowflake.h"

#include <algorithm>

#include "base/utf8.h"
#include "config/config_checks.h"
#include "config/config_files.h"
#include "config/registry_url.h"

namespace leaf::config {
namespace {

constexpr std::size_t kMaxName = 128, kMaxIdentity = 200;
constexpr Duration kShortLease = std::chrono::seconds(10);

/// As its default: --print-config writes such values too, and its output can be read again.
bool IsDefault(const Setting& setting) {
  const Value fallback = Fallback(*setting.key);
  return setting.value.text == fallback.text && setting.value.number == fallback.number;
}

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
}

bool IsUtf8Text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0 || (length == 1 && IsControl(text.front()))) return false;
    text.remove_prefix(length);
  }
  return true;
}

void ResolveLayout(const Settings& settings, Config& config, Findings& findings) {
  const Setting& name = settings.at("snowflake.layout");
  const Setting& bits = settings.at("snowflake.bits");
  const Setting& epoch = settings.at("snowflake.epoch_ms");
  const Setting& tick = settings.at("snowflake.tick");
  if (const auto layout = FindLayout(name.value.text)) {
    config.snowflake.layout = *layout;
    for (const Setting* setting : {&bits, &epoch, &tick}) {
      if (IsDefault(*setting)) continue;
      findings.Error(setting->origin,
                     std::string(setting->key->name) +
                         " belongs to snowflake.layout = \"custom\", and the layout "
                         "is \"" +
                         name.value.text + "\"");
    }
    return;
  }
  if (bits.value.text.empty()) {
    findings.Error(name.origin,
                   "snowflake.layout = \"custom\" needs snowflake.bits = \"TIME/WORKER/SEQUENCE\"");
    return;
  }
  constexpr std::int64_t kMs = 1'000'000;
  if (tick.value.number % kMs != 0) {
    findings.Error(tick.origin, "snowflake.tick must be whole milliseconds");
    return;
  }
  const auto layout = CustomLayout(bits.value.text, epoch.value.number, tick.value.number / kMs);
  if (!layout.ok()) {
    findings.Error(bits.origin, "snowflake.bits: " + layout.error().message);
    return;
  }
  config.snowflake.layout = *layout;
}

void ResolveName(const Settings& settings, Config& config, Findings& findings) {
  const Setting& name = settings.at("snowflake.name");
  const std::string& text = name.value.text;
  if (text.empty() || text.size() > kMaxName || text == "." || text == ".." ||
      text.find('/') != std::string::npos || !IsUtf8Text(text)) {
    findings.Error(name.origin,
                   "snowflake.name must be 1 to 128 bytes of UTF-8 without '/' and control "
                   "characters, and not \".\" or \"..\"");
  }
  config.snowflake.registry.cluster = text;
}

/// ":PORT" of the first listener that has one. A broken listener is reported elsewhere.
std::string FirstPort(const std::vector<std::string>& listen) {
  for (const std::string& listener : listen) {
    if (listener.starts_with("unix:")) continue;
    const auto colon = listener.rfind(':');
    if (colon == std::string::npos) continue;
    const std::string_view port = std::string_view(listener).substr(colon + 1);
    if (ParseInteger(port).ok()) return ":" + std::string(port);
  }
  return "";
}

/// HOST:PORT, both not empty.
bool HasHostAndPort(std::string_view text) {
  const auto colon = text.rfind(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < text.size();
}

void ResolveIdentity(const Settings& settings, const LeafFile* leaf, Config& config,
                     Findings& findings) {
  const Setting& identity = settings.at("snowflake.identity");
  RegistryOptions& registry = config.snowflake.registry;
  registry.identity = identity.value.text;
  const bool node = registry.kind == "zookeeper" && registry.leaf_layout;
  if (identity.rank == Rank::kDefault && node) {
    // Leaf's node names are addresses; only the port can be had from leaf.properties.
    if (leaf == nullptr || !leaf->snowflake_port) {
      findings.Error(settings.at("snowflake.registry").origin,
                     "ZooKeeper in Leaf's layout needs snowflake.identity = \"ADDRESS:PORT\", the "
                     "name of this server's node");
      return;
    }
    const std::vector<std::string> addresses = HostAddresses();
    if (addresses.empty()) {
      findings.Error(leaf->snowflake_port->origin,
                     "this host has no IPv4 address but loopback, and Leaf's node names begin with "
                     "one; set LEAFD_SNOWFLAKE_IDENTITY=ADDRESS:PORT");
      return;
    }
    registry.identity = addresses.front() + ":" + leaf->snowflake_port->text;
    if (addresses.size() > 1) {
      findings.Warn(leaf->snowflake_port->origin,
                    "this host has several addresses; snowflake.identity is taken as " +
                        registry.identity +
                        ". If this server's node in ZooKeeper begins with another one, set "
                        "LEAFD_SNOWFLAKE_IDENTITY");
    }
  } else if (identity.rank == Rank::kDefault) {
    registry.identity = HostName() + FirstPort(config.server.listen);
  }
  const std::string& text = registry.identity;
  if (text.empty() || text.size() > kMaxIdentity || !IsUtf8Text(text) ||
      text.find_first_of(" /\"\\") != std::string::npos) {
    findings.Error(identity.origin,
                   "snowflake.identity must be 1 to 200 bytes of UTF-8 without blanks, '/', quotes "
                   "and control characters, such as 10.0.0.1:8080");
  } else if (node && !HasHostAndPort(text)) {
    findings.Error(
        identity.origin,
        "snowflake.identity must be ADDRESS:PORT: it is the name of this server's node in "
        "Leaf's layout");
  }
}

void ResolveRegistry(const Settings& settings, const LeafFile* leaf, Config& config,
                     Findings& findings) {
  const Setting& setting = settings.at("snowflake.registry");
  auto parsed = ParseRegistryUrl(setting.value.text);
  if (!parsed.ok()) {
    findings.Error(setting.origin, parsed.error().message);
    return;
  }
  RegistryOptions& registry = config.snowflake.registry;
  registry.kind = parsed->kind;
  registry.worker = parsed->worker;
  registry.servers = parsed->servers;
  registry.chroot = parsed->chroot;
  registry.leaf_layout = parsed->leaf_layout.value_or(leaf != nullptr);
  registry.parameters = parsed->parameters;
  registry.user = parsed->user;
  registry.password = parsed->password;
  registry.private_nodes = parsed->private_nodes.value_or(!parsed->user.empty());
  registry.timeout = config.store.timeout;
  registry.display_url = DisplayUrl(*parsed);
  if (registry.password == "***") {
    findings.Warn(setting.origin,
                  "the password of snowflake.registry is \"***\", as --print-config hides it");
  }
  const std::int64_t workers = config.snowflake.layout.workers();
  if (registry.kind == "fixed" && registry.worker >= workers) {
    findings.Error(setting.origin, "snowflake.registry: the layout holds workers 0 to " +
                                       std::to_string(workers - 1));
  }
}

/// What --print-config shows of a mode that is off: what was said, without secrets.
void ShowSwitchedOff(const Settings& settings, Config& config) {
  const auto parsed = ParseRegistryUrl(settings.at("snowflake.registry").value.text);
  config.snowflake.registry.display_url = parsed.ok() ? DisplayUrl(*parsed) : "***";
  config.snowflake.registry.identity = settings.at("snowflake.identity").value.text;
}

}  // namespace

void ResolveSnowflake(const Settings& settings, const LeafFile* leaf, Config& config,
                      Findings& findings) {
  ResolveLayout(settings, config, findings);
  // What is off is not judged, as Leaf does not look at the address of a mode that is off.
  if (!config.snowflake.enabled) {
    config.snowflake.disabled_reason = "switched off by configuration";
    ShowSwitchedOff(settings, config);
    return;
  }
  ResolveRegistry(settings, leaf, config, findings);
  ResolveName(settings, config, findings);
  ResolveIdentity(settings, leaf, config, findings);
  if (config.snowflake.lease < kShortLease) {
    findings.Warn(settings.at("snowflake.lease").origin,
                  "snowflake.lease is " + FormatDuration(config.snowflake.lease) +
                      ": snowflake mode fails as soon as its registry is away for so long");
  }
}

bool KeepsWorkersInStore(const Config& config) {
  return config.snowflake.enabled && config.snowflake.registry.kind == "store";
}

void CheckLocalRegistry(const Settings& settings, Config& config) {
  const bool local = config.store.kind == "sqlite" || config.store.kind == "memory";
  if (!KeepsWorkersInStore(config) || !local) return;
  if (settings.at("snowflake.registry").rank != Rank::kDefault) return;
  const auto& listen = config.server.listen;
  if (std::none_of(listen.begin(), listen.end(), IsBeyondLoopback)) return;
  config.snowflake.unavailable_reason =
      "workers are kept in a local file, which no other host can see, and server.listen is open to "
      "other hosts: two such servers would both be worker 0. Set snowflake.registry: "
      "zookeeper://HOST/, etcd://HOST/, fixed:N with another N on each host, or \"store\" if this "
      "is the only "
      "server";
}

}  // namespace leaf::config
