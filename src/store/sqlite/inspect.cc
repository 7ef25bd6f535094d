#include "store/sqlite/inspect.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "store/sqlite/file.h"
#include "store/sqlite/handle.h"
#include "store/sqlite/schema.h"

namespace leaf::sqlite {
namespace {

constexpr int kBusyMs = 1000;

Error Bad(const std::string& path, const std::string& what) {
  return {Code::kUnavailable, "sqlite: " + path + ": " + what};
}

// As a URI, with what has a meaning there escaped.
std::string AsUri(const std::string& path, bool immutable) {
  std::string uri = "file:";
  for (const char c : path) {
    switch (c) {
      case '%':
        uri += "%25";
        break;
      case '?':
        uri += "%3f";
        break;
      case '#':
        uri += "%23";
        break;
      default:
        uri += c;
    }
  }
  return uri + (immutable ? "?mode=ro&immutable=1" : "?mode=ro");
}

// A file with a log is shared with whoever writes; one without is read as it lies, since to open it
// as shared would make a log.
Result<Db> OpenToRead(const std::string& path) {
  sqlite3* raw = nullptr;
  const std::string uri = AsUri(path, !Identify(path + "-wal"));
  const int code = sqlite3_open_v2(
      uri.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  Db db(raw);
  if (code != SQLITE_OK) return Bad(path, Explain(raw, code));
  sqlite3_busy_timeout(raw, kBusyMs);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return db;
}

// By the file's header: SQLite does not say it of a file that it takes to be immutable. REQUIRES:
// this process has no SQLite connection to the file, whose locks the closing would drop.
bool IsWal(const std::string& path) {
  constexpr off_t kVersions = 18;  // for writing and for reading; 2: with a write-ahead log
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::array<char, 2> versions{};
  const ssize_t size = pread(fd, versions.data(), versions.size(), kVersions);
  close(fd);
  return size == 2 && versions[0] == 2 && versions[1] == 2;
}

Result<bool> HasTable(sqlite3* db, const std::string& path, const std::string& table) {
  Statement statement;
  int code = statement.Prepare(db,
                               "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 "
                               "COLLATE NOCASE");
  if (code != SQLITE_OK) return Bad(path, Explain(db, code));
  statement.Bind(1, table);
  code = statement.Step();
  if (code == SQLITE_ROW || code == SQLITE_DONE) return code == SQLITE_ROW;
  return Bad(path, Explain(db, code));
}

Result<void> ReadRows(sqlite3* db, const std::string& path, const std::string& table,
                      Inspection& found) {
  Statement statement;
  int code = statement.Prepare(
      db,
      "SELECT biz_tag, max_id, step, coalesce(update_time, ''), typeof(max_id) = 'integer', "
      "typeof(step) = 'integer' FROM \"" +
          table + "\" ORDER BY biz_tag COLLATE BINARY");
  if (code != SQLITE_OK) return Bad(path, Explain(db, code));
  while ((code = statement.Step()) == SQLITE_ROW) {
    const bool max_id = statement.Int(4) != 0, step = statement.Int(5) != 0;
    if (!max_id || !step) {
      found.unreadable.push_back({statement.Text(0), max_id, step,
                                  "tag '" + statement.Text(0) + "' has " +
                                      (max_id ? "step" : "max_id") + " NULL or no integer"});
    } else {
      found.rows.push_back(
          {statement.Text(0), statement.Int(1), statement.Int(2), statement.Text(3)});
    }
  }
  if (code != SQLITE_DONE) return Bad(path, Explain(db, code));
  return {};
}

Result<void> ReadWorkers(sqlite3* db, const std::string& path, Inspection& found) {
  LEAF_ASSIGN_OR_RETURN(const bool there, HasTable(db, path, "leafd_worker"));
  if (!there) return {};
  Statement statement;
  int code = statement.Prepare(
      db,
      "SELECT cluster, worker, generation, owner, identity, limit_ms FROM leafd_worker "
      "ORDER BY cluster, worker");
  if (code != SQLITE_OK) return Bad(path, Explain(db, code));
  while ((code = statement.Step()) == SQLITE_ROW) {
    WorkerCells& row = found.workers.emplace_back();
    row.cluster = statement.Text(0);
    for (int i = 0; i < 5; ++i) row.cells[static_cast<std::size_t>(i)] = statement.Text(i + 1);
  }
  if (code != SQLITE_DONE) return Bad(path, Explain(db, code));
  return {};
}

}  // namespace

Result<Inspection> Inspect(const std::string& path, const std::string& table) {
  Inspection found;
  LEAF_ASSIGN_OR_RETURN(File::Findings place, JudgePlace(path));
  found.info.durability = place.durability;
  found.info.warnings = std::move(place.warnings);
  LEAF_ASSIGN_OR_RETURN(found.used_by, PidLock::HolderOf(path + ".lock"));
  // The log and the lock are made beside the file.
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return Bad(path, "its folder: " + std::generic_category().message(errno) +
                         "; make it writable for the user that leafd runs as");
  const std::optional<FileId> id = Identify(path);
  found.exists = id.has_value();
  if (!id) return found;
  if (access(path.c_str(), R_OK | W_OK) != 0)
    return Bad(path, std::generic_category().message(errno) +
                         "; make it readable and writable for the user that leafd runs as");
  found.is_wal = IsWal(path);
  LEAF_ASSIGN_OR_RETURN(const Db db, OpenToRead(path));
  LEAF_RETURN_IF_ERROR(CheckEncoding(db.get(), path));
  LEAF_ASSIGN_OR_RETURN(found.has_table, HasTable(db.get(), path, table));
  if (found.has_table) {
    LEAF_RETURN_IF_ERROR(CheckTable(db.get(), path, table));
    LEAF_RETURN_IF_ERROR(ReadRows(db.get(), path, table, found));
  }
  LEAF_ASSIGN_OR_RETURN(found.info.identity,
                        ReadIdentity(db.get(), path, *id, found.info.warnings));
  LEAF_RETURN_IF_ERROR(ReadWorkers(db.get(), path, found));
  return found;
}

}  // namespace leaf::sqlite
