#include "registry/sqlite/sqlite_registry.h"

#include <sqlite3.h>

#include <utility>

#include "registry/row_registry.h"
#include "store/refusals.h"
#include "store/sqlite/session.h"

namespace leaf {
namespace {

using sqlite::Running;
using sqlite::Statement;

constexpr const char* kDdl =
    "CREATE TABLE IF NOT EXISTS leafd_worker (cluster TEXT NOT NULL COLLATE BINARY, "
    "worker INTEGER NOT NULL, generation INTEGER NOT NULL, owner TEXT NOT NULL, "
    "identity TEXT NOT NULL, limit_ms INTEGER NOT NULL, PRIMARY KEY (cluster, worker))";

// A hand may have given a value another type, which would be read as 0.
constexpr const char* kRead =
    "SELECT worker, generation, owner, identity, limit_ms, typeof(worker) = 'integer' AND "
    "typeof(generation) = 'integer' AND typeof(owner) = 'text' AND typeof(limit_ms) = 'integer' "
    "FROM leafd_worker WHERE cluster = ?1 COLLATE BINARY AND (?2 = 0 OR worker = ?3) "
    "ORDER BY worker";
constexpr const char* kInsert =
    "INSERT INTO leafd_worker (cluster, worker, generation, owner, identity, limit_ms) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (cluster, worker) DO NOTHING";
constexpr const char* kReplace =
    "UPDATE leafd_worker SET generation = ?3, owner = ?4, identity = ?5, limit_ms = ?6 "
    "WHERE cluster = ?1 COLLATE BINARY AND worker = ?2 AND generation = ?7 "
    "AND owner = ?8 COLLATE BINARY AND limit_ms = ?9";

class SqliteRegistry final : public RowRegistry {
 public:
  SqliteRegistry(std::shared_ptr<sqlite::File> file, std::string cluster, Durability demanded)
      : session_(std::move(file)), cluster_(std::move(cluster)), demanded_(demanded) {}
  ~SqliteRegistry() override { Close(); }

  Result<void> Open(Instant deadline, std::vector<std::string>& warnings) override;
  bool connected() const noexcept override { return session_.ready(); }
  void Close() noexcept override;
  void Interrupt() noexcept override { session_.Interrupt(); }

 protected:
  Result<Snapshot> Read(std::optional<std::int64_t> worker, Instant deadline) override;
  Result<bool> Insert(const WorkerRow& row, Instant deadline) override {
    return Write(insert_, row, nullptr, deadline);
  }
  Result<bool> Replace(const WorkerRecord& from, const WorkerRow& to, Instant deadline) override {
    return Write(replace_, to, &from, deadline);
  }
  std::string Where() const override {
    return "sqlite: " + session_.path() + ": table leafd_worker, cluster '" + cluster_ + "'";
  }

 private:
  Result<void> Prepare(sqlite3* db);
  Result<bool> Write(Statement& statement, const WorkerRow& row, const WorkerRecord* from,
                     Instant deadline);

  sqlite::Session session_;
  const std::string cluster_;
  const Durability demanded_;
  Statement read_, insert_, replace_;
};

Result<void> SqliteRegistry::Open(Instant deadline, std::vector<std::string>& warnings) {
  Close();
  Result<sqlite::File::Findings> found =
      session_.Open(deadline, [this](sqlite3* db) { return Prepare(db); });
  if (!found.ok()) {
    Close();
    return found.error();
  }
  for (std::string& warning : found->warnings) warnings.push_back(std::move(warning));
  if (found->durability >= demanded_) return {};
  Close();
  return refusal::TooWeak(Where(), found->durability, demanded_);
}

Result<void> SqliteRegistry::Prepare(sqlite3* db) {
  if (const int code = sqlite::Exec(db, kDdl); code != SQLITE_OK) return session_.Fail(code);
  const std::pair<Statement*, const char*> all[] = {
      {&read_, kRead}, {&insert_, kInsert}, {&replace_, kReplace}};
  for (const auto& [statement, text] : all) {
    const int code = statement->Prepare(db, text);
    if (code == SQLITE_OK) continue;
    Error error = session_.Fail(code);
    error.message += std::string("; table leafd_worker has to be as by: ") + kDdl;
    return error;
  }
  return {};
}

void SqliteRegistry::Close() noexcept {
  read_ = Statement();
  insert_ = Statement();
  replace_ = Statement();
  session_.Close();
}

Result<RowRegistry::Snapshot> SqliteRegistry::Read(std::optional<std::int64_t> worker,
                                                   Instant deadline) {
  LEAF_RETURN_IF_ERROR(session_.Start(deadline));
  Running running(read_);
  read_.Bind(1, std::string_view(cluster_));
  read_.Bind(2, std::int64_t{worker ? 1 : 0});
  read_.Bind(3, worker.value_or(0));
  Snapshot seen;
  int code = SQLITE_OK;
  while ((code = read_.Step()) == SQLITE_ROW) {
    WorkerRow& row = seen.rows.emplace_back();
    IdentityParts parts = ParseIdentity(read_.Text(3));
    row.record = {
        read_.Int(0), read_.Int(1), read_.Text(2), std::move(parts.identity), read_.Int(4), ""};
    row.layout = std::move(parts.layout);
    if (read_.Int(5) == 0) row.record.limit_ms = -1;
    LEAF_RETURN_IF_ERROR(CheckRow(row.record, Where()));
  }
  if (code != SQLITE_DONE) return session_.Fail(code);
  return seen;
}

Result<bool> SqliteRegistry::Write(Statement& statement, const WorkerRow& row,
                                   const WorkerRecord* from, Instant deadline) {
  LEAF_RETURN_IF_ERROR(session_.Begin(deadline));
  const std::string identity = IdentityText(row.record.identity, row.layout);
  int code = SQLITE_OK;
  {
    Running running(statement);
    statement.Bind(1, std::string_view(cluster_));
    statement.Bind(2, row.record.worker);
    statement.Bind(3, row.record.generation);
    statement.Bind(4, std::string_view(row.record.owner));
    statement.Bind(5, std::string_view(identity));
    statement.Bind(6, row.record.limit_ms);
    if (from != nullptr) {
      statement.Bind(7, from->generation);
      statement.Bind(8, std::string_view(from->owner));
      statement.Bind(9, from->limit_ms);
    }
    code = statement.Step();
  }
  if (code != SQLITE_DONE) {
    Error error = session_.Fail(code);
    session_.RollBack();
    return error;
  }
  if (sqlite3_changes(session_.db()) == 0) {
    session_.RollBack();
    return false;
  }
  LEAF_RETURN_IF_ERROR(session_.Commit());
  return true;
}

}  // namespace

Result<RegistryFactory> MakeSqliteRegistry(const StoreOptions& store,
                                           const RegistryOptions& options) {
  if (store.path.empty() || store.path.front() != '/') {
    return Error{Code::kInvalidArgument, "sqlite: the path '" + store.path + "' is not absolute"};
  }
  auto file = sqlite::ShareFile(store.path, sqlite::FileUse::kWorkers);
  return RegistryFactory([file = std::move(file), cluster = options.cluster,
                          demanded = store.min_durability]() -> std::unique_ptr<RegistryDriver> {
    return std::make_unique<SqliteRegistry>(file, cluster, demanded);
  });
}

}  // namespace leaf
