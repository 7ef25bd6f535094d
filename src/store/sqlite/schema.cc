#include "store/sqlite/schema.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "base/random.h"

namespace leaf::sqlite {
namespace {

Error Broken(sqlite3* db, const std::string& path, int code) {
  return {Code::kUnavailable, "sqlite: " + path + ": " + Explain(db, code)};
}

Result<void> SetPragma(sqlite3* db, const std::string& path, const std::string& set,
                       const std::string& query, const std::string& wanted) {
  std::string got;
  int code = QueryText(db, set, got);
  if (code == SQLITE_DONE || code == SQLITE_ROW) code = QueryText(db, query, got);
  if (code != SQLITE_ROW) return Broken(db, path, code);
  if (got == wanted) return {};
  return Error{Code::kUnavailable,
               "sqlite: " + path + ": '" + query + "' is '" + got + "' and not '" + wanted + "'"};
}

struct Column {
  std::string name, type;
  bool key = false;
};

Result<std::vector<Column>> Columns(sqlite3* db, const std::string& path,
                                    const std::string& table) {
  Statement statement;
  int code = statement.Prepare(db, "SELECT name, upper(type), pk FROM pragma_table_info(?1)");
  if (code != SQLITE_OK) return Broken(db, path, code);
  statement.Bind(1, table);
  std::vector<Column> columns;
  while ((code = statement.Step()) == SQLITE_ROW) {
    columns.push_back({statement.Text(0), statement.Text(1), statement.Int(2) != 0});
  }
  if (code != SQLITE_DONE) return Broken(db, path, code);
  return columns;
}

bool Holds(const std::string& type, std::string_view part) {
  return type.find(part) != std::string::npos;
}

// The affinities of SQLite's own rules.
bool IsInteger(const std::string& type) { return Holds(type, "INT"); }
bool IsText(const std::string& type) {
  return !IsInteger(type) && (Holds(type, "CHAR") || Holds(type, "CLOB") || Holds(type, "TEXT"));
}

Result<void> CheckColumns(const std::vector<Column>& columns, const std::string& path,
                          const std::string& table) {
  const auto wrong = [&](const std::string& what) {
    return Error{Code::kUnavailable, "sqlite: " + path + ": table " + table + ": " + what};
  };
  struct Wanted {
    const char* name;
    bool (*fits)(const std::string&);
    const char* type;
  };
  constexpr std::array kWanted{
      Wanted{"biz_tag", IsText, "TEXT"}, Wanted{"max_id", IsInteger, "INTEGER"},
      Wanted{"step", IsInteger, "INTEGER"}, Wanted{"update_time", nullptr, ""}};
  for (const Wanted& wanted : kWanted) {
    const auto it = std::find_if(columns.begin(), columns.end(),
                                 [&](const Column& c) { return c.name == wanted.name; });
    if (it == columns.end()) return wrong(std::string("column ") + wanted.name + " is missing");
    if (wanted.fits != nullptr && !wanted.fits(it->type)) {
      return wrong("column " + it->name + " has type '" + it->type + "', needed is " + wanted.type);
    }
    if (it->key != (it->name == "biz_tag")) return wrong("its primary key must be biz_tag");
  }
  return {};
}

std::string NewFileId() {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(SystemRandom().Next()),
                static_cast<unsigned long long>(SystemRandom().Next()));
  return text.data();
}

std::string TableDdl(const std::string& table) {
  return "CREATE TABLE IF NOT EXISTS \"" + table +
         "\" (biz_tag TEXT NOT NULL COLLATE BINARY PRIMARY KEY, max_id INTEGER NOT NULL DEFAULT 1, "
         "step INTEGER NOT NULL, description TEXT DEFAULT NULL, update_time TEXT NOT NULL DEFAULT "
         "(" +
         kNow + "))";
}

constexpr const char* kMetaDdl =
    "CREATE TABLE IF NOT EXISTS leafd_meta (id INTEGER PRIMARY KEY CHECK (id = 1), "
    "file_id TEXT NOT NULL, inode INTEGER NOT NULL, opened INTEGER NOT NULL)";

constexpr const char* kCopied =
    "this file is a copy, or was restored: two servers on copies would issue the "
    "same ids, and a restored one must not be older than the last";

std::string Identity(const std::string& name, FileId id) {
  return "sqlite:" + name + ":" + std::to_string(id.device) + ":" + std::to_string(id.inode);
}

// The file's random name; a new one where the inode says that this is another file than before.
int NameFile(sqlite3* db, FileId id, std::string& name, std::vector<std::string>& warnings) {
  const auto inode = static_cast<std::int64_t>(id.inode);
  Statement read;
  if (const int code = read.Prepare(db, "SELECT file_id, inode FROM leafd_meta");
      code != SQLITE_OK) {
    return code;
  }
  const int found = read.Step();
  if (found != SQLITE_ROW && found != SQLITE_DONE) return found;
  const bool copied = found == SQLITE_ROW && read.Int(1) != inode;
  if (copied) warnings.emplace_back(kCopied);
  name = found == SQLITE_ROW && !copied ? read.Text(0) : NewFileId();
  read.Reset();
  Statement write;
  const int code = write.Prepare(db,
                                 "INSERT INTO leafd_meta (id, file_id, inode, opened) VALUES (1, "
                                 "?1, ?2, 1) ON CONFLICT (id) DO "
                                 "UPDATE SET file_id = ?1, inode = ?2, opened = opened + 1");
  if (code != SQLITE_OK) return code;
  write.Bind(1, name);
  write.Bind(2, inode);
  return write.Step();
}

}  // namespace

