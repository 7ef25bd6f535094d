#include "store/postgres/postgres_probe.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include "store/postgres/postgres_errors.h"

namespace leaf {
namespace {

using Cells = PostgresOutcome::Cells;

Error Bad(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

Result<std::vector<Cells>> Select(PostgresConnection& connection, PostgresStatement statement,
                                  Instant deadline) {
  PostgresOutcome outcome = connection.Run(std::move(statement), deadline);
  if (!outcome.done()) return outcome.error;
  return std::move(outcome.rows);
}

std::string Text(const std::optional<std::string>& cell) { return cell.value_or(""); }
bool True(const std::optional<std::string>& cell) { return cell == "t" || cell == "on"; }

std::string Alter(const std::string& table, const std::string& change) {
  return "ALTER TABLE " + table + " " + change + ";";
}

bool In(const std::string& type, std::initializer_list<const char*> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

void Judge(bool fsync, bool full_pages, const std::string& standbys, StoreInfo& info) {
  info.durability = standbys.empty() ? Durability::kPower : Durability::kReplicated;
  const auto lower = [&info](std::string why) {
    info.durability = Durability::kProcess;
    info.warnings.push_back(std::move(why));
  };
  if (!fsync) {
    lower(
        "fsync = off forgets ids at a power loss; ALTER SYSTEM SET fsync = on; SELECT "
        "pg_reload_conf();");
  }
  if (!full_pages) {
    lower(
        "full_page_writes = off can leave torn pages at a power loss; ALTER SYSTEM SET "
        "full_page_writes = on; SELECT pg_reload_conf();");
  }
}

struct Column {
  std::string type;
  bool not_null = false, deterministic = true;
};

/// The table as the catalogue knows it.
struct Table {
  std::string oid, name, kind, persistence, fingerprint, backend;  // name: with its schema, quoted
  bool may_select = false, may_update = false, keyed = false;
};

Result<std::optional<Table>> FindTable(PostgresConnection& connection,
                                       const PostgresSettings& settings, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      Select(connection,
             {"SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind, "
              "c.relpersistence, has_table_privilege(c.oid, 'SELECT'), "
              "has_table_privilege(c.oid, 'UPDATE'), " +
                  FingerprintOf("c.relfilenode") +
                  ", pg_backend_pid() FROM pg_class c JOIN pg_namespace n ON n.oid = "
                  "c.relnamespace WHERE c.oid = "
                  "to_regclass($1::text)",
              {QuotedTable(settings)}},
             deadline));
  if (rows.empty()) return std::optional<Table>();
  const Cells& row = rows[0];
  return std::optional(Table{Text(row[0]), Text(row[1]), Text(row[2]), Text(row[3]), Text(row[6]),
                             Text(row[7]), True(row[4]), True(row[5]), false});
}

Result<void> CheckKind(const Table& table, const std::string& user) {
  if (table.kind != "r") {
    const char* kind = table.kind == "v"   ? "a view"
                       : table.kind == "p" ? "a partitioned table"
                       : table.kind == "f" ? "a foreign table"
                                           : "no plain table";
    return Bad(table.name + " is " + kind + "; leafd needs the table itself");
  }
  if (table.persistence == "t") {
    return Bad("the table " + table.name +
               " is temporary; name the schema of the lasting one in store.table");
  }
  if (table.persistence != "p") {
    return Bad("the table " + table.name + " is UNLOGGED, which does not keep what it " +
               "acknowledged: " + Alter(table.name, "SET LOGGED"));
  }
  if (!table.may_select || !table.may_update) {
    return Bad("the user '" + user + "' lacks privileges on " + table.name +
               ": GRANT SELECT, UPDATE ON " + table.name + " TO " + QuotedName(user) + ";");
  }
  return {};
}

Result<std::map<std::string, Column>> ReadColumns(PostgresConnection& connection,
                                                  const Table& table, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      Select(connection,
             {"SELECT a.attname, t.typname, a.attnotnull, coalesce(c.collisdeterministic, true) "
              "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c "
              "ON c.oid = a.attcollation WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT "
              "a.attisdropped",
              {table.oid}},
             deadline));
  std::map<std::string, Column> columns;
  for (const Cells& row : rows)
    columns[Text(row[0])] = Column{Text(row[1]), True(row[2]), True(row[3])};
  return columns;
}

Result<void> CheckColumns(const PostgresSettings& settings, const Table& table,
                          const std::map<std::string, Column>& columns) {
  if (columns.find("biz_tag") == columns.end()) {
    return Bad("the table " + table.name + " has no column biz_tag; name another in store.table; " +
               "leafd's own is: " + LeafTableDdl(settings));
  }
  if (columns.find("step") == columns.end()) {
    return Bad("the table " + table.name + " has no column step: " +
               Alter(table.name, "ADD COLUMN step int NOT NULL DEFAULT 1000"));
  }
  if (columns.find("max_id") == columns.end()) {
    return Bad(
        "the table " + table.name +
        " has no column max_id, which has to be above every id that was ever issued: " +
        Alter(table.name, "ADD COLUMN max_id bigint NOT NULL DEFAULT LARGEST_ID_EVER_ISSUED"));
  }
  const Column& tag = columns.at("biz_tag");
  if (!In(tag.type, {"varchar", "text"})) {
    return Bad("the column biz_tag is " + tag.type + "; it must be varchar or text: " +
               Alter(table.name, "ALTER COLUMN biz_tag TYPE varchar(128)"));
  }
  if (!tag.deterministic) {
    return Bad(
        "the column biz_tag has a nondeterministic collation, which takes different names "
        "for one: " +
        Alter(table.name, "ALTER COLUMN biz_tag TYPE varchar(128) COLLATE \"C\""));
  }
  if (columns.at("max_id").type != "int8") {
    return Bad("the column max_id is " + columns.at("max_id").type + "; ids need a bigint: " +
               Alter(table.name,
                     "ALTER COLUMN max_id DROP DEFAULT, ALTER COLUMN max_id TYPE bigint USING "
                     "max_id::bigint, ALTER COLUMN max_id SET DEFAULT 1"));
  }
  if (!In(columns.at("step").type, {"int4", "int8", "int2"})) {
    return Bad("the column step is " + columns.at("step").type + "; it must be an integer: " +
               Alter(table.name,
                     "ALTER COLUMN step DROP DEFAULT, ALTER COLUMN step TYPE int USING step::int"));
  }
  return {};
}

// A valid, whole, unique index on biz_tag alone: else two rows could have one name.
Result<void> CheckKey(PostgresConnection& connection, const Table& table, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      Select(connection,
             {"SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND "
              "a.attnum = i.indkey[0] WHERE i.indrelid = $1::oid AND i.indisunique AND "
              "i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL AND i.indexprs IS NULL "
              "AND a.attname = 'biz_tag' LIMIT 1",
              {table.oid}},
             deadline));
  if (!rows.empty()) return {};
  return Bad("the table " + table.name +
             " has no unique key on biz_tag alone, so one name could have several rows: " +
             Alter(table.name, "ADD PRIMARY KEY (biz_tag)"));
}

}  // namespace

