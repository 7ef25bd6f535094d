// Names are compared by the column's collation, which the index can find, and by their bytes.

#include "registry/postgres/postgres_registry.h"

#include <algorithm>
#include <map>
#include <utility>

#include "registry/row_registry.h"
#include "store/postgres/postgres_connection.h"
#include "store/postgres/postgres_errors.h"
#include "store/postgres/postgres_probe.h"
#include "store/refusals.h"

namespace leaf {
namespace {

using Kind = PostgresOutcome::Kind;

constexpr const char* kTable = "leafd_worker";
constexpr Duration kIdle = std::chrono::seconds(5);  // then a sign of life is asked for
constexpr const char* kByName =
    "w.cluster = $1::text AND w.cluster::text COLLATE \"C\" = $1::text COLLATE \"C\"";

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

class PostgresRegistry final : public RowRegistry {
 public:
  PostgresRegistry(PostgresSettings settings, std::string cluster, Durability demanded)
      : settings_(std::move(settings)),
        table_(QuotedTable(settings_)),
        cluster_(std::move(cluster)),
        demanded_(demanded),
        connection_(SystemClock()) {}

  Result<void> Open(Instant deadline, std::vector<std::string>& warnings) override;
  bool connected() const noexcept override { return open_ && connection_.connected(); }
  void Close() noexcept override {
    open_ = false;
    connection_.Close();
  }
  void Interrupt() noexcept override { connection_.Interrupt(); }

 protected:
  Result<Snapshot> Read(std::optional<std::int64_t> worker, Instant deadline) override;
  Result<bool> Insert(const WorkerRow& row, Instant deadline) override;
  Result<bool> Replace(const WorkerRecord& from, const WorkerRow& to, Instant deadline) override;
  std::string Where() const override {
    return "postgres: " + table_ + ", cluster '" + cluster_ + "'";
  }

 private:
  Result<void> Examine(Instant deadline, std::vector<std::string>& warnings);
  Result<void> CheckTable(Instant deadline);
  Result<void> Ready(Instant deadline);
  Result<bool> Change(PostgresStatement statement, Instant deadline);
  Error Refused(const PostgresOutcome& outcome);
  /// The fingerprint.
  PostgresStatement State() const {
    return {"SELECT " + FingerprintOf("pg_relation_filenode(to_regclass($1::text))"), {table_}};
  }

