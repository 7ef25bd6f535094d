#include "config/config_checks.h"

#include <algorithm>
#include <set>

#include "config/url.h"

namespace leaf::config {
namespace {

constexpr std::size_t kMaxListeners = 64;
constexpr std::size_t kMaxSocketPath = 107;  // sun_path less its NUL

/// What is wrong with HOST:PORT or [V6]:PORT, or empty.
std::string HostPortProblem(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return "needs HOST:PORT or unix:/path";
  const std::string_view host = text.substr(0, colon);
  const auto port = ParseInteger(text.substr(colon + 1));
  if (!port.ok() || *port < 0 || *port > 65535 || text[colon + 1] == '-')
    return "needs a port from 0 to 65535";
  if (host.empty() || host == "*")
    return "needs a host: 0.0.0.0 for every IPv4 address, [::] for IPv6 as well";
  if (host.front() == '[') {
    const bool closed = host.back() == ']' && IsIpV6(host.substr(1, host.size() - 2));
    return closed ? "" : "has no IPv6 address in its brackets";
  }
  if (host.find(':') != std::string_view::npos)
    return "needs an IPv6 address in brackets: [::1]:8080";
  return IsHostName(host) ? "" : "has a host that is neither a name nor an address";
}

std::string UnixProblem(std::string_view path) {
  if (!path.starts_with('/')) return "needs an absolute path: unix:/run/leafd.sock";
  if (path.size() > kMaxSocketPath) return "has a path longer than 107 bytes";
  const bool control = std::any_of(path.begin(), path.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  return control ? "has a control character in its path" : "";
}

void CheckListener(std::string_view key, const std::string& text, const std::string& origin,
                   Findings& findings) {
  for (const std::string_view scheme : {"tls://", "resp://"}) {
    if (!text.starts_with(scheme)) continue;
    findings.Error(origin, "not in this version: " + std::string(key) + " " + std::string(scheme));
    return;
  }
  const bool is_unix = text.starts_with("unix:");
  const std::string problem =
      is_unix ? UnixProblem(std::string_view(text).substr(5)) : HostPortProblem(text);
  if (!problem.empty())
    findings.Error(origin, std::string(key) + ": \"" + Printable(text) + "\" " + problem);
}

/// Port 0 asks for any free port, so it clashes with nothing.
bool IsFixed(const std::string& listener) { return !listener.ends_with(":0"); }

void CheckListeners(const Settings& settings, const Config& config, Findings& findings) {
  const Setting& main = settings.at("server.listen");
  const Setting& admin = settings.at("server.admin_listen");
  const auto& listen = config.server.listen;
  if (listen.empty() || listen.size() > kMaxListeners) {
    findings.Error(main.origin, "server.listen needs 1 to 64 addresses");
  }
  std::set<std::string> seen;
  for (const std::string& text : listen) {
    CheckListener("server.listen", text, main.origin, findings);
    if (IsFixed(text) && !seen.insert(text).second) {
      findings.Error(main.origin, "server.listen: \"" + Printable(text) + "\" is given twice");
    }
  }
  const std::string& text = config.server.admin_listen;
  if (text.empty()) return;
  CheckListener("server.admin_listen", text, admin.origin, findings);
  if (seen.contains(text)) {
    findings.Error(admin.origin,
                   "server.admin_listen: \"" + Printable(text) + "\" is in server.listen as well");
  }
  if (IsBeyondLoopback(text)) {
    findings.Warn(admin.origin,
                  "server.admin_listen: other hosts can read tags, counters and status on " +
                      Printable(text));
  }
}

void CheckStateDir(const Settings& settings, Findings& findings) {
  const Setting& folder = settings.at("server.state_dir");
  if (folder.value.text.starts_with('/') || folder.rank == Rank::kDefault) return;
  findings.Error(folder.origin,
                 "server.state_dir needs an absolute path: from another working directory, ids "
                 "would begin again");
}

void CheckModes(const Settings& settings, const Config& config, Findings& findings) {
  if (!config.segment.enabled && !config.snowflake.enabled) {
    findings.Warn(settings.at("segment.enabled").origin,
                  "no mode is on: every request for an id is refused");
  }
  if (config.compat.disabled_returns_zero) {
    findings.Warn(settings.at("compat.disabled_returns_zero").origin,
                  "DANGER: compat.disabled_returns_zero is on: a disabled mode answers 0 with "
                  "status 200, the same id to every caller");
  }
}

void CheckTimes(const Settings& settings, const Config& config, Findings& findings) {
  if (!config.segment.enabled || config.segment.wait > config.store.timeout) return;
  const Setting& wait = settings.at("segment.wait");
  const Setting& timeout = settings.at("store.timeout");
  findings.Warn(wait.rank >= timeout.rank ? wait.origin : timeout.origin,
                "segment.wait (" + FormatDuration(config.segment.wait) +
                    ") is not longer than store.timeout (" + FormatDuration(config.store.timeout) +
                    "): a request has no second try at a slow store");
}

}  // namespace

bool IsBeyondLoopback(std::string_view listener) {
  if (listener.starts_with("unix:")) return false;
  const std::string_view host = listener.substr(0, listener.rfind(':'));
  return !host.starts_with("127.") && host != "localhost" && host != "[::1]";
}

void CheckTogether(const Settings& settings, const Config& config, Findings& findings) {
  CheckListeners(settings, config, findings);
  CheckStateDir(settings, findings);
  CheckModes(settings, config, findings);
  CheckTimes(settings, config, findings);
}

}  // namespace leaf::config
