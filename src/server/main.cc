#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "config/config.h"
#include "config/config_files.h"
#include "server/server.h"

namespace {

constexpr int kOk = 0, kFailure = 1, kUsage = 2;

int Fail(const leaf::Error& error, int code) {
  const bool usage = code == kUsage;
  std::fprintf(stderr, "%s%s%s\n", usage ? "leafd: " : "", error.message.c_str(),
               usage ? "\nTry: leafd --help" : "");
  return code;
}

void PrintConfig(const leaf::Config& config) {
  for (const auto& item : config.items) {
    std::printf("%s = %s  # %s\n", item.key.c_str(), item.value.c_str(), item.origin.c_str());
  }
}

/// Started without one of the three standard files, the next file that is opened takes its number,
/// and the log would be written into the state folder or to a client.
bool FillStandardFiles() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2) fd = open("/dev/null", O_RDWR);
  if (fd < 0) return false;
  close(fd);
  return true;
}

/// As many connections as the system allows, not the low default that is meant for select().
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // what it is now is what the configuration goes by
}

/// Stop signals are read by the control loop, never by a handler; every thread inherits the mask.
/// SIGHUP, a terminal that went away, is one of them; under nohup it stays ignored.
void PrepareSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  // A file that reached the limit of its size (ulimit -f) is the store's trouble, as a full disk
  // is.
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGHUP);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

int Serve(leaf::Config config) {
  PrepareSignals();
  leaf::log::Start(config.log.level, config.log.format);
  auto server = leaf::Server::Start(std::move(config));
  if (!server.ok()) {
    leaf::log::Error("leafd cannot start", {{"reason", server.error().message}});
    leaf::log::Stop();
    return kFailure;
  }
  (*server)->Run();
  server->reset();
  leaf::log::Stop();
  return kOk;
}

}  // namespace

int main(int argc, char** argv) {
  if (!FillStandardFiles()) return kFailure;
  auto command_line = leaf::ParseCommandLine(argc, argv);
  if (!command_line.ok()) return Fail(command_line.error(), kUsage);
  if (command_line->help) {
    std::fputs(leaf::HelpText().c_str(), stdout);
    return kOk;
  }
  if (command_line->version) {
    std::puts("leafd " LEAFD_VERSION);
    return kOk;
  }
  RaiseFileLimit();
  auto config = leaf::LoadConfig(*command_line, leaf::config::ProcessEnvironment());
  if (!config.ok()) return Fail(config.error(), kFailure);
  if (command_line->print_config) PrintConfig(*config);
  if (command_line->check) std::puts("the configuration is valid");
  if (command_line->check || command_line->print_config) {
    for (const auto& notice : config->notices) std::fprintf(stderr, "note: %s\n", notice.c_str());
    for (const auto& warning : config->warnings)
      std::fprintf(stderr, "warning: %s\n", warning.c_str());
    return kOk;
  }
  return Serve(std::move(config).value());
}