Result<void> SetUp(sqlite3* db, const std::string& path) {
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  LEAF_RETURN_IF_ERROR(CheckEncoding(db, path));
  LEAF_RETURN_IF_ERROR(
      SetPragma(db, path, "PRAGMA journal_mode=WAL", "PRAGMA journal_mode", "wal"));
  return SetPragma(db, path, "PRAGMA synchronous=FULL", "PRAGMA synchronous", "2");
}

Result<void> CheckEncoding(sqlite3* db, const std::string& path) {
  std::string encoding;
  if (const int code = QueryText(db, "PRAGMA encoding", encoding); code != SQLITE_ROW) {
    return Broken(db, path, code);
  }
  if (encoding != "UTF-8") {
    return Error{Code::kUnavailable, "sqlite: " + path + ": its encoding is " + encoding +
                                         "; names are compared as bytes, so it must be UTF-8"};
  }
  return {};
}

Result<void> EmptyLog(sqlite3* db, const std::string& path) {
  const int code =
      sqlite3_wal_checkpoint_v2(db, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code != SQLITE_OK) return Broken(db, path, code);
  return {};
}

Result<std::string> CheckTables(sqlite3* db, const std::string& path, const std::string& table,
                                FileId id, std::vector<std::string>& warnings) {
  const auto roll_back = [&](Error error) {
    Exec(db, "ROLLBACK");
    return error;
  };
  std::string name;
  int code = Exec(db, "BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = Exec(db, TableDdl(table).c_str());
  if (code == SQLITE_OK) code = Exec(db, kMetaDdl);
  if (code == SQLITE_OK) code = NameFile(db, id, name, warnings);
  if (code != SQLITE_OK && code != SQLITE_DONE) return roll_back(Broken(db, path, code));
  Result<std::vector<Column>> columns = Columns(db, path, table);
  if (!columns.ok()) return roll_back(columns.error());
  if (Result<void> fit = CheckColumns(*columns, path, table); !fit.ok())
    return roll_back(fit.error());
  if (code = Exec(db, "COMMIT"); code != SQLITE_OK) return roll_back(Broken(db, path, code));
  return Identity(name, id);
}

Result<void> CheckTable(sqlite3* db, const std::string& path, const std::string& table) {
  LEAF_ASSIGN_OR_RETURN(const std::vector<Column> columns, Columns(db, path, table));
  return CheckColumns(columns, path, table);
}

Result<std::string> ReadIdentity(sqlite3* db, const std::string& path, FileId id,
                                 std::vector<std::string>& warnings) {
  std::string there;
  int code = QueryText(db, "SELECT 1 FROM sqlite_schema WHERE name = 'leafd_meta'", there);
  if (code == SQLITE_DONE) return std::string();  // leafd has not opened the file yet
  Statement read;
  if (code == SQLITE_ROW) code = read.Prepare(db, "SELECT file_id, inode FROM leafd_meta");
  if (code == SQLITE_OK) code = read.Step();
  if (code == SQLITE_DONE) return std::string();
  if (code != SQLITE_ROW) return Broken(db, path, code);
  if (read.Int(1) == static_cast<std::int64_t>(id.inode)) return Identity(read.Text(0), id);
  warnings.emplace_back(kCopied);
  return std::string();
}

}  // namespace leaf::sqlite
