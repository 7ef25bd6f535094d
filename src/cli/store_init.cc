#include "cli/store_init.h"

#include <utility>
#include <vector>

#include "registry/mysql/mysql_registry.h"
#include "registry/postgres/postgres_registry.h"
#include "registry/sqlite/sqlite_registry.h"
#include "store/mysql/mysql_connection.h"
#include "store/mysql/mysql_settings.h"
#include "store/postgres/postgres_connection.h"
#include "store/postgres/postgres_probe.h"
#include "store/postgres/postgres_settings.h"
#include "store/sqlite/sqlite_driver.h"

namespace leaf {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

struct Table {
  std::string name, ddl;  // the name quoted
};

std::vector<Table> Tables(const MysqlSettings& settings) {
  MysqlSettings workers = settings;
  workers.table = "leafd_worker";
  constexpr std::string_view kCreate = "CREATE TABLE ";
  const std::string leaf_ddl =
      "CREATE TABLE IF NOT EXISTS " + LeafTableDdl(settings).substr(kCreate.size());
  return {{QuotedTable(settings), leaf_ddl},
          {QuotedTable(workers), WorkerTableDdl(QuotedTable(workers))}};
}

Result<std::string> InitMysql(const Config& config) {
  LEAF_ASSIGN_OR_RETURN(const MysqlSettings settings, ParseMysqlSettings(config.store));
  const Instant deadline = SystemClock().Now() + kPatience;
  MysqlConnection connection(SystemClock());
  LEAF_RETURN_IF_ERROR(connection.Connect(settings, deadline));
  std::string said;
  for (const Table& table : Tables(settings)) {
    // A SELECT needs fewer privileges than making a table: what is there needs no more.
    const auto seen = connection.Select("SELECT 1 FROM " + table.name + " LIMIT 1", 1, deadline);
    const bool there = seen.ok();
    if (!there && !connection.connected()) return seen.error();
    if (!there) {
      Result<void> made = connection.Run(table.ddl, deadline);
      if (!made.ok())
        return Error{made.error().code, said + "cannot make " + table.name + ": " +
                                            made.error().message +
                                            "; as a user who may: " + table.ddl};
    }
    said += (there ? "there already: " : "made: ") + table.name + "\n";
  }
  return said;
}

std::vector<Table> Tables(const PostgresSettings& settings) {
  PostgresSettings workers = settings;
  workers.table = "leafd_worker";
  constexpr std::string_view kCreate = "CREATE TABLE ";
  const std::string leaf_ddl =
      "CREATE TABLE IF NOT EXISTS " + LeafTableDdl(settings).substr(kCreate.size());
  return {{QuotedTable(settings), leaf_ddl},
          {QuotedTable(workers), PostgresWorkerTableDdl(QuotedTable(workers))}};
}

Result<std::string> InitPostgres(const Config& config) {
  LEAF_ASSIGN_OR_RETURN(const PostgresSettings settings, ParsePostgresSettings(config.store));
  const Instant deadline = SystemClock().Now() + kPatience;
  PostgresConnection connection(SystemClock());
  // A standby says so, and the next of the servers is asked.
  LEAF_RETURN_IF_ERROR(
      OpenPostgres(connection, settings, SystemClock(), deadline, [&](Instant until) {
        const auto server = ProbePostgresServer(connection, until);
        return server.ok() ? Result<void>() : Result<void>(server.error());
      }));
  std::string said;
  for (const Table& table : Tables(settings)) {
    const PostgresOutcome seen = connection.Run(
        PostgresStatement{"SELECT 1 WHERE to_regclass($1::text) IS NOT NULL", {table.name}},
        deadline);
    if (!seen.done()) return seen.error;
    const bool there = !seen.rows.empty();
    if (!there) {
      const PostgresOutcome made = connection.Run(PostgresStatement{table.ddl, {}}, deadline);
      // The notice that it is there already, because another was quicker, is no warning.
      if (!made.done())
        return Error{made.error.code, said + "cannot make " + table.name + ": " +
                                          made.error.message + "; as a user who may: " + table.ddl};
    }
    said += (there ? "there already: " : "made: ") + table.name + "\n";
  }
  return said;
}

Result<std::string> InitSqlite(const Config& config) {
  LEAF_ASSIGN_OR_RETURN(const DriverFactory tags, MakeSqliteFactory(config.store));
  LEAF_ASSIGN_OR_RETURN(const RegistryFactory workers,
                        MakeSqliteRegistry(config.store, config.snowflake.registry));
  const Instant deadline = SystemClock().Now() + kPatience;
  const auto driver = tags();
  const Result<StoreInfo> opened = driver->Open(deadline);
  if (!opened.ok()) return opened.error();
  std::vector<std::string> warnings;
  LEAF_RETURN_IF_ERROR(workers()->Open(deadline, warnings));
  std::string said = "tables " + config.store.table + " and leafd_worker are in " +
                     config.store.path + " (leafd makes them itself)\n";
  for (const std::string& warning : warnings) said += "warning: " + warning + "\n";
  return said;
}

}  // namespace

Result<std::string> StoreDdl(const Config& config) {
  std::vector<Table> tables;
  if (config.store.kind == "mysql") {
    LEAF_ASSIGN_OR_RETURN(const MysqlSettings settings, ParseMysqlSettings(config.store));
    tables = Tables(settings);
  } else if (config.store.kind == "postgres") {
    LEAF_ASSIGN_OR_RETURN(const PostgresSettings settings, ParsePostgresSettings(config.store));
    tables = Tables(settings);
  } else {
    return "-- a store of kind " + config.store.kind + ": leafd makes what it needs itself\n";
  }
  std::string text;
  for (const Table& table : tables) text += table.ddl + "\n";
  return text;
}

Result<std::string> InitStore(const Config& config) {
  if (config.store.kind == "mysql") return InitMysql(config);
  if (config.store.kind == "postgres") return InitPostgres(config);
  if (config.store.kind == "sqlite") return InitSqlite(config);
  return "a store of kind " + config.store.kind + " has no tables to make\n";
}

}  // namespace leaf
