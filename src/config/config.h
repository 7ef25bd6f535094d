#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "core/segment/segment_store.h"
#include "core/snowflake/layout.h"
#include "leaf/result.h"
#include "registry/options.h"
#include "store/options.h"

namespace leaf {

/// Everything that can be set, with its defaults; docs/configuration.md lists the keys. A plain
/// value: built once at start, then constant.
struct Config {
  struct Server {
    std::vector<std::string> listen = {"127.0.0.1:8080"};  ///< HOST:PORT or unix:/path
    std::string admin_listen = "127.0.0.1:8081";           ///< empty: off
    bool probes_on_main = false;
    int threads = 0;        ///< 0: one a core
    std::string state_dir;  ///< absolute
    Duration drain = std::chrono::seconds(10), drain_delay{0};
    int max_connections = 10000, max_connections_per_ip = 0;
    int max_request_line = 8 * 1024, max_header = 16 * 1024, max_header_fields = 64,
        max_body = 64 * 1024;
    Duration header_timeout = std::chrono::seconds(5), idle_timeout = std::chrono::seconds(60);
  } server;

  StoreOptions store;              ///< url, table, credentials, timeout, min_durability
  std::int64_t failover_skip = 0;  ///< 0: auto

  struct Segment {
    bool enabled = true;
    std::string policy = "leaf";
    bool require_marks = false;
    std::int64_t waste = 50'000'000;
    Duration wait = std::chrono::seconds(3), refresh = std::chrono::seconds(60);
    int max_waiters = 100000;
    std::int64_t max_list = 10'000, max_count = 1'000'000;
    std::int64_t step = 1000;
    bool auto_create = true;
    int auto_create_limit = 10'000;
  } segment;

  struct Snowflake {
    bool enabled = true;
    std::string disabled_reason;  ///< for the status and the start log, if not enabled
    /// Why an enabled mode does not serve until the configuration says more; else empty.
    std::string unavailable_reason;
    Layout layout = kLeafLayout;
    RegistryOptions registry;  ///< registry, name and identity
    Duration lease = std::chrono::minutes(10), drift = std::chrono::seconds(5),
             wait = std::chrono::seconds(3);
    std::int64_t max_count = 10'000;
  } snowflake;

  struct Compat {
    bool leaf = false;
    bool cut_after_dot = false, pages_on_main = false;
    bool disabled_returns_zero = false;
  } compat;

  struct Log {
    log::Format format = log::Format::kText;
    log::Level level = log::Level::kInfo;
  } log;

  /// One line for --print-config: the value as TOML with secrets hidden, and where it came from
  /// ("default", "FILE:LINE", "environment LEAFD_...", "flag --listen").
  struct Item {
    std::string key, value, origin;
  };
  std::vector<Item> items;            ///< every key, in the order of the documents
  std::vector<std::string> warnings;  ///< to be logged at start
  std::vector<std::string>
      notices;  ///< likewise, at level info: what a .properties file has decided
};

/// What the command line asked for.
struct CommandLine {
  std::string config_file;  ///< empty: none
  bool check = false, print_config = false, version = false, help = false;
  /// In order: "--listen" or "--store" and its value, or the KEY and VALUE of a --set.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// Error: usage, exit code 2.
Result<CommandLine> ParseCommandLine(int argc, const char* const* argv);
std::string HelpText();

/// Builds the configuration from flags over `environment` over file over defaults. Opens no
/// connection. The error's message has one finding a line, each naming FILE:LINE, the variable or
/// the flag, with a suggestion for a misspelt key. Exit code 1.
Result<Config> LoadConfig(const CommandLine& command_line,
                          const std::map<std::string, std::string>& environment);

}  // namespace leaf
