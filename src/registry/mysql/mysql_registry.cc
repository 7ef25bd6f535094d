// Names are compared as bytes whatever the column's collation: the index finds the row by its
// collation, CAST .. AS BINARY decides. Texts travel as hexadecimal literals, so nothing in them
// can be taken for SQL.
#include "registry/mysql/mysql_registry.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "registry/row_registry.h"
#include "store/mysql/mysql_connection.h"
#include "store/mysql/mysql_errors.h"
#include "store/mysql/mysql_probe.h"
#include "store/mysql/mysql_server_probe.h"
#include "store/mysql/mysql_settings.h"
#include "store/refusals.h"

namespace leaf {
namespace {

constexpr const char* kTable = "leafd_worker";
constexpr std::size_t kMaxRows = (std::size_t{1} << 20) + 1;  // workers of the widest layout
constexpr unsigned kDeadlock = 1213;
constexpr Duration kIdle = std::chrono::seconds(5);  // then a sign of life is asked for

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

std::string Hex(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex = "X'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex + "'";
}

std::string Text(std::string_view text) { return "_utf8mb4 " + Hex(text); }

class MysqlRegistry final : public RowRegistry {
 public:
  MysqlRegistry(MysqlSettings settings, std::string cluster, Durability demanded)
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
  std::string Where() const override { return "mysql: " + table_ + ", cluster '" + cluster_ + "'"; }

 private:
  Result<void> Examine(Instant deadline, std::vector<std::string>& warnings);
  Result<void> CheckTable(Instant deadline, std::vector<std::string>& warnings);
  Result<void> CheckMay(Instant deadline);
  Result<void> Ready(Instant deadline);
  using State = std::vector<MysqlConnection::Cells>;
  Result<State> Look(Instant deadline);
  Result<bool> Change(const std::string& sql, Instant deadline);
  Error Refused(const Error& error, Instant deadline);
  Error Denied(const Error& error, Instant deadline);
  std::string Name() const {
    return "cluster = " + Text(cluster_) + " AND CAST(cluster AS BINARY) = " + Hex(cluster_);
  }

