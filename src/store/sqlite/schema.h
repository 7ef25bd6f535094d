#pragma once

#include <string>
#include <vector>

#include "leaf/result.h"
#include "store/sqlite/file.h"
#include "store/sqlite/handle.h"

namespace leaf::sqlite {

/// `strftime` of now, as Leaf shows times; UTC.
inline constexpr const char* kNow = "strftime('%Y-%m-%d %H:%M:%S.0','now')";

/// Sets and verifies what a session needs: WAL, synchronous=FULL, UTF-8.
Result<void> SetUp(sqlite3* db, const std::string& path);

/// The part of it that a reader can check: names are compared as bytes.
Result<void> CheckEncoding(sqlite3* db, const std::string& path);

/// Empties the write-ahead log into the file. REQUIRES: no transaction on `db`.
Result<void> EmptyLog(sqlite3* db, const std::string& path);

/// Makes the tables that are missing, checks the types of those that are there, and proves by a
/// transaction that the file can be written. Returns the identity; findings go into `warnings`.
Result<std::string> CheckTables(sqlite3* db, const std::string& path, const std::string& table,
                                FileId id, std::vector<std::string>& warnings);

/// The columns and key of a table that is there. An error says which is wrong.
Result<void> CheckTable(sqlite3* db, const std::string& path, const std::string& table);

/// The identity that CheckTables would return, by reading alone; "" if it would be a new one.
Result<std::string> ReadIdentity(sqlite3* db, const std::string& path, FileId id,
                                 std::vector<std::string>& warnings);

}  // namespace leaf::sqlite
