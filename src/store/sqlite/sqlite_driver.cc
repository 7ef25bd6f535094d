// Every change is one BEGIN IMMEDIATE transaction, and every wait for its lock ends by the call's
// deadline; a transaction whose deadline passed while it waited is rolled back and not committed. A
// commit that fails before its record is complete is a refusal; one whose sync failed is unknown,
// and the log is emptied into the file before anything else is believed (File::log_suspect).
#include "store/sqlite/sqlite_driver.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/mutex.h"
#include "store/refusals.h"
#include "store/sqlite/file.h"
#include "store/sqlite/handle.h"
#include "store/sqlite/schema.h"

namespace leaf {
namespace {

using sqlite::Running;
using sqlite::Statement;

constexpr int kBatch = 64;

struct Statements {
  Statement begin, commit, rollback;
  Statement reserve, find, list, create, set_step, remove, raise, hand_back;
};

class SqliteDriver final : public SegmentDriver {
 public:
  SqliteDriver(std::shared_ptr<sqlite::File> file, std::string table)
      : file_(std::move(file)), table_(std::move(table)) {}
  ~SqliteDriver() override { Close(); }

  Result<StoreInfo> Open(Instant deadline) override;
  bool connected() const noexcept override { return ready_; }
  void Close() noexcept override;
  void Interrupt() noexcept override;
  int batch_limit() const noexcept override { return kBatch; }

  void Reserve(std::span<const Ask> asks, std::span<Grant> grants) override;
  Result<std::optional<Row>> Find(std::string_view tag, Instant deadline) override;
  Result<std::vector<Row>> List(std::string_view after, int limit, Instant deadline) override;
  Result<Row> Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                     Instant deadline) override;
  Result<Row> SetStep(std::string_view tag, std::int64_t step, Instant deadline) override;
  Result<Row> Delete(std::string_view tag, Instant deadline) override;
  Result<std::int64_t> Raise(std::string_view tag, std::int64_t not_below, std::int64_t add,
                             Instant deadline) override;
  Result<bool> HandBack(std::string_view tag, Range tail, Instant deadline) override;

 private:
  struct Failure {
    Error error;
    bool unknown = false;  // it may have happened
  };
  using Maybe = std::optional<Failure>;

  Result<StoreInfo> OpenFile(sqlite3* db);
  int Prepare(sqlite3* db);
  bool SameFiles() const;
  Maybe Start(Instant deadline);
  Maybe Begin(Instant deadline);
  Maybe Commit();
  void RollBack();
  Failure Fail(int code);
  bool Over() const { return interrupted_ || SystemClock().Now() >= deadline_; }

  Maybe ReserveAll(std::span<const Ask> asks, std::span<Grant> grants, Instant deadline);
  Maybe ReserveOne(const Ask& ask, Grant& grant);
  Maybe FindRow(std::string_view tag, std::optional<Row>& row);
  template <typename T, typename F>
  Result<T> Write(Instant deadline, F change);
  Result<Row> ChangeRow(Statement& statement, std::string_view tag, Instant deadline);
  static Row ReadRow(const Statement& statement);
  static int OnBusy(void* self, int tries);

  const std::shared_ptr<sqlite::File> file_;
  const std::string table_;

  // The session's thread.
  bool ready_ = false;
  Instant deadline_ = kNever;
  sqlite::FileId file_id_;
  std::optional<sqlite::FileId> log_id_;
  Statements sql_;

