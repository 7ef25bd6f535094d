// One session. The statements are prepared when first used; every one of them names the row by its
// collation, which is what the index can find, and by its bytes, which is what we mean.
//
// A failure is definite when the server itself said so (MysqlFailure); the connection has ended
// after any other. Only a failure to execute a reservation that is not definite is kUnknown: until
// then nothing was sent that could move the row.

#include "store/mysql/mysql_driver.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "base/utf8.h"
#include "store/mysql/mysql_errors.h"
#include "store/mysql/mysql_probe.h"
#include "store/refusals.h"

namespace leaf {
namespace {

using Param = MysqlStatement::Param;

constexpr Duration kLookEvery = std::chrono::seconds(1);  // column types and the like
constexpr Duration kIdle = std::chrono::seconds(5);       // then a sign of life is asked for
constexpr Duration kPingMax = std::chrono::milliseconds(300);
constexpr Duration kLimitMin = std::chrono::milliseconds(1);
constexpr int kDeleteTries = 5, kDeadlockTries = 10;

constexpr const char* kByName =
    "biz_tag = ? AND CAST(CONVERT(biz_tag USING utf8mb4) AS BINARY) = ?";

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

Row ToRow(MysqlRow from) {
  return Row{std::move(from.tag), from.max_id.value_or(0), from.step.value_or(0),
             std::move(from.updated)};
}

class MysqlDriver final : public SegmentDriver {
 public:
  explicit MysqlDriver(MysqlSettings settings)
      : settings_(std::move(settings)),
        table_(QuotedTable(settings_)),
        limit_max_(settings_.timeout / 10 * 9),
        connection_(clock_) {}

  Result<StoreInfo> Open(Instant deadline) override;
  bool connected() const noexcept override { return open_ && connection_.connected(); }
  void Close() noexcept override;
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
  Result<std::vector<std::string>> LackingRights(Instant deadline) override;
  Result<std::vector<UnreadableRow>> Unreadable(int most, Instant deadline) override;
  void Interrupt() noexcept override { connection_.Interrupt(); }

 private:
  Result<void> Examine(Instant deadline);
  void SetTexts();
  Result<void> Ready(Instant deadline);
  Result<void> Look(Instant deadline);
  Result<void> Judge(Instant deadline);
  Result<void> LimitStatements(Instant deadline);

  Grant ReserveOne(const Ask& ask);
  void GrantFrom(const MysqlStatement::Done& done, const Ask& ask, Grant& grant);
  bool SettingsAreStill(Instant deadline);
  void Lost(const Ask& ask, Error error, Grant& grant);
  Error WhyNoRow(const Ask& ask);
  Error WhyUnchanged(Instant deadline);

  /// A prepared statement, again if another's change of the row had it rolled back.
  Result<MysqlStatement::Done> Execute(MysqlStatement& statement, std::span<const Param> params,
                                       Instant deadline);
  /// What a definite failure means; ends the session if that concerns the whole store.
  Error Refusal(Error error, std::string_view tag);
  /// A statement that changes something, by name. The name must be UTF-8.
  Result<MysqlStatement::Done> Change(MysqlStatement& statement, std::span<const Param> params,
                                      std::string_view tag, Instant deadline);
  Result<std::optional<MysqlRow>> Look(std::string_view tag, Instant deadline);
  Result<Row> Existing(std::string_view tag, Instant deadline);

  Clock& clock_ = SystemClock();
  const MysqlSettings settings_;
  const std::string table_;
  const Duration limit_max_;  ///< on each statement, by the server; shorter than the call's

