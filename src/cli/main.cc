#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "cli/doctor.h"
#include "cli/store_init.h"
#include "config/config.h"
#include "config/config_files.h"

namespace {

constexpr int kOk = 0, kFailure = 1, kUsage = 2;

constexpr const char* kHelp =
    "usage: leafctl store init [--config FILE] [--store URL] [--set KEY=VALUE]... [--print]\n"
    "       leafctl doctor [--config FILE] [--store URL] [--set KEY=VALUE]... [--json]\n"
    "       leafctl --help | --version\n"
    "\n"
    "store init  makes the tables of tags and of workers in the store where they are missing,\n"
    "            and leaves those that are there as they are\n"
    "  --print   only prints the statements; connects to nothing\n"
    "\n"
    "doctor      judges the store, the registry of workers and the state folder as leafd would, "
    "and\n"
    "            says for each finding what mends it; changes nothing\n"
    "  --json    one JSON object in place of the lines\n"
    "\n"
    "The other options, the configuration file and the LEAFD_ variables are leafd's own.\n"
    "Exit code: 0 done, 1 it failed (doctor: leafd would refuse something), 2 wrong usage.\n";

int Fail(const std::string& message, int code) {
  std::fprintf(stderr, "leafctl: %s%s\n", message.c_str(),
               code == kUsage ? "\nTry: leafctl --help" : "");
  return code;
}

/// The arguments from `from` on without `name`, as leafd's command line takes them.
struct Arguments {
  std::vector<const char*> rest;
  bool given = false;  ///< `name` was there
};

Arguments TakeOption(int argc, char** argv, int from, std::string_view name) {
  Arguments arguments{{argv[0]}};
  for (int i = from; i < argc; ++i) {
    if (std::string_view(argv[i]) == name) {
      arguments.given = true;
    } else {
      arguments.rest.push_back(argv[i]);
    }
  }
  return arguments;
}

leaf::Result<leaf::CommandLine> Parse(const Arguments& arguments) {
  return leaf::ParseCommandLine(static_cast<int>(arguments.rest.size()), arguments.rest.data());
}

int StoreInit(int argc, char** argv) {
  const Arguments arguments = TakeOption(argc, argv, 3, "--print");
  const auto command_line = Parse(arguments);
  if (!command_line.ok()) return Fail(command_line.error().message, kUsage);
  if (command_line->help) {
    std::fputs(kHelp, stdout);
    return kOk;
  }
  const auto config = leaf::LoadConfig(*command_line, leaf::config::ProcessEnvironment());
  if (!config.ok()) return Fail(config.error().message, kFailure);
  const auto said = arguments.given ? leaf::StoreDdl(*config) : leaf::InitStore(*config);
  if (!said.ok()) return Fail(said.error().message, kFailure);
  std::fputs(said->c_str(), stdout);
  return kOk;
}

int Doctor(int argc, char** argv) {
  const Arguments arguments = TakeOption(argc, argv, 2, "--json");
  const auto command_line = Parse(arguments);
  if (!command_line.ok()) return Fail(command_line.error().message, kUsage);
  if (command_line->help) {
    std::fputs(kHelp, stdout);
    return kOk;
  }
  const auto config = leaf::LoadConfig(*command_line, leaf::config::ProcessEnvironment());
  // What a client library would log is in the findings.
  leaf::log::Start(leaf::log::Level::kError, leaf::log::Format::kText);
  const leaf::doctor::Report report =
      config.ok() ? leaf::RunDoctor(*config) : leaf::BadConfig(config.error().message);
  leaf::log::Stop();
  std::fputs((arguments.given ? report.Json() : report.Text()).c_str(), stdout);
  return report.Worst() == leaf::doctor::Severity::kError ? kFailure : kOk;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") {
    std::fputs(kHelp, stdout);
    return kOk;
  }
  if (first == "--version") {
    std::puts("leafctl " LEAFD_VERSION);
    return kOk;
  }
  if (first == "store" && argc > 2 && std::string_view(argv[2]) == "init")
    return StoreInit(argc, argv);
  if (first == "doctor") return Doctor(argc, argv);
  return Fail("no such command", kUsage);
}
