#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/pid_lock.h"
#include "core/segment/segment_store.h"
#include "leaf/result.h"

namespace leaf::sqlite {

/// Which file a path names at the moment.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};
std::optional<FileId> Identify(const std::string& path) noexcept;

/// The database file as this process sees it, shared by all sessions on it. It never opens the file
/// once SQLite has: closing any descriptor of it would drop SQLite's POSIX locks. Thread-safe.
class File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {}

  struct Findings {
    Durability durability = Durability::kPower;
    std::vector<std::string> warnings;
  };
  /// Checks folder and file system, takes the process's lock, makes the file (0600) at first. An
  /// error says what is wrong and how to mend it.
  Result<Findings> Prepare();
  /// A session is open on `id`: from now on a missing file is an error and not a new beginning.
  void Opened(FileId id);

  const std::string& path() const noexcept { return path_; }

  /// Held while a session is set up: SQLite answers "locked" at once, and not after a wait, when
  /// two connections begin with the write-ahead log of a new file.
  Mutex setting_up;

  /// Set when a commit's sync failed: what the log holds may not be on disk though a later sync
  /// says so. Cleared when a checkpoint has emptied the log. Set at start, for what the process
  /// before saw.
  std::atomic<bool> log_suspect{true};

 private:
  const std::string path_;
  Mutex mu_;
  PidLock lock_ GUARDED_BY(mu_);
  std::optional<FileId> seen_ GUARDED_BY(mu_);
};

/// Judges the file system of the folder that `path` is in, as File::Prepare does first.
Result<File::Findings> JudgePlace(const std::string& path);

/// Who works on a file.
enum class FileUse { kTags, kWorkers };

/// The File for `path` and one use: shared with the other use of the same path in this process, so
/// that both go by one lock and one state of the log. A second asker for the same use gets a File
/// of its own, which the lock will refuse. Thread-safe.
std::shared_ptr<File> ShareFile(const std::string& path, FileUse use);

}  // namespace leaf::sqlite