  MysqlConnection connection_;
  MysqlStatement reserve_{connection_}, find_{connection_}, list_{connection_},
      create_{connection_}, set_step_{connection_}, delete_{connection_}, raise_{connection_},
      hand_back_{connection_};
  bool open_ = false;
  MysqlFacts facts_;
  bool compares_settings_ = true;  ///< in each statement
  Duration limit_{};
  Instant last_look_{}, last_use_{};
};

Result<StoreInfo> MysqlDriver::Open(Instant deadline) {
  Close();
  LEAF_RETURN_IF_ERROR(connection_.Connect(settings_, deadline));
  Result<void> examined = Examine(deadline);
  if (!examined.ok()) {
    connection_.Close();
    return examined.error();
  }
  open_ = true;
  last_look_ = last_use_ = clock_.Now();
  return facts_.info;
}

Result<void> MysqlDriver::Examine(Instant deadline) {
  limit_ = limit_max_;
  LEAF_RETURN_IF_ERROR(SetUpMysqlSession(connection_, limit_, deadline));
  LEAF_ASSIGN_OR_RETURN(facts_, ProbeMysql(connection_, settings_, deadline));
  compares_settings_ = true;
  SetTexts();
  Result<void> prepared = reserve_.Prepare(deadline);  // tells whether the user may
  if (prepared.ok() || !IsDenied(connection_.failure().number)) return prepared;
  return Unavailable(prepared.error().message + "; " +
                     GrantStatement(connection_, "SELECT, UPDATE", table_, deadline));
}

void MysqlDriver::Close() noexcept {
  open_ = false;
  connection_.Close();
}

void MysqlDriver::SetTexts() {
  const std::string by_name = std::string(" WHERE ") + kByName;
  const std::string updated =
      facts_.has_update_time ? "DATE_FORMAT(update_time, '%Y-%m-%d %H:%i:%s.0')" : "''";
  const std::string select =
      "SELECT CONVERT(biz_tag USING utf8mb4), max_id, CAST(step AS SIGNED), " + updated + " FROM " +
      table_;
  const std::string guard =
      facts_.engine_guard + (compares_settings_ ? facts_.settings_guard : std::string());
  reserve_.SetText(
      "UPDATE " + table_ + " SET max_id = LAST_INSERT_ID(max_id + CAST(? AS SIGNED))" + by_name +
      " AND step > 0 AND max_id BETWEEN 0 AND 9223372036854775807 - CAST(? AS SIGNED)" + guard);
  find_.SetText(select + by_name);
  list_.SetText(select + " WHERE biz_tag > ? ORDER BY biz_tag LIMIT ?");
  create_.SetText("INSERT INTO " + table_ + " (biz_tag, max_id, step) VALUES (?, ?, ?)");
  set_step_.SetText("UPDATE " + table_ + " SET step = ?" + by_name);
  delete_.SetText("DELETE FROM " + table_ + by_name + " AND max_id = ?");
  raise_.SetText(
      "UPDATE " + table_ +
      " SET max_id = LAST_INSERT_ID(GREATEST(max_id, CAST(? AS SIGNED)) + CAST(? AS SIGNED))" +
      by_name +
      " AND GREATEST(max_id, CAST(? AS SIGNED)) BETWEEN 0 AND 9223372036854775807 - CAST(? AS "
      "SIGNED)" +
      guard);
  hand_back_.SetText("UPDATE " + table_ + " SET max_id = ?" + by_name + " AND max_id = ?" + guard);
}

// --- Before a statement. A failure here means that nothing was sent.

Result<void> MysqlDriver::Ready(Instant deadline) {
  if (!connected()) return Unavailable("not connected");
  const Instant now = clock_.Now();
  if (now >= deadline) return refusal::Late("mysql");
  if (connection_.Stale()) {
    Close();
    return Unavailable("the server had closed the idle connection");
  }
  if (now - last_use_ >= kIdle) {
    const Result<void> alive = connection_.Ping(now + std::min(kPingMax, (deadline - now) / 3));
    if (!alive.ok()) {
      Close();
      return alive;
    }
  }
  last_use_ = clock_.Now();
  return {};
}

Result<void> MysqlDriver::Look(Instant deadline) {
  if (clock_.Now() - last_look_ < kLookEvery) return {};
  const auto seen = connection_.Select(facts_.fingerprint_query, 1, deadline);
  if (!seen.ok()) return Refusal(seen.error(), "");
  if (seen->size() == 1 && seen->front() == facts_.fingerprint) {
    last_look_ = clock_.Now();
    return {};
  }
  return Judge(deadline);
}

// Something is not as Open found it. Only Open may tell of another identity or level, so such a
// session ends; a change that makes no difference is taken note of.
Result<void> MysqlDriver::Judge(Instant deadline) {
  Result<MysqlFacts> facts = ProbeMysql(connection_, settings_, deadline);
  if (!facts.ok()) {
    Close();
    return facts.error();
  }
  if (facts->info.identity != facts_.info.identity ||
      facts->info.durability != facts_.info.durability ||
      facts->has_update_time != facts_.has_update_time) {
    Close();
    return Unavailable(
        "the server is another than before or has other settings; it will be examined anew");
  }
  facts_ = std::move(*facts);
  SetTexts();
  last_look_ = clock_.Now();
  return {};
}

// The server shall give up before we do, but not much earlier. The limit is seldom set again: most
// calls come with the whole timeout before them.
Result<void> MysqlDriver::LimitStatements(Instant deadline) {
  const Duration limit = std::min(limit_max_, (deadline - clock_.Now()) / 20 * 19);
  if (limit < kLimitMin) return Unavailable("too little time was left to begin");
  if ((limit_ <= limit && limit_ >= limit / 10 * 7) || !connection_.is_mariadb()) return {};
  const Result<void> set = SetUpMysqlSession(connection_, limit, deadline);
  if (!set.ok()) return Refusal(set.error(), "");
  limit_ = limit;
  return {};
}

Error MysqlDriver::Refusal(Error error, std::string_view tag) {
  const MysqlFailure& failure = connection_.failure();
  if (failure.definite && IsForeignCharacter(failure.number)) return refusal::NoRow(tag);
  if (failure.definite && IsDuplicateKey(failure.number)) {
    Error exists = refusal::Exists(tag);
    exists.message += ", or a name that the column's collation takes for the same has one";
    return exists;
  }
  if (!connection_.connected() || ConcernsStore(failure.number)) Close();
  return error;
}

Result<MysqlStatement::Done> MysqlDriver::Execute(MysqlStatement& statement,
                                                  std::span<const Param> params, Instant deadline) {
  auto done = statement.Execute(params, deadline);
  for (int i = 1; i < kDeadlockTries && !done.ok() && IsDeadlock(connection_.failure().number);
       ++i) {
    if (!LimitStatements(deadline).ok()) break;
    done = statement.Execute(params, deadline);
  }
  return done;
}

// --- Reserving.

void MysqlDriver::Reserve(std::span<const Ask> asks, std::span<Grant> grants) {
  LEAF_ASSERT(asks.size() == grants.size());
  for (std::size_t i = 0; i < asks.size(); ++i) grants[i] = ReserveOne(asks[i]);
}

Grant MysqlDriver::ReserveOne(const Ask& ask) {
  LEAF_ASSERT(ask.count > 0);
  Grant grant;
  grant.flight = ask.flight;
  grant.outcome = Outcome::kRefused;
  if (!IsUtf8(ask.tag)) {
    grant.error = refusal::NoRow(ask.tag);
    return grant;
  }
  Result<void> ready = Ready(ask.deadline);
  if (ready.ok()) ready = Look(ask.deadline);
  if (ready.ok()) ready = LimitStatements(ask.deadline);
  if (ready.ok()) {
    ready = reserve_.Prepare(ask.deadline);
    if (!ready.ok()) ready = Refusal(ready.error(), ask.tag);
  }
  if (!ready.ok()) {
    grant.error = ready.error();
    return grant;
  }
  const std::array<Param, 4> params{ask.count, ask.tag, ask.tag, ask.count};
  const auto done = Execute(reserve_, params, ask.deadline);
  if (done.ok()) {
    GrantFrom(*done, ask, grant);
  } else {
    Lost(ask, done.error(), grant);
  }
  return grant;
}

void MysqlDriver::GrantFrom(const MysqlStatement::Done& done, const Ask& ask, Grant& grant) {
  if (done.affected == 0) {
    grant.error = WhyNoRow(ask);
    return;
  }
  const auto least = static_cast<std::uint64_t>(ask.count);
  if (done.affected != 1 || done.insert_id < least ||
      done.insert_id > static_cast<std::uint64_t>(kMaxEnd)) {
    connection_.Cut();
    grant.outcome = Outcome::kUnknown;
    grant.error =
        Unavailable("the server's answer makes no sense: " + std::to_string(done.affected) +
                    " rows, new end " + std::to_string(done.insert_id));
    return;
  }
  if (facts_.waits_for_replica && !SettingsAreStill(ask.deadline)) {
    grant.outcome = Outcome::kUnknown;
    grant.error = Unavailable(
        "the server's settings were changed while it waited for a replica, which may lack what was "
        "reserved; it will be examined anew");
    return;
  }
  grant.outcome = Outcome::kGranted;
  grant.range.last = static_cast<std::int64_t>(done.insert_id);
  grant.range.first = grant.range.last - ask.count;
}

bool MysqlDriver::SettingsAreStill(Instant deadline) {
  const auto settings = connection_.Select(facts_.settings_query, 1, deadline);
  if (settings.ok() && settings->size() == 1 && settings->front() == facts_.settings) return true;
  Close();
  return false;
}

void MysqlDriver::Lost(const Ask& ask, Error error, Grant& grant) {
  const MysqlFailure failure = connection_.failure();
  if (!failure.definite) {
    connection_.Cut();
    grant.outcome = Outcome::kUnknown;
    grant.error = std::move(error);
    return;
  }
  // max_id is compared with the end before it is added to: it no longer is the column that Open
  // found.
  if (IsOutOfRange(failure.number)) Close();
  grant.error = Refusal(std::move(error), ask.tag);
}

// The statement met no row that fulfils all its conditions.
Error MysqlDriver::WhyNoRow(const Ask& ask) {
  const auto row = Look(ask.tag, ask.deadline);
  if (!row.ok()) return row.error();
  if (!*row) return refusal::NoRow(ask.tag);
  if (!(*row)->max_id || !(*row)->step) {
    return Unavailable(refusal::HasNull(ask.tag, !(*row)->max_id));
  }
  if (auto bad = refusal::BadRow(ask.tag, *(*row)->max_id, *(*row)->step, ask.count)) return *bad;
  return WhyUnchanged(ask.deadline);
}

// Of a row that allows the change.
Error MysqlDriver::WhyUnchanged(Instant deadline) {
  const MysqlConnection::Cells before = facts_.settings;
  const Result<void> judged = Judge(deadline);
  if (!judged.ok()) return judged.error();
  // Behind a proxy that splits reads from writes, they are not asked for where they are compared.
  if (facts_.settings == before) compares_settings_ = false;
  SetTexts();
  return Unavailable("the row or the server's settings changed meanwhile");
}

// --- The rest.

Result<std::optional<MysqlRow>> MysqlDriver::Look(std::string_view tag, Instant deadline) {
  Result<void> ready = find_.Prepare(deadline);
  if (!ready.ok()) return Refusal(ready.error(), tag);
  const std::array<Param, 2> params{tag, tag};
  auto rows = find_.Rows(params, 1, deadline);
  if (rows.ok()) return rows->empty() ? std::nullopt : std::optional(std::move(rows->front()));
  Error error = Refusal(rows.error(), tag);
  if (error.code == Code::kNotFound) return std::optional<MysqlRow>();
  return error;
}

Result<std::optional<Row>> MysqlDriver::Find(std::string_view tag, Instant deadline) {
  if (!IsUtf8(tag)) return std::optional<Row>();
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  LEAF_ASSIGN_OR_RETURN(std::optional<MysqlRow> row, Look(tag, deadline));
  if (!row) return std::optional<Row>();
  return std::optional(ToRow(std::move(*row)));
}

Result<std::vector<Row>> MysqlDriver::List(std::string_view after, int limit, Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  Result<void> ready = list_.Prepare(deadline);
  if (!ready.ok()) return Refusal(ready.error(), "");
  const std::array<Param, 2> params{after, std::int64_t{limit}};
  auto found = list_.Rows(params, static_cast<std::size_t>(limit), deadline);
  if (!found.ok()) return Refusal(found.error(), after);
  std::vector<Row> rows;
  rows.reserve(found->size());
  for (MysqlRow& row : *found) rows.push_back(ToRow(std::move(row)));
  return rows;
}

Result<MysqlStatement::Done> MysqlDriver::Change(MysqlStatement& statement,
                                                 std::span<const Param> params,
                                                 std::string_view tag, Instant deadline) {
  if (!IsUtf8(tag)) return refusal::NoRow(tag);
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  LEAF_RETURN_IF_ERROR(LimitStatements(deadline));
  Result<void> ready = statement.Prepare(deadline);
  if (!ready.ok()) return Refusal(ready.error(), tag);
  auto done = Execute(statement, params, deadline);
  if (!done.ok()) return Refusal(done.error(), tag);
  return done;
}

Result<Row> MysqlDriver::Existing(std::string_view tag, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(std::optional<MysqlRow> row, Look(tag, deadline));
  if (!row) return refusal::NoRow(tag);
  return ToRow(std::move(*row));
}

Result<Row> MysqlDriver::Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                                Instant deadline) {
  const std::array<Param, 3> params{tag, max_id, step};
  const auto done = Change(create_, params, tag, deadline);
  if (!done.ok()) {
    if (done.error().code == Code::kNotFound) {
      return Unavailable("the column biz_tag cannot hold the characters of '" + std::string(tag) +
                         "'");
    }
    return done.error();
  }
  // The row is there; that its update_time cannot be read back is no failure of the call.
  Result<Row> row = Existing(tag, deadline);
  return row.ok() ? std::move(row) : Result<Row>(Row{std::string(tag), max_id, step, ""});
}

Result<Row> MysqlDriver::SetStep(std::string_view tag, std::int64_t step, Instant deadline) {
  const std::array<Param, 3> params{step, tag, tag};
  const auto done = Change(set_step_, params, tag, deadline);
  if (!done.ok()) return done.error();
  return Existing(tag, deadline);
}

// The row that is returned is the one deleted: a max_id that moved in between is looked at again.
Result<Row> MysqlDriver::Delete(std::string_view tag, Instant deadline) {
  for (int i = 0; i < kDeleteTries; ++i) {
    LEAF_ASSIGN_OR_RETURN(std::optional<Row> row, Find(tag, deadline));
    if (!row) return refusal::NoRow(tag);
    const std::array<Param, 3> params{tag, tag, row->max_id};
    LEAF_ASSIGN_OR_RETURN(const MysqlStatement::Done done, Change(delete_, params, tag, deadline));
    if (done.affected == 1) return std::move(*row);
  }
  return Unavailable("the row of '" + std::string(tag) + "' moves too fast to be deleted");
}

Result<std::int64_t> MysqlDriver::Raise(std::string_view tag, std::int64_t not_below,
                                        std::int64_t add, Instant deadline) {
  LEAF_ASSERT(add >= 0);
  const std::array<Param, 6> params{not_below, add, tag, tag, not_below, add};
  LEAF_ASSIGN_OR_RETURN(const MysqlStatement::Done done, Change(raise_, params, tag, deadline));
  if (done.affected == 1) return static_cast<std::int64_t>(done.insert_id);
  // No such row, or nothing to change, or no room.
  LEAF_ASSIGN_OR_RETURN(std::optional<MysqlRow> row, Look(tag, deadline));
  if (!row) return refusal::NoRow(tag);
  if (!row->max_id) return Unavailable(refusal::HasNull(tag, true));
  const std::int64_t from = std::max(*row->max_id, not_below);
  if (from > kMaxEnd - add) return refusal::Exhausted(tag, from, add);
  if (add == 0 && from == *row->max_id) return from;
  return WhyUnchanged(deadline);
}

Result<bool> MysqlDriver::HandBack(std::string_view tag, Range tail, Instant deadline) {
  LEAF_ASSERT(tail.first < tail.last);
  const std::array<Param, 4> params{tail.first, tag, tag, tail.last};
  const auto done = Change(hand_back_, params, tag, deadline);
  if (done.ok()) return done->affected == 1;
  if (done.error().code == Code::kNotFound) return false;
  return done.error();
}

// To prepare a statement asks for its privileges and runs nothing.
Result<std::vector<std::string>> MysqlDriver::LackingRights(Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  std::vector<std::string> lacking;
  const std::pair<MysqlStatement*, const char*> all[] = {{&create_, "INSERT"},
                                                         {&delete_, "DELETE"}};
  for (const auto& [statement, privilege] : all) {
    const Result<void> prepared = statement->Prepare(deadline);
    if (prepared.ok()) continue;
    if (!IsDenied(connection_.failure().number)) return Refusal(prepared.error(), "");
    lacking.push_back("the user '" + settings_.user + "' may not " + privilege + " on " + table_ +
                      ", which only the admin API needs: " +
                      GrantStatement(connection_, privilege, table_, deadline));
  }
  return lacking;
}

Result<std::vector<UnreadableRow>> MysqlDriver::Unreadable(int most, Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  const auto rows = connection_.Select(
      "SELECT CONVERT(biz_tag USING utf8mb4), max_id, step FROM " + table_ +
          " WHERE max_id IS NULL OR step IS NULL ORDER BY biz_tag LIMIT " + std::to_string(most),
      static_cast<std::size_t>(most), deadline);
  if (!rows.ok()) return Refusal(rows.error(), "");
  std::vector<UnreadableRow> found;
  for (const MysqlConnection::Cells& row : *rows) {
    found.push_back({row[0].value_or(""), row[1].has_value(), row[2].has_value(),
                     refusal::HasNull(row[0].value_or(""), !row[1])});
  }
  return found;
}

}  // namespace

Result<DriverFactory> MakeMysqlFactory(const StoreOptions& options) {
  LEAF_ASSIGN_OR_RETURN(MysqlSettings settings, ParseMysqlSettings(options));
  return DriverFactory(
      [settings = std::move(settings)] { return std::make_unique<MysqlDriver>(settings); });
}

}  // namespace leaf
