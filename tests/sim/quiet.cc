#include "quiet.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

namespace leaf::sim {
namespace {

int g_terminal = -1;
int g_held = -1;
std::array<char, 512> g_reproduce{};

void Write(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n <= 0) return;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
}

// Only what may be called in a signal handler.
void OnAbort(int) {
  std::array<char, 4096> text{};
  const off_t size = lseek(g_held, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(text.size()));
  const ssize_t n = pread(g_held, text.data(), text.size(), from);
  if (n > 0) Write(g_terminal, text.data(), static_cast<std::size_t>(n));
  Write(g_terminal, g_reproduce.data(), std::strlen(g_reproduce.data()));
  std::signal(SIGABRT, SIG_DFL);
}

}  // namespace

Quiet::Quiet(const std::string& reproduce)
    : saved_(dup(2)), held_(memfd_create("log", MFD_CLOEXEC)) {
  const std::string line = "aborted; reproduce: " + reproduce + "\n";
  g_reproduce.fill('\0');
  std::copy_n(line.begin(), std::min(line.size(), g_reproduce.size() - 1), g_reproduce.begin());
  g_terminal = saved_;
  g_held = held_;
  dup2(held_, 2);
  std::signal(SIGABRT, OnAbort);
}

Quiet::~Quiet() {
  std::signal(SIGABRT, SIG_DFL);
  dup2(saved_, 2);
  close(saved_);
  close(held_);
}

}  // namespace leaf::sim
