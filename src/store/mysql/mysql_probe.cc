#include "store/mysql/mysql_probe.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "store/mysql/mysql_errors.h"
#include "store/mysql/mysql_server_probe.h"

namespace leaf {
namespace {

using Cells = MysqlConnection::Cells;

constexpr std::size_t kMaxColumns = 1100;  // InnoDB: 1017 columns, 65 indexes of up to 16 columns

Error Bad(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

/// Where the table stands in information_schema, whose names follow lower_case_table_names.
struct Place {
  std::string schema, table;

  std::string Condition() const {
    return "TABLE_SCHEMA = '" + schema + "' AND TABLE_NAME = '" + table + "'";
  }
};

struct Column {
  std::string data_type, column_type, collation;
  bool nullable = false;
};

std::string Alter(const MysqlSettings& settings, const std::string& change) {
  return "ALTER TABLE " + QuotedTable(settings) + " " + change + ";";
}

// information_schema shows nothing of a table without privileges; a SELECT tells why.
Error WhyUnseen(MysqlConnection& connection, const MysqlSettings& settings, Instant deadline) {
  const auto tried =
      connection.Select("SELECT 1 FROM " + QuotedTable(settings) + " LIMIT 1", 1, deadline);
  if (tried.ok())
    return Bad("the table " + QuotedTable(settings) + " cannot be examined in information_schema");
  if (IsMissingTable(connection.failure().number)) {
    return Bad("the table " + QuotedTable(settings) +
               " does not exist; create it: " + LeafTableDdl(settings));
  }
  if (IsDenied(connection.failure().number)) {
    return Bad("the user '" + settings.user + "' has no privilege on " + QuotedTable(settings) +
               ": " +
               GrantStatement(connection, "SELECT, UPDATE", QuotedTable(settings), deadline) +
               " (if the table is missing: " + LeafTableDdl(settings) + ")");
  }
  return tried.error();
}

Result<void> CheckEngine(MysqlConnection& connection, const MysqlSettings& settings,
                         const Place& place, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      connection.Select(
          "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE " + place.Condition(), 1,
          deadline));
  if (rows.empty()) return WhyUnseen(connection, settings, deadline);
  const std::string type = rows[0][0].value_or("");
  const std::string engine = rows[0][1].value_or("none");
  if (type != "BASE TABLE")
    return Bad(QuotedTable(settings) + " is a " + type + "; leafd needs the table itself");
  if (Lower(engine) == "innodb") return {};
  return Bad("the table " + QuotedTable(settings) + " has the engine " + engine +
             ", which does not keep what it acknowledged: " + Alter(settings, "ENGINE=InnoDB"));
}

Result<std::map<std::string, Column>> ReadColumns(MysqlConnection& connection, const Place& place,
                                                  Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      connection.Select(
          "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLLATION_NAME FROM "
          "information_schema.COLUMNS WHERE " +
              place.Condition(),
          kMaxColumns, deadline));
  std::map<std::string, Column> columns;
  for (const Cells& row : rows) {
    columns[Lower(row[0].value_or(""))] =
        Column{Lower(row[1].value_or("")), Lower(row[2].value_or("")), row[4].value_or(""),
               Lower(row[3].value_or("")) == "yes"};
  }
  return columns;
}

bool In(const std::string& type, std::initializer_list<const char*> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

Result<void> CheckColumns(const MysqlSettings& settings,
                          const std::map<std::string, Column>& columns) {
  for (const char* name : {"biz_tag", "max_id", "step"}) {
    if (columns.find(name) == columns.end()) {
      return Bad("the table " + QuotedTable(settings) + " has no column " + name +
                 " (or the user '" + settings.user +
                 "' may not see it); Leaf's table is: " + LeafTableDdl(settings));
    }
  }
  const Column& tag = columns.at("biz_tag");
  const Column& max_id = columns.at("max_id");
  const Column& step = columns.at("step");
  if (!In(tag.data_type, {"varchar", "char", "varbinary"})) {
    return Bad("the column biz_tag is " + tag.column_type +
               "; it must be char, varchar or varbinary: " +
               Alter(settings, "MODIFY `biz_tag` varchar(128) NOT NULL DEFAULT ''"));
  }
  if (max_id.data_type != "bigint" || max_id.column_type.find("unsigned") != std::string::npos) {
    return Bad("the column max_id is " + max_id.column_type + "; ids need a signed bigint: " +
               Alter(settings, "MODIFY `max_id` bigint NOT NULL DEFAULT '1'"));
  }
  if (!In(step.data_type, {"int", "bigint", "mediumint", "smallint", "tinyint"})) {
    return Bad("the column step is " + step.column_type +
               "; it must be an integer: " + Alter(settings, "MODIFY `step` int NOT NULL"));
  }
  return {};
}

// An index of biz_tag alone, unique, over its whole length: else two rows could have one name.
Result<void> CheckKey(MysqlConnection& connection, const MysqlSettings& settings,
                      const Place& place, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      connection.Select(
          "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE "
          "NON_UNIQUE = 0 AND " +
              place.Condition(),
          kMaxColumns, deadline));
  std::map<std::string, int> parts;
  for (const Cells& row : rows) ++parts[row[0].value_or("")];
  for (const Cells& row : rows) {
    if (parts[row[0].value_or("")] == 1 && Lower(row[1].value_or("")) == "biz_tag" && !row[2])
      return {};
  }
  return Bad("the table " + QuotedTable(settings) +
             " has no unique key on biz_tag alone, so one name could have several rows: " +
             Alter(settings, "ADD PRIMARY KEY (`biz_tag`)"));
}

void Warn(const MysqlSettings& settings, const std::map<std::string, Column>& columns,
          std::vector<std::string>& warnings) {
  const Column& tag = columns.at("biz_tag");
  if (tag.collation.ends_with("_ci")) {
    warnings.push_back("biz_tag compares by " + tag.collation +
                       ": names that differ only in case (or accents, or trailing spaces) cannot "
                       "both be in the table; leafd itself compares byte by byte. To tell them "
                       "apart: " +
                       Alter(settings, "MODIFY `biz_tag` " + tag.column_type +
                                           " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL "
                                           "DEFAULT ''"));
  }
  if (columns.at("max_id").nullable)
    warnings.push_back("the column max_id may be NULL; such a tag is refused: " +
                       Alter(settings, "MODIFY `max_id` bigint NOT NULL DEFAULT '1'"));
}

// A replica that runs our statements has other settings, and would find no row. With MIXED, what
// looks at a setting is logged by its rows.
Result<bool> LogsStatements(MysqlConnection& connection, const MysqlVariables& variables,
                            Instant deadline) {
  if (!variables.on("log_bin")) return false;
  LEAF_ASSIGN_OR_RETURN(
      const std::vector<Cells> rows,
      connection.Select("SHOW SESSION VARIABLES LIKE 'binlog_format'", 1, deadline));
  return rows.size() == 1 && rows[0].size() == 2 && Lower(rows[0][1].value_or("")) == "statement";
}

// Of all that was examined, what a hand changes at run time, in one row.
std::string FingerprintQuery(const Place& place, const MysqlVariables& variables, bool mariadb) {
  std::string query = "SELECT (SELECT ENGINE FROM information_schema.TABLES WHERE " +
                      place.Condition() +
                      "), (SELECT GROUP_CONCAT(COLUMN_TYPE ORDER BY COLUMN_NAME) FROM "
                      "information_schema.COLUMNS WHERE " +
                      place.Condition() + " AND COLUMN_NAME IN ('biz_tag', 'max_id', 'step')), " +
                      MysqlSettingsText(variables);
  if (IsGalera(variables)) {
    // Whether a node is left that remembers, not how many: one that comes or goes is no change.
    query += std::string(", (SELECT VARIABLE_VALUE + 0 >= 2 FROM ") +
             (mariadb ? "information_schema.GLOBAL_STATUS" : "performance_schema.global_status") +
             " WHERE VARIABLE_NAME = 'wsrep_cluster_size')";
  }
  return query;
}

}  // namespace