// Its parts are in the server's memory; the system identifier is in a file. A server is told from
// another one by when it was started, a table that was made to forget by its new file.
std::string FingerprintOf(std::string_view filenode) {
  return "concat_ws('|', extract(epoch FROM pg_postmaster_start_time()), CASE WHEN "
         "pg_is_in_recovery() THEN 'standby' "
         "ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END, current_setting('fsync'), "
         "current_setting('full_page_writes'), current_setting('synchronous_standby_names'), " +
         std::string(filenode) + ")";
}

PostgresStatement Preamble(Duration limit) {
  const auto ms = std::max<std::int64_t>(
      1, std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
  // The shorter one gives the reason.
  const auto lock_ms = std::max<std::int64_t>(1, ms - ms / 10);
  return {
      "SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN "
      "'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), "
      "set_config('client_min_messages', 'warning', true), set_config('lock_timeout', $1::text, "
      "true), set_config('statement_timeout', $2::text, true)",
      {std::to_string(lock_ms), std::to_string(ms)}};
}

namespace {

// Where the setting comes from says what takes it back.
Error ReadOnlySession(PostgresConnection& connection, Instant deadline) {
  const std::string name = "default_transaction_read_only";
  const auto rows =
      Select(connection,
             {"SELECT source, quote_ident(session_user), quote_ident(current_database()) FROM "
              "pg_settings WHERE name = $1::text",
              {name}},
             deadline);
  std::string source, mend = "ALTER SYSTEM SET " + name + " = off; SELECT pg_reload_conf();";
  if (rows.ok() && rows->size() == 1) {
    const Cells& row = rows->front();
    source = Text(row[0]);
    std::string of;
    if (source == "user") of = "ROLE " + Text(row[1]);
    if (source == "database") of = "DATABASE " + Text(row[2]);
    if (source == "database user") of = "ROLE " + Text(row[1]) + " IN DATABASE " + Text(row[2]);
    // The one who mends it may be read-only by the same setting.
    if (!of.empty()) mend = "BEGIN READ WRITE; ALTER " + of + " RESET " + name + "; COMMIT;";
  }
  return Bad("the session is read-only (" + name +
             " = on, set by: " + (source.empty() ? "unknown" : source) + "): " + mend);
}

}  // namespace

Result<StoreInfo> ProbePostgresServer(PostgresConnection& connection, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> writable,
      Select(connection,
             {"SELECT pg_is_in_recovery(), current_setting('transaction_read_only')", {}},
             deadline));
  if (writable.size() != 1) return Bad("the server does not tell whether it can be written to");
  if (True(writable[0][0])) {
    return Bad(
        "the server is read-only: a standby in recovery; point store.url at the primary, or name "
        "all servers in it");
  }
  if (True(writable[0][1])) return ReadOnlySession(connection, deadline);
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      Select(connection,
             {"SELECT (SELECT system_identifier FROM pg_control_system()), "
              "left(pg_walfile_name(pg_current_wal_lsn()), 8), current_setting('fsync'), "
              "current_setting('full_page_writes'), CASE WHEN "
              "current_setting('max_wal_senders')::int > 0 THEN "
              "current_setting('synchronous_standby_names') ELSE '' END",
              {}},
             deadline));
  if (rows.size() != 1) return Bad("the server does not tell who it is");
  const Cells& row = rows[0];
  StoreInfo info;
  info.identity = "postgres:" + Text(row[0]) + ":timeline " + Text(row[1]);
  Judge(True(row[2]), True(row[3]), Text(row[4]), info);
  return info;
}

