#include <getopt.h>

#include <array>
#include <vector>

#include "config/config.h"
#include "config/config_keys.h"

namespace leaf {
namespace {

enum Flag : int { kConfig = 256, kListen, kStore, kSet, kCheck, kPrintConfig, kVersion, kHelp };

constexpr std::array<option, 9> kOptions = {{{"config", required_argument, nullptr, kConfig},
                                             {"listen", required_argument, nullptr, kListen},
                                             {"store", required_argument, nullptr, kStore},
                                             {"set", required_argument, nullptr, kSet},
                                             {"check", no_argument, nullptr, kCheck},
                                             {"print-config", no_argument, nullptr, kPrintConfig},
                                             {"version", no_argument, nullptr, kVersion},
                                             {"help", no_argument, nullptr, kHelp},
                                             {nullptr, 0, nullptr, 0}}};

Error Usage(std::string message) {
  return Error{Code::kInvalidArgument, std::move(message)};
}

/// The flag's name alone: what follows '=' may be a secret.
std::string FlagName(std::string_view argument) {
  return std::string(argument.substr(0, argument.find('=')));
}

/// `argument` is unknown, or has a value that it does not take.
Error BadFlag(std::string_view argument) {
  if (optopt != 0 && optopt < kConfig)
    return Usage("unknown flag -" + std::string(1, static_cast<char>(optopt)));
  const std::string name = FlagName(argument);
  if (optopt >= kConfig) return Usage(name + " takes no value");
  std::vector<std::string> known;
  for (const option& entry : kOptions) {
    if (entry.name != nullptr) known.push_back("--" + std::string(entry.name));
  }
  return Usage("unknown flag " + name + config::SuggestionText(name, known));
}

Result<void> AddSet(std::string_view argument, CommandLine& command_line) {
  const auto equals = argument.find('=');
  if (equals == std::string_view::npos || equals == 0) return Usage("--set needs KEY=VALUE");
  command_line.settings.emplace_back(argument.substr(0, equals), argument.substr(equals + 1));
  return {};
}

Result<void> Take(int flag, const char* value, CommandLine& command_line) {
  switch (flag) {
    case kConfig:
      if (!command_line.config_file.empty()) return Usage("--config is given twice");
      if (*value == '\0') return Usage("--config needs a file");
      command_line.config_file = value;
      return {};
    case kListen:
      command_line.settings.emplace_back("--listen", value);
      return {};
    case kStore:
      command_line.settings.emplace_back("--store", value);
      return {};
    case kSet:
      return AddSet(value, command_line);
    case kCheck:
      command_line.check = true;
      return {};
    case kPrintConfig:
      command_line.print_config = true;
      return {};
    case kVersion:
      command_line.version = true;
      return {};
    default:
      command_line.help = true;
      return {};
  }
}

}  // namespace

Result<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine command_line;
  // getopt_long permutes the pointers, not the texts; the copy keeps the caller's order.
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) arguments.push_back(const_cast<char*>(argv[i]));
  arguments.push_back(nullptr);
  optind = 0;  // glibc: begin again, also after an earlier call
  opterr = 0;
  for (;;) {
    const int flag = getopt_long(argc, arguments.data(), ":", kOptions.data(), nullptr);
    if (flag == -1) break;
    const std::string_view argument = arguments[static_cast<std::size_t>(optind - 1)];
    if (flag == ':') return Usage(FlagName(argument) + " needs a value");
    if (flag == '?') return BadFlag(argument);
    LEAF_RETURN_IF_ERROR(Take(flag, optarg, command_line));
  }
  if (optind < argc) return Usage("takes no arguments without a flag");
  return command_line;
}

std::string HelpText() {
  return R"(leafd - a server of unique ids

Usage: leafd [--config FILE] [--listen ADDR] [--store URL] [--set KEY=VALUE]...
             [--check] [--print-config] [--version] [--help]

  --config FILE      TOML; a file that ends in .properties is read as Leaf's leaf.properties
  --listen ADDR      HOST:PORT or unix:/path; may be repeated (server.listen)
  --store URL        sqlite:PATH, mysql://USER:PASSWORD@HOST:PORT/DB, postgres://... likewise,
                     etcd://HOST:PORT/PREFIX or memory: (store.url)
  --set KEY=VALUE    any key of docs/configuration.md; lists separated by commas
  --check            check the configuration, open no connection, and end with 0 or 1
  --print-config     print each value with its origin, secrets hidden
  --version, --help

Values come from, strongest first: flag, environment LEAFD_<SECTION>_<KEY>, file, default.
Without any, leafd listens on 127.0.0.1:8080 (administration on 127.0.0.1:8081) and keeps
its ids in a SQLite file in its state folder.

Exit codes: 0 ok, 1 failure, 2 usage.
)";
}

}  // namespace leaf
