#pragma once

#include <string>

#include "leaf/result.h"

namespace leaf {

/// Lets one process use a folder or a file: an exclusive lock (of the open file description, so
/// that it ends with the process, however that ends) on a side file that holds the owner's pid. Two
/// PidLocks of one process exclude each other too. Confined to one thread at a time.
class PidLock {
 public:
  PidLock() = default;
  ~PidLock() { Release(); }
  PidLock(const PidLock&) = delete;
  PidLock& operator=(const PidLock&) = delete;

  /// Takes the lock on `path`, made with mode 0600, without waiting. kConflict: another holds it;
  /// the message names `what` and the holder's pid. kUnavailable: the file cannot be made.
  Result<void> Acquire(const std::string& path, const std::string& what);
  /// Who holds the lock on `path`, "process 12", without touching it; "" if nobody does.
  static Result<std::string> HolderOf(const std::string& path);
  bool held() const noexcept { return fd_ >= 0; }
  void Release() noexcept;

 private:
  int fd_ = -1;
};

}  // namespace leaf