  std::atomic<bool> interrupted_{false};
  Mutex mu_;  // pins the handle for Interrupt
  sqlite::Db db_;
};

// --- The session.

Result<StoreInfo> SqliteDriver::Open(Instant deadline) {
  Close();
  interrupted_ = false;
  deadline_ = deadline;
  if (Over()) return refusal::Late("sqlite");
  LEAF_ASSIGN_OR_RETURN(sqlite::File::Findings findings, file_->Prepare());
  const std::optional<sqlite::FileId> id = sqlite::Identify(file_->path());
  if (!sqlite::Identify(file_->path() + "-wal")) file_->log_suspect = false;
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(file_->path().c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  {
    MutexLock lock(mu_);
    db_.reset(raw);
  }
  if (code != SQLITE_OK || !id) {
    Error error = Fail(code != SQLITE_OK ? code : SQLITE_CANTOPEN).error;
    Close();
    return error;
  }
  file_id_ = *id;
  Result<StoreInfo> info = OpenFile(raw);
  if (!info.ok()) {
    Close();
    return info;
  }
  info->durability = findings.durability;
  for (std::string& warning : findings.warnings) info->warnings.push_back(std::move(warning));
  file_->Opened(file_id_);
  ready_ = true;
  return info;
}

Result<StoreInfo> SqliteDriver::OpenFile(sqlite3* db) {
  sqlite3_busy_handler(db, &SqliteDriver::OnBusy, this);
  if (sqlite3_db_readonly(db, "main") == 1) return Fail(SQLITE_READONLY).error;
  const MutexLock setting_up(file_->setting_up);
  LEAF_RETURN_IF_ERROR(sqlite::SetUp(db, file_->path()));
  if (file_->log_suspect) {
    LEAF_RETURN_IF_ERROR(sqlite::EmptyLog(db, file_->path()));
    file_->log_suspect = false;
  }
  StoreInfo info;
  LEAF_ASSIGN_OR_RETURN(info.identity,
                        sqlite::CheckTables(db, file_->path(), table_, file_id_, info.warnings));
  if (const int code = Prepare(db); code != SQLITE_OK) return Fail(code).error;
  log_id_ = sqlite::Identify(file_->path() + "-wal");
  if (!SameFiles()) return Error{Code::kUnavailable, "sqlite: " + file_->path() + " was replaced"};
  return info;
}

int SqliteDriver::Prepare(sqlite3* db) {
  const std::string table = '"' + table_ + '"';
  const std::string now = std::string(", update_time = ") + sqlite::kNow;
  const std::string where = " WHERE biz_tag = ?1 COLLATE BINARY";
  const std::string columns = "biz_tag, max_id, step, update_time";
  // A row that a hand gave another type is as bad as one with a bad step: it must not be added to.
  const std::string sound = " AND typeof(max_id) = 'integer' AND typeof(step) = 'integer'";
  const std::pair<Statement*, std::string> all[] = {
      {&sql_.begin, "BEGIN IMMEDIATE"},
      {&sql_.commit, "COMMIT"},
      {&sql_.rollback, "ROLLBACK"},
      {&sql_.reserve, "UPDATE " + table + " SET max_id = max_id + ?2" + now + where + sound +
                          " AND step > 0 AND max_id BETWEEN 0 AND ?3 RETURNING max_id, step"},
      {&sql_.find, "SELECT " + columns + ", typeof(max_id), typeof(step) FROM " + table + where},
      {&sql_.list, "SELECT " + columns + " FROM " + table +
                       " WHERE biz_tag > ?1 COLLATE BINARY AND typeof(biz_tag) = 'text' "
                       "ORDER BY biz_tag COLLATE BINARY LIMIT ?2"},
      {&sql_.create, "INSERT INTO " + table +
                         " (biz_tag, step, max_id, update_time) VALUES (?1, ?2, ?3, " +
                         sqlite::kNow + ") ON CONFLICT (biz_tag) DO NOTHING RETURNING " + columns},
      {&sql_.set_step,
       "UPDATE " + table + " SET step = ?2" + now + where + " RETURNING " + columns},
      {&sql_.remove, "DELETE FROM " + table + where + " RETURNING " + columns},
      {&sql_.raise,
       "UPDATE " + table + " SET max_id = max(max_id, ?2) + ?3" + now + where +
           " AND typeof(max_id) = 'integer' AND max(max_id, ?2) <= ?4 RETURNING max_id"},
      {&sql_.hand_back,
       "UPDATE " + table + " SET max_id = ?2" + now + where + " AND max_id = ?3 RETURNING max_id"},
  };
  for (const auto& [statement, text] : all) {
    if (const int code = statement->Prepare(db, text); code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

void SqliteDriver::Close() noexcept {
  ready_ = false;
  sql_ = Statements();
  sqlite::Db db;
  {
    MutexLock lock(mu_);
    db.swap(db_);
  }
}

void SqliteDriver::Interrupt() noexcept {
  interrupted_ = true;
  MutexLock lock(mu_);
  if (db_) sqlite3_interrupt(db_.get());
}

int SqliteDriver::OnBusy(void* self, int tries) {
  const auto* driver = static_cast<SqliteDriver*>(self);
  if (driver->Over()) return 0;
  sqlite3_sleep(std::min(1 << std::min(tries, 3), 8));
  return 1;
}

// Whether the path still names what is open: a commit to an unlinked file is lost with the process.
bool SqliteDriver::SameFiles() const {
  const std::optional<sqlite::FileId> file = sqlite::Identify(file_->path());
  return file && *file == file_id_ && log_id_ &&
         sqlite::Identify(file_->path() + "-wal") == log_id_;
}

// --- Transactions.

SqliteDriver::Failure SqliteDriver::Fail(int code) {
  Failure failure{
      {Code::kUnavailable, "sqlite: " + file_->path() + ": " + sqlite::Explain(db_.get(), code)}};
  const int primary = code & 0xff;
  if (primary != SQLITE_BUSY && primary != SQLITE_INTERRUPT && primary != SQLITE_CONSTRAINT) {
    ready_ = false;
  }
  return failure;
}

SqliteDriver::Maybe SqliteDriver::Start(Instant deadline) {
  interrupted_ = false;
  deadline_ = deadline;
  if (Over()) return Failure{refusal::Late("sqlite")};
  if (!ready_) return Failure{{Code::kUnavailable, "sqlite: the session is closed"}};
  const bool same = SameFiles();
  if (same && !file_->log_suspect) return std::nullopt;
  ready_ = false;
  return Failure{
      {Code::kUnavailable, "sqlite: " + file_->path() +
                               (same ? ": a commit's sync failed; the log has to be emptied first"
                                     : " or its -wal was removed or replaced while leafd ran")}};
}

SqliteDriver::Maybe SqliteDriver::Begin(Instant deadline) {
  if (Maybe failure = Start(deadline)) return failure;
  Running running(sql_.begin);
  if (const int code = sql_.begin.Step(); code != SQLITE_DONE) return Fail(code);
  return std::nullopt;
}

void SqliteDriver::RollBack() {
  if (sqlite3_get_autocommit(db_.get()) != 0) return;
  Running running(sql_.rollback);
  if (sql_.rollback.Step() != SQLITE_DONE) ready_ = false;
}

SqliteDriver::Maybe SqliteDriver::Commit() {
  if (Over()) {
    RollBack();
    return Failure{
        {Code::kUnavailable, "sqlite: the deadline passed before the commit; rolled back"}};
  }
  int code = SQLITE_OK;
  {
    Running running(sql_.commit);
    code = sql_.commit.Step();
  }
  if (code == SQLITE_DONE) {
    if (SameFiles()) return std::nullopt;
    ready_ = false;
    return Failure{{Code::kUnavailable,
                    "sqlite: " + file_->path() + " was removed or replaced during a commit"},
                   true};
  }
  Failure failure = Fail(code);
  const int primary = code & 0xff;
  const bool open = sqlite3_get_autocommit(db_.get()) == 0;
  // A full disk stops the commit's last record from being written whole.
  const bool undone =
      primary == SQLITE_FULL || (open && (primary == SQLITE_BUSY || primary == SQLITE_INTERRUPT));
  RollBack();
  if (undone && sqlite3_get_autocommit(db_.get()) != 0) return failure;
  failure.unknown = true;
  ready_ = false;
  file_->log_suspect = true;
  return failure;
}

// --- Calls.

void SqliteDriver::Reserve(std::span<const Ask> asks, std::span<Grant> grants) {
  Instant deadline = Instant::min();
  for (std::size_t i = 0; i < asks.size(); ++i) {
    deadline = std::max(deadline, asks[i].deadline);
    grants[i] = Grant();
    grants[i].flight = asks[i].flight;
    grants[i].outcome = Outcome::kRefused;
  }
  const Maybe failure = ReserveAll(asks, grants, deadline);
  if (!failure) return;
  for (Grant& grant : grants) {
    const bool tried = grant.outcome == Outcome::kGranted;
    if (!tried && !grant.error.message.empty()) continue;  // its own reason stands
    grant.outcome = tried && failure->unknown ? Outcome::kUnknown : Outcome::kRefused;
    grant.error = failure->error;
    grant.range = {};
    grant.row_step.reset();
  }
}

SqliteDriver::Maybe SqliteDriver::ReserveAll(std::span<const Ask> asks, std::span<Grant> grants,
                                             Instant deadline) {
  if (Maybe failure = Begin(deadline)) return failure;
  bool any = false;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (Maybe failure = ReserveOne(asks[i], grants[i])) {
      RollBack();
      return failure;
    }
    any = any || grants[i].outcome == Outcome::kGranted;
  }
  if (any) return Commit();
  RollBack();
  return std::nullopt;
}

SqliteDriver::Maybe SqliteDriver::ReserveOne(const Ask& ask, Grant& grant) {
  if (SystemClock().Now() >= ask.deadline) {
    grant.error = refusal::Late("sqlite");
    return std::nullopt;
  }
  Statement& reserve = sql_.reserve;
  Running running(reserve);
  reserve.Bind(1, ask.tag);
  reserve.Bind(2, ask.count);
  reserve.Bind(3, kMaxEnd - ask.count);
  int code = reserve.Step();
  if (code == SQLITE_ROW) {
    grant.range = {reserve.Int(0) - ask.count, reserve.Int(0)};
    grant.row_step = reserve.Int(1);
    code = reserve.Step();
    if (code != SQLITE_DONE) return Fail(code);
    grant.outcome = Outcome::kGranted;
    return std::nullopt;
  }
  if (code != SQLITE_DONE) return Fail(code);
  Statement& find = sql_.find;
  Running looking(find);
  find.Bind(1, ask.tag);
  code = find.Step();
  if (code == SQLITE_DONE) {
    grant.error = refusal::NoRow(ask.tag);
    return std::nullopt;
  }
  if (code != SQLITE_ROW) return Fail(code);
  const std::string types = find.Text(4) + ", " + find.Text(5);
  std::optional<Error> error = refusal::BadRow(ask.tag, find.Int(1), find.Int(2), ask.count);
  if (types != "integer, integer" || !error) {
    error = Error{Code::kUnavailable, "tag '" + std::string(ask.tag) +
                                          "' has max_id and step of types " + types +
                                          "; both must be integers"};
  }
  grant.error = std::move(*error);
  return std::nullopt;
}

Row SqliteDriver::ReadRow(const Statement& statement) {
  return {statement.Text(0), statement.Int(1), statement.Int(2), statement.Text(3)};
}

SqliteDriver::Maybe SqliteDriver::FindRow(std::string_view tag, std::optional<Row>& row) {
  Running running(sql_.find);
  sql_.find.Bind(1, tag);
  const int code = sql_.find.Step();
  if (code == SQLITE_ROW) {
    row = ReadRow(sql_.find);
  } else if (code != SQLITE_DONE) {
    return Fail(code);
  }
  return std::nullopt;
}

Result<std::optional<Row>> SqliteDriver::Find(std::string_view tag, Instant deadline) {
  if (Maybe failure = Start(deadline)) return failure->error;
  std::optional<Row> row;
  if (Maybe failure = FindRow(tag, row)) return failure->error;
  return row;
}

Result<std::vector<Row>> SqliteDriver::List(std::string_view after, int limit, Instant deadline) {
  if (Maybe failure = Start(deadline)) return failure->error;
  Running running(sql_.list);
  sql_.list.Bind(1, after);
  sql_.list.Bind(2, std::int64_t{limit});
  std::vector<Row> rows;
  int code = SQLITE_OK;
  while ((code = sql_.list.Step()) == SQLITE_ROW) rows.push_back(ReadRow(sql_.list));
  if (code != SQLITE_DONE) return Fail(code).error;
  return rows;
}

// `change` runs in a transaction and returns a result, which stands if the commit succeeds.
template <typename T, typename F>
Result<T> SqliteDriver::Write(Instant deadline, F change) {
  if (Maybe failure = Begin(deadline)) return failure->error;
  Result<T> result = change();
  if (!result.ok()) {
    RollBack();
    return result;
  }
  if (Maybe failure = Commit()) return failure->error;
  return result;
}

// Runs a statement that returns the changed row, its second parameter bound by the caller.
Result<Row> SqliteDriver::ChangeRow(Statement& statement, std::string_view tag, Instant deadline) {
  return Write<Row>(deadline, [&]() -> Result<Row> {
    Running running(statement);
    statement.Bind(1, tag);
    int code = statement.Step();
    if (code == SQLITE_DONE)
      return &statement == &sql_.create ? refusal::Exists(tag) : refusal::NoRow(tag);
    if (code != SQLITE_ROW) return Fail(code).error;
    Row row = ReadRow(statement);
    if (code = statement.Step(); code != SQLITE_DONE) return Fail(code).error;
    return row;
  });
}

Result<Row> SqliteDriver::Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                                 Instant deadline) {
  if (!ready_) return Error{Code::kUnavailable, "sqlite: the session is closed"};
  sql_.create.Bind(2, step);
  sql_.create.Bind(3, max_id);
  return ChangeRow(sql_.create, tag, deadline);
}

Result<Row> SqliteDriver::SetStep(std::string_view tag, std::int64_t step, Instant deadline) {
  if (!ready_) return Error{Code::kUnavailable, "sqlite: the session is closed"};
  sql_.set_step.Bind(2, step);
  return ChangeRow(sql_.set_step, tag, deadline);
}

Result<Row> SqliteDriver::Delete(std::string_view tag, Instant deadline) {
  return ChangeRow(sql_.remove, tag, deadline);
}

Result<std::int64_t> SqliteDriver::Raise(std::string_view tag, std::int64_t not_below,
                                         std::int64_t add, Instant deadline) {
  return Write<std::int64_t>(deadline, [&]() -> Result<std::int64_t> {
    Statement& raise = sql_.raise;
    Running running(raise);
    raise.Bind(1, tag);
    raise.Bind(2, not_below);
    raise.Bind(3, add);
    raise.Bind(4, kMaxEnd - add);
    int code = raise.Step();
    if (code == SQLITE_ROW) {
      const std::int64_t max_id = raise.Int(0);
      if (code = raise.Step(); code != SQLITE_DONE) return Fail(code).error;
      return max_id;
    }
    if (code != SQLITE_DONE) return Fail(code).error;
    std::optional<Row> row;
    if (Maybe failure = FindRow(tag, row)) return failure->error;
    if (!row) return refusal::NoRow(tag);
    return refusal::Exhausted(tag, std::max(row->max_id, not_below), add);
  });
}

Result<bool> SqliteDriver::HandBack(std::string_view tag, Range tail, Instant deadline) {
  return Write<bool>(deadline, [&]() -> Result<bool> {
    Statement& hand_back = sql_.hand_back;
    Running running(hand_back);
    hand_back.Bind(1, tag);
    hand_back.Bind(2, tail.first);
    hand_back.Bind(3, tail.last);
    int code = hand_back.Step();
    if (code == SQLITE_DONE) return false;
    if (code != SQLITE_ROW) return Fail(code).error;
    if (code = hand_back.Step(); code != SQLITE_DONE) return Fail(code).error;
    return true;
  });
}

bool IsName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

}  // namespace

Result<DriverFactory> MakeSqliteFactory(const StoreOptions& options) {
  if (options.path.empty() || options.path.front() != '/') {
    return Error{Code::kInvalidArgument, "sqlite: the path '" + options.path + "' is not absolute"};
  }
  if (!IsName(options.table)) {
    return Error{Code::kInvalidArgument,
                 "sqlite: the table name '" + options.table + "' is not of letters, digits and _"};
  }
  auto file = sqlite::ShareFile(options.path, sqlite::FileUse::kTags);
  return DriverFactory(
      [file = std::move(file), table = options.table]() -> std::unique_ptr<SegmentDriver> {
        return std::make_unique<SqliteDriver>(file, table);
      });
}

}  // namespace leaf
