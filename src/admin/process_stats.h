#pragma once

#include <cstdint>

namespace leaf {

/// This process as /proc shows it; what cannot be read stays 0.
struct ProcessStats {
  double cpu_seconds = 0;  ///< user and system
  std::int64_t virtual_bytes = 0, resident_bytes = 0;
  std::int64_t threads = 0;
  std::int64_t open_files = 0, max_files = 0;
};
ProcessStats ReadProcessStats();

}  // namespace leaf
