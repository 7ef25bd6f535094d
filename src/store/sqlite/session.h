#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/time.h"
#include "leaf/result.h"
#include "store/sqlite/file.h"
#include "store/sqlite/handle.h"

namespace leaf::sqlite {

/// A connection to a File whose changes are durable transactions that end by their deadline. A
/// transaction whose deadline passed is rolled back; one whose sync failed is in doubt, and the log
/// is emptied before anything else is believed (File::log_suspect). Errors are kUnavailable and say
/// how to mend it. Confined to one thread at a time, save Interrupt.
class Session {
 public:
  explicit Session(std::shared_ptr<File> file) : file_(std::move(file)) {}
  ~Session() { Close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// `prepare` runs on the open file, in no transaction: it makes tables and statements.
  Result<File::Findings> Open(Instant deadline,
                              const std::function<Result<void>(sqlite3*)>& prepare);
  bool ready() const noexcept { return ready_; }
  /// REQUIRES: the caller's statements are gone.
  void Close() noexcept;
  void Interrupt() noexcept;

  /// Before a read.
  Result<void> Start(Instant deadline);
  Result<void> Begin(Instant deadline);
  Result<void> Commit();
  void RollBack();
  /// What an SQLite code means; ends the session if it is in doubt.
  Error Fail(int code);

  sqlite3* db() const noexcept { return db_.get(); }
  const std::string& path() const noexcept { return file_->path(); }

 private:
  bool Over() const { return interrupted_ || SystemClock().Now() >= deadline_; }
  bool SameFiles() const;
  Error Bad(const std::string& what) const;
  static int OnBusy(void* self, int tries);

  const std::shared_ptr<File> file_;
  bool ready_ = false;
  Instant deadline_ = kNever;
  FileId file_id_;
  std::optional<FileId> log_id_;
  std::atomic<bool> interrupted_{false};
  Mutex mu_;  // pins the handle for Interrupt
  Db db_;
};

}  // namespace leaf::sqlite
