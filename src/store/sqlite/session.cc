#include "store/sqlite/session.h"

#include <algorithm>

#include "store/sqlite/schema.h"

namespace leaf::sqlite {

Error Session::Bad(const std::string& what) const {
  return {Code::kUnavailable, "sqlite: " + path() + ": " + what};
}

Result<File::Findings> Session::Open(Instant deadline,
                                     const std::function<Result<void>(sqlite3*)>& prepare) {
  Close();
  interrupted_ = false;
  deadline_ = deadline;
  if (Over()) return Bad("the deadline passed before the call began");
  LEAF_ASSIGN_OR_RETURN(File::Findings findings, file_->Prepare());
  const std::optional<FileId> id = Identify(path());
  if (!Identify(path() + "-wal")) file_->log_suspect = false;
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path().c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  {
    MutexLock lock(mu_);
    db_.reset(raw);
  }
  if (code != SQLITE_OK || !id) return Fail(code != SQLITE_OK ? code : SQLITE_CANTOPEN);
  file_id_ = *id;
  sqlite3_busy_handler(raw, &Session::OnBusy, this);
  if (sqlite3_db_readonly(raw, "main") == 1) return Fail(SQLITE_READONLY);
  const MutexLock setting_up(file_->setting_up);
  LEAF_RETURN_IF_ERROR(SetUp(raw, path()));
  if (file_->log_suspect) {
    LEAF_RETURN_IF_ERROR(EmptyLog(raw, path()));
    file_->log_suspect = false;
  }
  LEAF_RETURN_IF_ERROR(prepare(raw));
  log_id_ = Identify(path() + "-wal");
  if (!SameFiles()) return Bad("it was replaced while it was opened");
  file_->Opened(file_id_);
  ready_ = true;
  return findings;
}

void Session::Close() noexcept {
  ready_ = false;
  Db db;
  MutexLock lock(mu_);
  db.swap(db_);
}

void Session::Interrupt() noexcept {
  interrupted_ = true;
  MutexLock lock(mu_);
  if (db_) sqlite3_interrupt(db_.get());
}

int Session::OnBusy(void* self, int tries) {
  if (static_cast<const Session*>(self)->Over()) return 0;
  sqlite3_sleep(std::min(1 << std::min(tries, 3), 8));
  return 1;
}

// Whether the path still names what is open: a commit to an unlinked file is lost with the process.
bool Session::SameFiles() const {
  const std::optional<FileId> file = Identify(path());
  return file && *file == file_id_ && log_id_ && Identify(path() + "-wal") == log_id_;
}

Error Session::Fail(int code) {
  const int primary = code & 0xff;
  if (primary != SQLITE_BUSY && primary != SQLITE_INTERRUPT && primary != SQLITE_CONSTRAINT)
    ready_ = false;
  return Bad(Explain(db_.get(), code));
}

Result<void> Session::Start(Instant deadline) {
  interrupted_ = false;
  deadline_ = deadline;
  if (Over()) return Bad("the deadline passed before the call began");
  if (!ready_) return Bad("the session is closed");
  const bool same = SameFiles();
  if (same && !file_->log_suspect) return {};
  ready_ = false;
  return Bad(same ? "a commit's sync failed; the log has to be emptied first"
                  : "it or its -wal was removed or replaced while leafd ran");
}

Result<void> Session::Begin(Instant deadline) {
  LEAF_RETURN_IF_ERROR(Start(deadline));
  if (const int code = Exec(db_.get(), "BEGIN IMMEDIATE"); code != SQLITE_OK) return Fail(code);
  return {};
}

void Session::RollBack() {
  if (sqlite3_get_autocommit(db_.get()) != 0) return;
  if (Exec(db_.get(), "ROLLBACK") != SQLITE_OK) ready_ = false;
}

Result<void> Session::Commit() {
  if (Over()) {
    RollBack();
    return Bad("the deadline passed before the commit; rolled back");
  }
  const int code = Exec(db_.get(), "COMMIT");
  if (code == SQLITE_OK) {
    if (SameFiles()) return {};
    ready_ = false;
    return Bad("it was removed or replaced during a commit");
  }
  Error error = Fail(code);
  const int primary = code & 0xff;
  const bool open = sqlite3_get_autocommit(db_.get()) == 0;
  // A full disk stops the commit's last record from being written whole.
  const bool undone =
      primary == SQLITE_FULL || (open && (primary == SQLITE_BUSY || primary == SQLITE_INTERRUPT));
  RollBack();
  if (undone && sqlite3_get_autocommit(db_.get()) != 0) return error;
  ready_ = false;
  file_->log_suspect = true;
  return error;
}

}  // namespace leaf::sqlite
