#pragma once

#include <atomic>

namespace leaf::sqlite {

/// Faults of the disk below SQLite, for tests: a layer over the host's own file access.
struct Faults {
  std::atomic<bool> read_only{false};  ///< as after `mount -o remount,ro`
  std::atomic<int> write_error{0};     ///< SQLite's code for each write; 0: none
  std::atomic<int> sync_error{0};      ///< likewise for each sync
  std::atomic<int> syncs{0};           ///< counted, failed ones too

  void Clear() {
    read_only = false;
    write_error = sync_error = 0;
  }
};

/// Puts the layer under every SQLite connection opened from now on, and returns its switches.
Faults& InstallFaultVfs();

}  // namespace leaf::sqlite