Result<void> SetUpMysqlSession(MysqlConnection& connection, Duration limit, Instant deadline) {
  const auto micros = std::max<std::int64_t>(
      1000, std::chrono::duration_cast<std::chrono::microseconds>(limit).count());
  const std::string seconds = std::to_string(std::max<std::int64_t>(1, micros / 1'000'000));
  std::string sql =
      "SET NAMES utf8mb4, autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', "
      "sql_select_limit = 18446744073709551615, innodb_lock_wait_timeout = " +
      seconds + ", lock_wait_timeout = " + seconds;
  if (connection.is_mariadb()) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%lld.%06lld",
                  static_cast<long long>(micros / 1'000'000),
                  static_cast<long long>(micros % 1'000'000));
    sql += std::string(", max_statement_time = ") + text.data();
  } else {
    sql += ", max_execution_time = " + std::to_string(micros / 1000);
  }
  return connection.Run(sql, deadline);
}

std::string GrantStatement(MysqlConnection& connection, const std::string& privileges,
                           const std::string& table, Instant deadline) {
  const auto rows = connection.Select(
      "SELECT CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', "
      "QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))",
      1, deadline);
  // A server that does not say leaves it to the reader, who knows the account.
  const bool said = rows.ok() && rows->size() == 1 && rows->front()[0];
  return "GRANT " + privileges + " ON " + table + " TO " +
         (said ? *rows->front()[0] : std::string("CURRENT_USER")) + ";";
}

