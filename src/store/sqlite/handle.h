#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace leaf::sqlite {

struct CloseDb {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
using Db = std::unique_ptr<sqlite3, CloseDb>;

/// A prepared statement. Text is bound by reference: it must live until Reset. Confined to one
/// thread.
class Statement {
 public:
  /// An SQLite result code; the statement is empty unless it is SQLITE_OK.
  int Prepare(sqlite3* db, const std::string& sql);
  void Bind(int index, std::int64_t value) { sqlite3_bind_int64(statement_.get(), index, value); }
  void Bind(int index, std::string_view text);
  /// SQLITE_ROW, SQLITE_DONE or an error.
  int Step() { return sqlite3_step(statement_.get()); }
  void Reset() noexcept { sqlite3_reset(statement_.get()); }
  std::int64_t Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  /// The bytes as stored, zero bytes included.
  std::string Text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// Resets a statement at the end of its use, so that it holds no lock and no bound text.
class Running {
 public:
  explicit Running(Statement& statement) : statement_(statement) {}
  ~Running() { statement_.Reset(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Statement& statement_;
};

/// Runs statements without results. An SQLite result code.
int Exec(sqlite3* db, const char* sql);

/// The first column of the first row of `sql`, as text; the code is SQLITE_ROW if there was one.
int QueryText(sqlite3* db, const std::string& sql, std::string& out);

/// What an SQLite error means for the owner of the file, and how to mend it.
std::string Explain(sqlite3* db, int code);

}  // namespace leaf::sqlite
