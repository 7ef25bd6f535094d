#include "store/sqlite/handle.h"

namespace leaf::sqlite {
namespace {

const char* Hint(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "the disk is full: free space on it";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "the file or its folder cannot be written: check owner, mode and mount options";
    case SQLITE_NOTADB:
      return "this is not an SQLite database: name another file, or move this one away";
    case SQLITE_CORRUPT:
      return "the file is damaged: stop leafd and restore it from a backup, or rescue it with "
             "'sqlite3 FILE .recover'";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another connection holds its lock";
    case SQLITE_CANTOPEN:
      return "the file cannot be opened: check that it and its folder are there and may be used";
    case SQLITE_INTERRUPT:
      return "the call passed its deadline";
    case SQLITE_IOERR:
      return "the disk reports an error: see the kernel's log";
    default:
      return nullptr;
  }
}

}  // namespace

int Statement::Prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  statement_.reset(statement);
  return code;
}

void Statement::Bind(int index, std::string_view text) {
  // A null pointer would bind NULL.
  const char* data = text.empty() ? "" : text.data();
  sqlite3_bind_text(statement_.get(), index, data, static_cast<int>(text.size()), SQLITE_STATIC);
}

std::string Statement::Text(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

int Exec(sqlite3* db, const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr); }

int QueryText(sqlite3* db, const std::string& sql, std::string& out) {
  Statement statement;
  if (const int code = statement.Prepare(db, sql); code != SQLITE_OK) return code;
  const int code = statement.Step();
  if (code == SQLITE_ROW) out = statement.Text(0);
  return code;
}

std::string Explain(sqlite3* db, int code) {
  const bool last = db != nullptr && sqlite3_extended_errcode(db) == code;
  std::string text = last ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  text += " (SQLite code " + std::to_string(code) + ")";
  if (const char* hint = Hint(code)) text += std::string("; ") + hint;
  return text;
}

}  // namespace leaf::sqlite
