#include "admin/process_stats.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace leaf {
namespace {

/// The fields of /proc/self/stat from the third on; the second, the name, may hold blanks.
void ReadStat(ProcessStats& stats) {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  constexpr int kUserTicks = 14, kSystemTicks = 15, kThreads = 20, kVirtual = 23,
                kResidentPages = 24;
  std::string field;
  std::int64_t ticks = 0;
  for (int number = 3; number <= kResidentPages && fields >> field; ++number) {
    const std::int64_t value = number == 3 ? 0 : std::strtoll(field.c_str(), nullptr, 10);
    if (number == kUserTicks || number == kSystemTicks) ticks += value;
    if (number == kThreads) stats.threads = value;
    if (number == kVirtual) stats.virtual_bytes = value;
    if (number == kResidentPages) stats.resident_bytes = value * sysconf(_SC_PAGESIZE);
  }
  stats.cpu_seconds = static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::int64_t CountOpenFiles() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  std::int64_t entries = 0;
  while (readdir(folder) != nullptr) ++entries;
  closedir(folder);
  return entries - 3;  // ".", ".." and the folder's own
}

}  // namespace

ProcessStats ReadProcessStats() {
  ProcessStats stats;
  ReadStat(stats);
  stats.open_files = CountOpenFiles();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    stats.max_files = static_cast<std::int64_t>(limit.rlim_cur);
  return stats;
}

}  // namespace leaf