namespace {

// Later commits end after earlier ones: a session more would only be one more that waits.
Result<void> CheckWaits(PostgresConnection& connection, const PostgresSettings& settings,
                        Instant deadline) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(settings.timeout).count();
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      Select(connection,
             {"SELECT count(*), current_setting('synchronous_standby_names') FROM pg_stat_activity "
              "WHERE usename = current_user AND wait_event = 'SyncRep' AND clock_timestamp() - "
              "query_start > $1::bigint * interval '1 millisecond'",
              {std::to_string(ms)}},
             deadline));
  if (rows.size() != 1 || rows[0][0] == "0") return {};
  return Bad("the server's synchronous standby is away: commits of the user '" + settings.user +
             "' wait for it in " + Text(rows[0][0]) + " sessions, for longer than " +
             std::to_string(ms) + " ms (synchronous_standby_names = '" + Text(rows[0][1]) +
             "'); bring it back, or name one that is there");
}

}  // namespace

Result<PostgresFacts> ProbePostgres(PostgresConnection& connection,
                                    const PostgresSettings& settings, Instant deadline) {
  PostgresFacts facts;
  // The fingerprint is taken first: what changes while the rest is judged differs from it later.
  LEAF_ASSIGN_OR_RETURN(const std::optional<Table> found,
                        FindTable(connection, settings, deadline));
  LEAF_ASSIGN_OR_RETURN(facts.info, ProbePostgresServer(connection, deadline));
  if (!found) {
    return Bad("the table " + QuotedTable(settings) + " does not exist in database '" +
               settings.database + "' (or the user '" + settings.user +
               "' may not use its schema); create it: " + LeafTableDdl(settings));
  }
  const Table& table = *found;
  facts.fingerprint = table.fingerprint;
  facts.direct = table.backend == std::to_string(connection.backend_pid());
  LEAF_RETURN_IF_ERROR(CheckKind(table, settings.user));
  LEAF_ASSIGN_OR_RETURN(const auto columns, ReadColumns(connection, table, deadline));
  LEAF_RETURN_IF_ERROR(CheckColumns(settings, table, columns));
  LEAF_RETURN_IF_ERROR(CheckKey(connection, table, deadline));
  facts.table = table.name;
  facts.still = "SELECT " + FingerprintOf("pg_relation_filenode(" + table.oid + "::oid::regclass)");
  const auto updated = columns.find("update_time");
  facts.has_update_time =
      updated != columns.end() && In(updated->second.type, {"timestamp", "timestamptz"});
  LEAF_RETURN_IF_ERROR(CheckWaits(connection, settings, deadline));
  if (!columns.at("max_id").not_null)
    facts.info.warnings.push_back("the column max_id may be NULL; such a tag is refused: " +
                                  Alter(table.name, "ALTER COLUMN max_id SET NOT NULL"));
  return facts;
}

}  // namespace leaf