  const MysqlSettings settings_;
  const std::string table_, cluster_;
  const Durability demanded_;
  MysqlConnection connection_;
  bool open_ = false;
  std::string settings_query_;
  State state_;  ///< as it was judged
  Instant last_use_{};
};

// --- The session.

Result<void> MysqlRegistry::Open(Instant deadline, std::vector<std::string>& warnings) {
  Close();
  LEAF_RETURN_IF_ERROR(connection_.Connect(settings_, deadline));
  Result<void> examined = Examine(deadline, warnings);
  if (!examined.ok()) {
    Close();
    return examined;
  }
  open_ = true;
  last_use_ = SystemClock().Now();
  return {};
}

Result<void> MysqlRegistry::Examine(Instant deadline, std::vector<std::string>& warnings) {
  LEAF_RETURN_IF_ERROR(SetUpMysqlSession(connection_, settings_.timeout / 10 * 9, deadline));
  // What changes while the rest is judged differs from it later.
  LEAF_ASSIGN_OR_RETURN(const MysqlVariables known, MysqlVariables::Read(connection_, deadline));
  settings_query_ = "SELECT " + MysqlSettingsText(known);
  LEAF_ASSIGN_OR_RETURN(state_, Look(deadline));
  LEAF_ASSIGN_OR_RETURN(const MysqlVariables variables,
                        MysqlVariables::Read(connection_, deadline));
  LEAF_RETURN_IF_ERROR(CheckWritable(variables));
  LEAF_RETURN_IF_ERROR(CheckTable(deadline, warnings));
  LEAF_RETURN_IF_ERROR(CheckMay(deadline));
  const Durability level = MysqlDurability(variables, warnings);
  if (level >= demanded_) return {};
  return refusal::TooWeak("the server", level, demanded_);
}

// The server's settings and the table.
Result<MysqlRegistry::State> MysqlRegistry::Look(Instant deadline) {
  State state;
  for (const std::string& sql : {settings_query_, "SHOW CREATE TABLE " + table_}) {
    const auto seen = connection_.Select(sql, 1, deadline);
    if (!seen.ok()) return Refused(seen.error(), deadline);
    state.insert(state.end(), seen->begin(), seen->end());
  }
  return state;
}

Result<void> MysqlRegistry::CheckTable(Instant deadline, std::vector<std::string>& warnings) {
  const auto seen = connection_.Select("SHOW CREATE TABLE " + table_, 1, deadline);
  if (!seen.ok()) return Refused(seen.error(), deadline);
  const std::string shape =
      seen->empty() || seen->front().size() < 2 ? std::string() : seen->front()[1].value_or("");
  const std::string wanted = "; it has to be as by: " + WorkerTableDdl(table_);
  if (shape.find("ENGINE=InnoDB") == std::string::npos) {
    return Unavailable("the table " + table_ + " is not of the engine InnoDB: ALTER TABLE " +
                       table_ + " ENGINE=InnoDB;");
  }
  if (shape.find("PRIMARY KEY (`cluster`,`worker`)") == std::string::npos)
    return Unavailable("the table " + table_ + " has no primary key (cluster, worker)" + wanted);
  const auto columns = connection_.Select("SHOW FULL COLUMNS FROM " + table_, 100, deadline);
  if (!columns.ok()) return Refused(columns.error(), deadline);
  std::map<std::string, std::string> types;
  for (const auto& row : *columns) {
    const std::string name = row[0].value_or(""), collation = row[2].value_or("");
    types[name] = row[1].value_or("");
    if (name == "cluster" && !collation.empty() && !collation.ends_with("bin")) {
      warnings.push_back("the column cluster of " + table_ + " compares by " + collation +
                         ": clusters whose names differ only in case, accents or trailing blanks "
                         "cannot both be in the table");
    }
  }
  const std::pair<const char*, const char*> all[] = {
      {"cluster", "varchar"}, {"worker", "int"},       {"generation", "bigint"},
      {"owner", "char(32)"},  {"identity", "varchar"}, {"limit_ms", "bigint"}};
  for (const auto& [name, type] : all) {
    const std::string& is = types[name];
    const bool is_signed = is.find("unsigned") == std::string::npos;
    if (is.starts_with(type) && is_signed) continue;
    return Unavailable("the column " + std::string(name) + " of " + table_ +
                       (is.empty() ? " is missing" : " is " + is + " and not " + type) + wanted);
  }
  return {};
}

// Statements that change no row: the server refuses them where a privilege is missing.
Result<void> MysqlRegistry::CheckMay(Instant deadline) {
  const std::string columns = "cluster, worker, generation, owner, identity, limit_ms";
  for (const std::string& sql : {"UPDATE " + table_ + " SET limit_ms = limit_ms WHERE 1 = 0",
                                 "INSERT INTO " + table_ + " (" + columns + ") SELECT " + columns +
                                     " FROM " + table_ + " WHERE 1 = 0"}) {
    const auto done = connection_.Change(sql, deadline);
    if (!done.ok()) return Refused(done.error(), deadline);
  }
  return {};
}

Error MysqlRegistry::Denied(const Error& error, Instant deadline) {
  return Unavailable(error.message + "; " +
                     GrantStatement(connection_, "SELECT, INSERT, UPDATE", table_, deadline) +
                     " (if the table is missing: " + WorkerTableDdl(table_) + ")");
}

Error MysqlRegistry::Refused(const Error& error, Instant deadline) {
  const MysqlFailure failure = connection_.failure();
  if (failure.definite && ConcernsStore(failure.number)) open_ = false;
  if (failure.definite && IsMissingTable(failure.number)) {
    return Unavailable(
        "the table " + table_ +
        " does not exist; run `leafctl store init`, or create it: " + WorkerTableDdl(table_));
  }
  if (failure.definite && IsDenied(failure.number)) return Denied(error, deadline);
  return error;
}

// What fails here was not sent; a connection that the server closed meanwhile is opened again.
Result<void> MysqlRegistry::Ready(Instant deadline) {
  const Instant now = SystemClock().Now();
  if (now >= deadline) return Unavailable(Where() + ": the deadline passed before the call began");
  bool alive = connected() && !connection_.Stale();
  if (alive && now - last_use_ >= kIdle)
    alive = connection_.Ping(now + std::min(settings_.timeout, deadline - now) / 3).ok();
  if (!alive) {
    std::vector<std::string> known;
    return Open(deadline, known);
  }
  last_use_ = now;
  return {};
}

// --- Rows.

Result<RowRegistry::Snapshot> MysqlRegistry::Read(std::optional<std::int64_t> worker,
                                                  Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  std::string sql =
      "SELECT c.ms, w.worker, w.generation, w.owner, w.identity, w.limit_ms FROM (SELECT "
      "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 AS ms) c LEFT JOIN " +
      table_ + " w ON " + Name();
  if (worker) sql += " AND worker = " + std::to_string(*worker);
  const auto rows = connection_.Select(sql + " ORDER BY w.worker", kMaxRows, deadline);
  if (!rows.ok()) return Refused(rows.error(), deadline);
  Snapshot seen;
  std::int64_t ms = 0;
  for (const MysqlConnection::Cells& cells : *rows) {
    if (cells.size() != 6 || !ReadInteger(cells[0], ms))
      return Unavailable(Where() + ": the server does not tell its time");
    seen.registry_ms = ms;
    if (!cells[1]) continue;  // there is no row
    LEAF_RETURN_IF_ERROR(ReadRow(std::span(cells).subspan(1), Where(), seen.rows.emplace_back()));
  }
  if (!seen.registry_ms) return Unavailable(Where() + ": the server does not tell its time");
  return seen;
}

Result<bool> MysqlRegistry::Change(const std::string& sql, Instant deadline) {
  if (SystemClock().Now() >= deadline)
    return Unavailable(Where() + ": the deadline passed before the change was sent");
  const auto changed = connection_.Change(sql, deadline);
  if (changed.ok()) {
    // Also of a commit that waited for a replica in vain: see MysqlFacts::waits_for_replica.
    LEAF_ASSIGN_OR_RETURN(const State state, Look(deadline));
    if (state == state_) return *changed == 1;
    open_ = false;
    return refusal::Changed();
  }
  const MysqlFailure failure = connection_.failure();
  if (failure.definite && (IsDuplicateKey(failure.number) || failure.number == kDeadlock))
    return false;
  return Refused(changed.error(), deadline);
}

Result<bool> MysqlRegistry::Insert(const WorkerRow& row, Instant deadline) {
  const WorkerRecord& record = row.record;
  return Change("INSERT INTO " + table_ +
                    " (cluster, worker, generation, owner, identity, limit_ms) VALUES (" +
                    Text(cluster_) + ", " + std::to_string(record.worker) + ", " +
                    std::to_string(record.generation) + ", " + Text(record.owner) + ", " +
                    Text(IdentityText(record.identity, row.layout)) + ", " +
                    std::to_string(record.limit_ms) + ")",
                deadline);
}

Result<bool> MysqlRegistry::Replace(const WorkerRecord& from, const WorkerRow& to,
                                    Instant deadline) {
  return Change("UPDATE " + table_ + " SET generation = " + std::to_string(to.record.generation) +
                    ", owner = " + Text(to.record.owner) +
                    ", identity = " + Text(IdentityText(to.record.identity, to.layout)) +
                    ", limit_ms = " + std::to_string(to.record.limit_ms) + " WHERE " + Name() +
                    " AND worker = " + std::to_string(from.worker) + " AND generation = " +
                    std::to_string(from.generation) + " AND owner = " + Text(from.owner) +
                    " AND limit_ms = " + std::to_string(from.limit_ms),
                deadline);
}

}  // namespace

Result<RegistryFactory> MakeMysqlRegistry(const StoreOptions& store,
                                          const RegistryOptions& options) {
  LEAF_ASSIGN_OR_RETURN(MysqlSettings settings, ParseMysqlSettings(store));
  settings.table = kTable;
  settings.timeout = options.timeout;
  return RegistryFactory([settings = std::move(settings), cluster = options.cluster,
                          demanded = store.min_durability]() -> std::unique_ptr<RegistryDriver> {
    return std::make_unique<MysqlRegistry>(settings, cluster, demanded);
  });
}

std::string WorkerTableDdl(const std::string& quoted_table) {
  return "CREATE TABLE IF NOT EXISTS " + quoted_table +
         " (`cluster` varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
         "`worker` int NOT NULL, `generation` bigint NOT NULL, "
         "`owner` char(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
         "`identity` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
         "`limit_ms` bigint NOT NULL, PRIMARY KEY (`cluster`,`worker`)) ENGINE=InnoDB;";
}

}  // namespace leaf
