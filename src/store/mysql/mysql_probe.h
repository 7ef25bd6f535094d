#pragma once

#include <string>

#include "store/driver.h"
#include "store/mysql/mysql_connection.h"

namespace leaf {

/// What a new session learnt of its server and table.
struct MysqlFacts {
  StoreInfo info;
  bool has_update_time = false;
  /// Conditions of SQL, with " AND " before each, that hold while the table's engine is the one
  /// found ("" on MySQL, which cannot be asked for it inside of a statement), and while the server
  /// and its settings are ("" where statements are logged as such, for replicas to run them).
  std::string engine_guard, settings_guard;
  /// A query that answers as `settings` while the server and its settings are those found.
  std::string settings_query;
  MysqlConnection::Cells settings;
  /// A commit is acknowledged by a replica first. One that waits for it when that is switched off
  /// ends as a success: the settings have to be asked for again afterwards.
  bool waits_for_replica = false;
  /// A query of one row that answers as `fingerprint` while nothing that the probe relies on has
  /// changed.
  std::string fingerprint_query;
  MysqlConnection::Cells fingerprint;
};

/// Sets the session's modes and the server-side limits of `limit` on each statement and lock.
/// MySQL limits no UPDATE and counts locks in whole seconds: there a statement that was abandoned
/// behind a lock may still commit up to a second later.
Result<void> SetUpMysqlSession(MysqlConnection& connection, Duration limit, Instant deadline);

/// GRANT of `privileges` on `table` (quoted) to the account that the session was let in as, as the
/// server names it.
std::string GrantStatement(MysqlConnection& connection, const std::string& privileges,
                           const std::string& table, Instant deadline);

/// Judges the server and the table. kUnavailable, with what is wrong and the statement that mends
/// it, for: no such table (the DDL), a view, an engine other than InnoDB, column types that lose or
/// refuse ids, no unique key on biz_tag alone, no privilege, a read-only server, a cluster node
/// outside of its primary component. Needs SELECT and UPDATE on the table only.
///
/// Durability: `power` needs innodb_flush_log_at_trx_commit = 1 and, where there is a binary log,
/// sync_binlog = 1 (without it a power loss rolls back what the log had not kept). Otherwise
/// `process`, but `volatile` where a killed server forgets commits: at 0 outside of a cluster, or
/// without a redo log. `replicated` needs `power` and either Galera with two nodes or more, or
/// semi-synchronous replication with AFTER_SYNC, a replica connected and the longest timeout.
Result<MysqlFacts> ProbeMysql(MysqlConnection& connection, const MysqlSettings& settings,
                              Instant deadline);

}  // namespace leaf