Result<MysqlFacts> ProbeMysql(MysqlConnection& connection, const MysqlSettings& settings,
                              Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const MysqlVariables known, MysqlVariables::Read(connection, deadline));
  const bool lower = known.number("lower_case_table_names") != 0;
  const Place place{lower ? Lower(settings.schema) : settings.schema,
                    lower ? Lower(settings.table) : settings.table};

  MysqlFacts facts;
  facts.settings_query = "SELECT " + MysqlSettingsText(known);
  LEAF_ASSIGN_OR_RETURN(std::vector<Cells> found,
                        connection.Select(facts.settings_query, 1, deadline));
  if (found.size() != 1 || !found[0][0]) return Bad("the server does not tell its settings");
  facts.settings = std::move(found[0]);
  facts.fingerprint_query = FingerprintQuery(place, known, connection.is_mariadb());
  LEAF_ASSIGN_OR_RETURN(std::vector<Cells> print,
                        connection.Select(facts.fingerprint_query, 1, deadline));
  if (print.size() == 1) facts.fingerprint = std::move(print[0]);
  // What is judged is read after that by which a change shows.
  LEAF_ASSIGN_OR_RETURN(const MysqlVariables variables, MysqlVariables::Read(connection, deadline));
  LEAF_RETURN_IF_ERROR(CheckWritable(variables));
  LEAF_RETURN_IF_ERROR(CheckEngine(connection, settings, place, deadline));
  LEAF_ASSIGN_OR_RETURN(const auto columns, ReadColumns(connection, place, deadline));
  LEAF_RETURN_IF_ERROR(CheckColumns(settings, columns));
  LEAF_RETURN_IF_ERROR(CheckKey(connection, settings, place, deadline));

  facts.has_update_time = columns.find("update_time") != columns.end();
  if (connection.is_mariadb()) {
    facts.engine_guard = " AND (SELECT COUNT(*) FROM information_schema.TABLES WHERE " +
                         place.Condition() + " AND ENGINE = 'InnoDB') = 1";
  }
  LEAF_ASSIGN_OR_RETURN(const bool statements, LogsStatements(connection, variables, deadline));
  if (!statements)
    facts.settings_guard = " AND " + MysqlSettingsText(known) + " = '" + *facts.settings[0] + "'";
  facts.info.durability = MysqlDurability(variables, facts.info.warnings);
  facts.waits_for_replica =
      facts.info.durability == Durability::kReplicated && !IsGalera(variables);
  facts.info.identity = MysqlIdentity(variables);
  Warn(settings, columns, facts.info.warnings);
  return facts;
}

}  // namespace leaf