  const PostgresSettings settings_;
  const std::string table_, cluster_;
  const Durability demanded_;
  PostgresConnection connection_;
  bool open_ = false;
  std::vector<PostgresOutcome::Cells> state_;  ///< as it was judged
  Instant last_use_{};
};

// --- The session.

Result<void> PostgresRegistry::Open(Instant deadline, std::vector<std::string>& warnings) {
  Close();
  LEAF_RETURN_IF_ERROR(OpenPostgres(connection_, settings_, SystemClock(), deadline,
                                    [&](Instant until) { return Examine(until, warnings); }));
  open_ = true;
  last_use_ = SystemClock().Now();
  return {};
}

Result<void> PostgresRegistry::Examine(Instant deadline, std::vector<std::string>& warnings) {
  // What changes while the rest is judged differs from it later.
  const PostgresOutcome state = connection_.Run(State(), deadline);
  if (!state.done()) return state.error;
  state_ = state.rows;
  LEAF_ASSIGN_OR_RETURN(const StoreInfo server, ProbePostgresServer(connection_, deadline));
  LEAF_RETURN_IF_ERROR(CheckTable(deadline));
  warnings.insert(warnings.end(), server.warnings.begin(), server.warnings.end());
  if (server.durability >= demanded_) return {};
  return refusal::TooWeak("the server", server.durability, demanded_);
}

Result<void> PostgresRegistry::CheckTable(Instant deadline) {
  const PostgresOutcome found = connection_.Run(
      PostgresStatement{
          "SELECT a.attname, t.typname, c.relpersistence, has_table_privilege(c.oid, 'SELECT') AND "
          "has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE'), EXISTS "
          "(SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid "
          "AND (SELECT array_agg(k.attname::text ORDER BY k.attname) FROM pg_attribute k WHERE "
          "k.attrelid = c.oid AND k.attnum = ANY(i.indkey)) = '{cluster,worker}') FROM pg_class c "
          "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN "
          "pg_type t ON t.oid = a.atttypid WHERE c.oid = to_regclass($1::text)",
          {table_}},
      deadline);
  if (!found.done()) return found.error;
  const std::string wanted = "; it has to be as by: " + PostgresWorkerTableDdl(table_);
  if (found.rows.empty()) {
    return Unavailable("the table " + table_ +
                       " does not exist; run `leafctl store init`, or create it: " +
                       PostgresWorkerTableDdl(table_));
  }
  const auto& first = found.rows.front();
  if (first[2] != "p") {
    return Unavailable("the table " + table_ +
                       " is not logged, so it forgets workers: ALTER TABLE " + table_ +
                       " SET LOGGED;");
  }
  if (first[3] != "t") {
    return Unavailable("the user '" + settings_.user + "' lacks privileges on " + table_ +
                       ": GRANT SELECT, INSERT, UPDATE ON " + table_ + " TO " +
                       QuotedName(settings_.user) + ";");
  }
  if (first[4] != "t") {
    return Unavailable("the table " + table_ +
                       " has no primary key (cluster, worker): ALTER TABLE " + table_ +
                       " ADD PRIMARY KEY (cluster, worker);");
  }
  std::map<std::string, std::string> types;
  for (const auto& row : found.rows) types[row[0].value_or("")] = row[1].value_or("");
  struct Column {
    const char *name, *right, *type;
  };
  constexpr Column kColumns[] = {{"cluster", "varchar text", "varchar(128)"},
                                 {"worker", "int4 int8", "int"},
                                 {"generation", "int8", "bigint"},
                                 {"owner", "bpchar varchar text", "char(32)"},
                                 {"identity", "varchar text", "varchar(255)"},
                                 {"limit_ms", "int8", "bigint"}};
  for (const auto& [name, right, type] : kColumns) {
    const std::string& is = types[name];
    if (!is.empty() && std::string_view(right).find(is) != std::string_view::npos) continue;
    const std::string column = "the column " + std::string(name) + " of " + table_;
    if (is.empty()) return Unavailable(column + " is missing" + wanted);
    return Unavailable(column + " is " + is + ": ALTER TABLE " + table_ + " ALTER COLUMN " + name +
                       " TYPE " + type + " USING " + name + "::" + type + ";");
  }
  return {};
}

Error PostgresRegistry::Refused(const PostgresOutcome& outcome) {
  if (ConcernsStore(outcome.sqlstate)) open_ = false;
  return outcome.error;
}

// What fails here was not sent; a connection that the server closed meanwhile is opened again.
Result<void> PostgresRegistry::Ready(Instant deadline) {
  const Instant now = SystemClock().Now();
  if (now >= deadline) return Unavailable(Where() + ": the deadline passed before the call began");
  bool alive = connected() && !connection_.Stale();
  if (alive && now - last_use_ >= kIdle) {
    alive = connection_
                .Run(PostgresStatement{"SELECT 1", {}},
                     now + std::min(settings_.timeout, deadline - now) / 3)
                .done();
  }
  if (!alive) {
    std::vector<std::string> known;
    return Open(deadline, known);
  }
  last_use_ = now;
  return {};
}

// --- Rows.

Result<RowRegistry::Snapshot> PostgresRegistry::Read(std::optional<std::int64_t> worker,
                                                     Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  PostgresStatement statement;
  statement.sql =
      "SELECT c.ms, w.worker, w.generation, rtrim(w.owner), w.identity, w.limit_ms FROM (SELECT "
      "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) c LEFT JOIN " +
      table_ + " w ON " + kByName;
  statement.params = {cluster_};
  if (worker) {
    statement.sql += " AND w.worker = $2::bigint";
    statement.params.emplace_back(std::to_string(*worker));
  }
  statement.sql += " ORDER BY w.worker";
  const PostgresOutcome found = connection_.Run(std::move(statement), deadline);
  if (!found.done()) return Refused(found);
  Snapshot seen;
  for (const PostgresOutcome::Cells& cells : found.rows) {
    std::int64_t ms = 0;
    if (cells.size() != 6 || !ReadInteger(cells[0], ms))
      return Unavailable(Where() + ": the server does not tell its time");
    seen.registry_ms = ms;
    if (!cells[1]) continue;  // there is no row
    LEAF_RETURN_IF_ERROR(ReadRow(std::span(cells).subspan(1), Where(), seen.rows.emplace_back()));
  }
  if (!seen.registry_ms) return Unavailable(Where() + ": the server does not tell its time");
  return seen;
}

Result<bool> PostgresRegistry::Change(PostgresStatement statement, Instant deadline) {
  const Duration left = deadline - SystemClock().Now();
  if (left <= Duration::zero())
    return Unavailable(Where() + ": the deadline passed before the change was sent");
  const PostgresStatement statements[] = {
      Preamble(std::min(settings_.timeout / 10 * 9, left / 20 * 19)), std::move(statement)};
  const PostgresOutcome changed = connection_.Run(statements, deadline);
  if (changed.done()) {
    // Also of a commit that waited for a standby in vain: see PostgresFacts::still.
    const PostgresOutcome state = connection_.Run(State(), deadline);
    if (state.done() && state.rows == state_) return changed.affected == 1;
    open_ = false;
    return state.done() ? refusal::Changed() : Refused(state);
  }
  const bool raced = IsDuplicateKey(changed.sqlstate) || changed.sqlstate == "40001" ||
                     changed.sqlstate == "40P01";
  if (changed.kind == Kind::kRefused && raced) return false;
  return Refused(changed);
}

Result<bool> PostgresRegistry::Insert(const WorkerRow& row, Instant deadline) {
  const WorkerRecord& record = row.record;
  return Change(
      {"INSERT INTO " + table_ +
           " (cluster, worker, generation, owner, identity, limit_ms) VALUES ($1::text, "
           "$2::bigint, $3::bigint, $4::text, $5::text, $6::bigint)",
       {cluster_, std::to_string(record.worker), std::to_string(record.generation), record.owner,
        IdentityText(record.identity, row.layout), std::to_string(record.limit_ms)}},
      deadline);
}

Result<bool> PostgresRegistry::Replace(const WorkerRecord& from, const WorkerRow& to,
                                       Instant deadline) {
  return Change(
      {"UPDATE " + table_ +
           " w SET generation = $2::bigint, owner = $3::text, identity = $4::text, limit_ms = "
           "$5::bigint WHERE " +
           kByName +
           " AND w.worker = $6::bigint AND w.generation = $7::bigint AND rtrim(w.owner) = $8::text "
           "AND w.limit_ms = $9::bigint",
       {cluster_, std::to_string(to.record.generation), to.record.owner,
        IdentityText(to.record.identity, to.layout), std::to_string(to.record.limit_ms),
        std::to_string(from.worker), std::to_string(from.generation), from.owner,
        std::to_string(from.limit_ms)}},
      deadline);
}

}  // namespace

Result<RegistryFactory> MakePostgresRegistry(const StoreOptions& store,
                                             const RegistryOptions& options) {
  LEAF_ASSIGN_OR_RETURN(PostgresSettings settings, ParsePostgresSettings(store));
  settings.table = kTable;
  settings.timeout = options.timeout;
  return RegistryFactory([settings = std::move(settings), cluster = options.cluster,
                          demanded = store.min_durability]() -> std::unique_ptr<RegistryDriver> {
    return std::make_unique<PostgresRegistry>(settings, cluster, demanded);
  });
}

std::string PostgresWorkerTableDdl(const std::string& quoted_table) {
  return "CREATE TABLE IF NOT EXISTS " + quoted_table +
         " (cluster varchar(128) NOT NULL, worker int NOT NULL, generation bigint NOT NULL, owner "
         "char(32) NOT NULL, identity varchar(255) NOT NULL, limit_ms bigint NOT NULL, PRIMARY KEY "
         "(cluster, worker));";
}

}  // namespace leaf
