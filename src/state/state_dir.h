#pragma once

#include <string>

#include "base/pid_lock.h"
#include "leaf/result.h"

namespace leaf {

/// The folder that holds what a server remembers, for this process alone as long as the object
/// lives. Confined to one thread at a time.
class StateDir {
 public:
  /// Makes `path` (absolute) and the folders above it as needed, each 0700 and synced, and takes
  /// the lock in it. Errors say what is wrong and how to mend it: kConflict names the process that
  /// uses it.
  Result<void> Open(const std::string& path);

  /// What Open would say of `path`, but makes nothing and takes no lock: a folder that is there
  /// must be usable, for one that is not the next one above it. A warning, or "".
  static Result<std::string> Judge(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  /// What is unwise about the folder; empty if nothing.
  const std::string& warning() const noexcept { return warning_; }

 private:
  std::string path_, warning_;
  PidLock lock_;
};

}  // namespace leaf
