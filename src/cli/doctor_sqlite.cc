// A SQLite file belongs to one process: it is judged by reading alone, beside a leafd that uses it.

#include <string>
#include <utility>

#include "cli/doctor_checks.h"
#include "registry/row_registry.h"
#include "store/sqlite/inspect.h"

namespace leaf::doctor {
namespace {

void JudgeWorkers(Context& context, const sqlite::Inspection& seen) {
  const std::string& cluster = context.config.snowflake.registry.cluster;
  int count = 0;
  for (const sqlite::WorkerCells& cells : seen.workers) {
    if (cells.cluster != cluster) continue;
    ++count;
    WorkerRow row;
    const Result<void> read =
        ReadRow(cells.cells, "table leafd_worker, cluster '" + cluster + "'", row);
    if (!read.ok())
      context.report.Say(Severity::kError, "workers", "leafd_worker", read.error().message);
  }
  context.report.Ok("workers", "leafd_worker",
                    std::to_string(count) + " workers of cluster '" + cluster + "'");
}

}  // namespace

void CheckSqliteFile(Context& context) {
  const StoreOptions& options = context.config.store;
  Report& report = context.report;
  Result<sqlite::Inspection> seen = sqlite::Inspect(options.path, options.table);
  if (!seen.ok())
    return report.Say(Severity::kError, "store", options.path, seen.error().message,
                      "move the file away, or name another in store.url");
  if (!seen->used_by.empty())
    report.Ok("store", options.path,
              "it is in use by " + seen->used_by +
                  ": leafd may be running; it is only read, and another leafd would be refused");
  if (!seen->exists) {
    report.Ok("store", options.path, "it is not there yet; leafd makes it");
  } else {
    report.Ok("store", options.path,
              std::string("it can be used") +
                  (seen->has_table ? ", with table " + options.table
                                   : "; leafd makes its table " + options.table) +
                  (seen->is_wal ? "; it has a write-ahead log"
                                : "; leafd changes its journal mode to wal"));
  }
  report.durability = DurabilityName(seen->info.durability);
  report.identity = seen->info.identity;
  context.store = seen->info;
  if (context.config.segment.enabled) {
    for (const UnreadableRow& row : seen->unreadable) SayUnreadable(context, row);
    for (const Row& row : seen->rows) JudgeRow(context, row);
    report.Ok("rows", options.table,
              "it was read to its end: " +
                  std::to_string(seen->rows.size() + seen->unreadable.size()) + " tags");
  }
  const Config::Snowflake& snowflake = context.config.snowflake;
  if (snowflake.enabled && snowflake.registry.kind == "store") JudgeWorkers(context, *seen);
}

}  // namespace leaf::doctor
