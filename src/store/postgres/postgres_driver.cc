#include "store/postgres/postgres_driver.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "base/utf8.h"
#include "store/postgres/postgres_connection.h"
#include "store/postgres/postgres_errors.h"
#include "store/postgres/postgres_probe.h"
#include "store/refusals.h"

namespace leaf {
namespace {

using Kind = PostgresOutcome::Kind;
using Cells = PostgresOutcome::Cells;

constexpr int kBatch = 32;
constexpr Duration kIdle = std::chrono::seconds(5);  // then a sign of life is asked for
constexpr Duration kPingMax = std::chrono::milliseconds(300);
constexpr Duration kLimitMin = std::chrono::milliseconds(1);
constexpr int kSerializationTries = 10;
// Names of what is prepared on a connection without a pooler.
constexpr const char *kPreamble = "leafd_preamble", *kReserve = "leafd_reserve",
                     *kStill = "leafd_still";

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

// A text of PostgreSQL ends at a NUL, so what follows one would be ignored and another row found.
bool CanBeName(std::string_view tag) {
  return IsUtf8(tag) && tag.find('\0') == std::string_view::npos;
}

// The table has lost its key since it was judged.
Error SeveralRows(std::string_view tag) {
  return Unavailable("tag '" + std::string(tag) + "' has several rows");
}

std::optional<std::int64_t> Number(const std::optional<std::string>& cell) {
  if (!cell) return std::nullopt;
  std::int64_t number = 0;
  const char* end = cell->data() + cell->size();
  const auto [at, failed] = std::from_chars(cell->data(), end, number);
  return failed == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

// A transaction under a stricter isolation level than READ COMMITTED, rolled back for a row that
// moved meanwhile.
bool IsSerialization(const PostgresOutcome& outcome) {
  return outcome.kind == Kind::kRefused &&
         (outcome.sqlstate == "40001" || outcome.sqlstate == "40P01");
}

Row ToRow(const Cells& cells) {
  return Row{cells[0].value_or(""), Number(cells[1]).value_or(0), Number(cells[2]).value_or(0),
             cells[3].value_or("")};
}

Instant Latest(std::span<const Ask> asks) {
  Instant latest = Instant::min();
  for (const Ask& ask : asks) latest = std::max(latest, ask.deadline);
  return latest;
}

class PostgresDriver final : public SegmentDriver {
 public:
  explicit PostgresDriver(PostgresSettings settings)
      : settings_(std::move(settings)),
        limit_max_(settings_.timeout / 10 * 9),
        connection_(clock_) {}

  Result<StoreInfo> Open(Instant deadline) override;
  bool connected() const noexcept override { return open_ && connection_.connected(); }
  void Close() noexcept override {
    open_ = false;
    connection_.Close();
  }
  int batch_limit() const noexcept override { return facts_.direct ? kBatch : 1; }
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
  void SetTexts();
  Result<void> Ready(Instant deadline);
  /// How long the server may work at what is to end by `deadline`; under kLimitMin: not at all.
  Duration Limit(Instant deadline) const {
    return std::min(limit_max_, (deadline - clock_.Now()) / 20 * 19);
  }

  /// Queues what can be reserved; false: grants[i] is settled.
  bool Queue(const Ask& ask, const Result<void>& ready, Duration limit, Grant& grant);
  void Settle(const PostgresOutcome& outcome, const Ask& ask, Grant& grant);
  void GrantFrom(const Cells& cells, const Ask& ask, Grant& grant);
  void WhyNoRow(const Ask& ask, Grant& grant);
  void ReserveAlone(const Ask& ask, Grant& grant);
  /// Whether a commit waits for a standby.
  bool Waits() const { return facts_.info.durability == Durability::kReplicated; }
  void Confirm(bool confirmed, std::span<const Ask> asks, std::span<Grant> grants);
  bool IsStill(const PostgresOutcome& outcome) const;

  Error Refusal(const PostgresOutcome& outcome, std::string_view tag);
  Result<std::vector<Cells>> Read(PostgresStatement statement, Instant deadline);
  /// A transaction that changes something; as a refusal without effect it may be tried again.
  Result<std::vector<Cells>> Change(PostgresStatement statement, std::string_view tag,
                                    Instant deadline);
  Result<Row> ChangedRow(PostgresStatement statement, std::string_view tag, Instant deadline);

  /// Comes back with the answer: a pooler or proxy that mixes answers up would make ids double.
  std::string Nonce(const Ask& ask) const { return key_ + ":" + std::to_string(ask.flight); }

  Clock& clock_ = SystemClock();
  const std::string key_ = std::to_string(SystemRandom().Next());
  const PostgresSettings settings_;
  const Duration limit_max_;  ///< on each statement, by the server; shorter than the call's

  PostgresConnection connection_;
  bool open_ = false;
  PostgresFacts facts_;
  Instant last_use_{};
  PostgresStatement still_;
  std::string row_;  ///< the columns of a Row
  std::string reserve_, find_, list_, create_, set_step_, delete_, raise_, hand_back_;
};

Result<StoreInfo> PostgresDriver::Open(Instant deadline) {
  Close();
  LEAF_RETURN_IF_ERROR(
      OpenPostgres(connection_, settings_, clock_, deadline, [this](Instant until) -> Result<void> {
        LEAF_ASSIGN_OR_RETURN(facts_, ProbePostgres(connection_, settings_, until));
        return {};
      }));
  SetTexts();
  if (facts_.direct) {
    for (const auto& [name, sql] :
         {std::pair(kPreamble, Preamble(limit_max_).sql), std::pair(kReserve, reserve_),
          std::pair(kStill, facts_.still)}) {
      if (const PostgresOutcome made = connection_.Prepare(name, sql, deadline); !made.done()) {
        Close();
        return made.error;
      }
    }
  }
  open_ = true;
  last_use_ = clock_.Now();
  return facts_.info;
}

void PostgresDriver::SetTexts() {
  // The index finds the row by the column's collation; "C" compares the bytes.
  const std::string by_name =
      " WHERE t.biz_tag = $1::text AND t.biz_tag::text COLLATE \"C\" = $1::text COLLATE \"C\"";
  const std::string& table = facts_.table;
  const std::string same = " AND " + FingerprintOf("pg_relation_filenode(t.tableoid)") + " = ";
  still_ = {facts_.still, {}, facts_.direct ? kStill : nullptr};
  const std::string touch = facts_.has_update_time ? ", update_time = now()" : "";
  row_ = std::string("t.biz_tag, t.max_id, t.step, ") +
         (facts_.has_update_time ? "to_char(t.update_time, 'YYYY-MM-DD HH24:MI:SS\".0\"')" : "''");
  reserve_ = "UPDATE ONLY " + table + " t SET max_id = t.max_id + $2::bigint" + touch + by_name +
             " AND t.step > 0 AND t.max_id BETWEEN 0 AND 9223372036854775807 - $2::bigint "
             "RETURNING t.max_id, t.step, current_setting('synchronous_commit'), " +
             FingerprintOf("pg_relation_filenode(t.tableoid)") + ", $3::text";
  find_ = "SELECT " + row_ + " FROM ONLY " + table + " t" + by_name;
  list_ = "SELECT " + row_ + " FROM ONLY " + table +
          " t WHERE t.biz_tag > $1::text ORDER BY t.biz_tag LIMIT $2::bigint";
  create_ = "INSERT INTO " + table +
            " AS t (biz_tag, max_id, step) VALUES ($1::text, $2::bigint, $3::bigint) RETURNING " +
            row_;
  set_step_ =
      "UPDATE ONLY " + table + " t SET step = $2::bigint" + touch + by_name + " RETURNING " + row_;
  delete_ = "DELETE FROM ONLY " + table + " t" + by_name + " RETURNING " + row_;
  raise_ = "UPDATE ONLY " + table + " t SET max_id = GREATEST(t.max_id, $2::bigint) + $3::bigint" +
           touch + by_name +
           " AND t.max_id IS NOT NULL AND GREATEST(t.max_id, $2::bigint) BETWEEN 0 AND "
           "9223372036854775807 - $3::bigint" +
           same + "$4::text RETURNING t.max_id";
  hand_back_ = "UPDATE ONLY " + table + " t SET max_id = $2::bigint" + touch + by_name +
               " AND t.max_id = $3::bigint" + same + "$4::text RETURNING 1";
}

// --- Before a statement. A failure here means that nothing was sent.

Result<void> PostgresDriver::Ready(Instant deadline) {
  if (!connected()) return Unavailable("not connected");
  const Instant now = clock_.Now();
  if (now >= deadline) return refusal::Late("postgres");
  if (connection_.Stale()) {
    Close();
    return Unavailable("the server had closed the idle connection");
  }
  if (now - last_use_ >= kIdle) {
    const PostgresOutcome alive = connection_.Run(PostgresStatement{"SELECT 1", {}},
                                                  now + std::min(kPingMax, (deadline - now) / 3));
    if (!alive.done()) {
      Close();
      return alive.error;
    }
  }
  last_use_ = clock_.Now();
  return {};
}

Error PostgresDriver::Refusal(const PostgresOutcome& outcome, std::string_view tag) {
  if (outcome.kind == Kind::kRefused && IsForeignCharacter(outcome.sqlstate))
    return refusal::NoRow(tag);
  if (outcome.kind == Kind::kRefused && IsDuplicateKey(outcome.sqlstate))
    return refusal::Exists(tag);
  if (!connection_.connected() || ConcernsStore(outcome.sqlstate)) Close();
  return outcome.error;
}

// --- Reserving.

void PostgresDriver::Reserve(std::span<const Ask> asks, std::span<Grant> grants) {
  LEAF_ASSERT(asks.size() == grants.size() && asks.size() <= kBatch);
  if (!facts_.direct) {
    // A pooler may give the server to somebody else as soon as one transaction has ended, though
    // some of the next has been sent, and the answer to that with it (pgbouncer's issue 759).
    for (std::size_t i = 0; i < asks.size(); ++i) ReserveAlone(asks[i], grants[i]);
    return Confirm(false, asks, grants);
  }
  const Instant now = clock_.Now();
  Instant first = kNever;
  for (const Ask& ask : asks) {
    if (ask.deadline > now) first = std::min(first, ask.deadline);
  }
  const Result<void> ready = Ready(first);
  // A locked row may hold the others back by its share only, so that all end in time.
  const Duration limit =
      Limit(first) / static_cast<std::int64_t>(std::max<std::size_t>(1, asks.size()));
  std::vector<bool> queued(asks.size(), false);
  for (std::size_t i = 0; i < asks.size(); ++i) queued[i] = Queue(asks[i], ready, limit, grants[i]);
  const bool asked = Waits() && connection_.Queue(std::span(&still_, 1));
  std::vector<std::size_t> again, absent;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (!queued[i]) continue;
    const PostgresOutcome outcome = connection_.Await(asks[i].deadline);
    if (IsSerialization(outcome)) {
      again.push_back(i);
    } else if (outcome.done() && outcome.rows.empty()) {
      absent.push_back(i);
    } else {
      Settle(outcome, asks[i], grants[i]);
    }
  }
  const bool confirmed = asked && IsStill(connection_.Await(Latest(asks)));
  // Other statements may be sent only when the pipeline is empty.
  for (const std::size_t i : absent) WhyNoRow(asks[i], grants[i]);
  for (const std::size_t i : again) ReserveAlone(asks[i], grants[i]);
  Confirm(confirmed && again.empty(), asks, grants);
}

// The server's settings are asked for once more, behind what may have waited for a standby.
void PostgresDriver::Confirm(bool confirmed, std::span<const Ask> asks, std::span<Grant> grants) {
  const auto granted = [](const Grant& grant) { return grant.outcome == Outcome::kGranted; };
  if (confirmed || !Waits() || std::none_of(grants.begin(), grants.end(), granted)) return;
  if (IsStill(connection_.Run(still_, Latest(asks)))) return;
  open_ = false;
  for (Grant& grant : grants) {
    if (!granted(grant)) continue;
    grant.outcome = Outcome::kUnknown;
    grant.error = Unavailable(
        "the server's settings were changed while it waited for a standby, which may lack what was "
        "reserved; it will be examined anew");
    grant.range = {};
    grant.row_step.reset();
  }
}

bool PostgresDriver::IsStill(const PostgresOutcome& outcome) const {
  return outcome.done() && outcome.rows.size() == 1 && outcome.rows[0][0] == facts_.fingerprint;
}

bool PostgresDriver::Queue(const Ask& ask, const Result<void>& ready, Duration limit,
                           Grant& grant) {
  LEAF_ASSERT(ask.count > 0);
  grant = Grant{};
  grant.flight = ask.flight;
  grant.outcome = Outcome::kRefused;
  if (!CanBeName(ask.tag)) {
    grant.error = refusal::NoRow(ask.tag);
  } else if (ask.deadline <= clock_.Now()) {
    grant.error = refusal::Late("postgres");
  } else if (!ready.ok()) {
    grant.error = ready.error();
  } else if (limit < kLimitMin) {
    grant.error = Unavailable("too little time was left to begin");
  } else {
    PostgresStatement statements[] = {
        Preamble(limit),
        {facts_.direct ? "" : reserve_,
         {std::string(ask.tag), std::to_string(ask.count), Nonce(ask)}}};
    if (facts_.direct) {
      statements[0].prepared = kPreamble;
      statements[1].prepared = kReserve;
    }
    if (connection_.Queue(statements)) return true;
    grant.error = Unavailable("the connection was lost before the statement was sent");
  }
  return false;
}

void PostgresDriver::Settle(const PostgresOutcome& outcome, const Ask& ask, Grant& grant) {
  if (outcome.done() && outcome.rows.size() == 1) return GrantFrom(outcome.rows[0], ask, grant);
  if (outcome.done()) {
    grant.outcome = Outcome::kUnknown;
    grant.error = SeveralRows(ask.tag);
    open_ = false;
    return;
  }
  grant.outcome = outcome.kind == Kind::kRefused ? Outcome::kRefused : Outcome::kUnknown;
  grant.error = Refusal(outcome, ask.tag);
  if (grant.outcome == Outcome::kUnknown) open_ = false;  // what follows in the pipeline is read
}

void PostgresDriver::GrantFrom(const Cells& cells, const Ask& ask, Grant& grant) {
  const auto end = Number(cells[0]), step = Number(cells[1]);
  grant.outcome = Outcome::kUnknown;
  if (!end || !step || *end < ask.count) {
    grant.error =
        Unavailable("the server's answer makes no sense: new end " + cells[0].value_or("NULL"));
  } else if (cells[2] != "on" && cells[2] != "remote_apply") {
    grant.error = Unavailable("synchronous_commit was " + cells[2].value_or("NULL") +
                              " and not on, though the statement set it");
  } else if (cells[4] != Nonce(ask)) {
    grant.error = Unavailable("the server's answer is the answer to another request");
    connection_.Close();
  } else if (cells[3] != facts_.fingerprint) {
    grant.error = Unavailable(
        "the server is another than before or has other settings; it will be examined anew");
  } else {
    grant.outcome = Outcome::kGranted;
    grant.range = {*end - ask.count, *end};
    grant.row_step = *step;
    return;
  }
  open_ = false;
}

// The statement met no row that fulfils all its conditions.
void PostgresDriver::WhyNoRow(const Ask& ask, Grant& grant) {
  if (!connection_.connected()) {
    grant.error = Unavailable("the row was not there or not fit, and the connection was lost");
    return;
  }
  const auto found = Read({find_, {std::string(ask.tag)}}, ask.deadline);
  if (!found.ok()) {
    grant.error = found.error();
  } else if (found->empty()) {
    grant.error = refusal::NoRow(ask.tag);
  } else if (const auto max_id = Number((*found)[0][1]), step = Number((*found)[0][2]);
             !max_id || !step) {
    grant.error = Unavailable(refusal::HasNull(ask.tag, !max_id));
  } else {
    grant.error = refusal::BadRow(ask.tag, *max_id, *step, ask.count)
                      .value_or(Unavailable("the row changed meanwhile"));
  }
}

void PostgresDriver::ReserveAlone(const Ask& ask, Grant& grant) {
  for (int i = 0; i < kSerializationTries; ++i) {
    if (!Queue(ask, Ready(ask.deadline), Limit(ask.deadline), grant)) return;
    const PostgresOutcome outcome = connection_.Await(ask.deadline);
    if (IsSerialization(outcome)) {
      grant.error = outcome.error;
      continue;
    }
    if (outcome.done() && outcome.rows.empty()) return WhyNoRow(ask, grant);
    return Settle(outcome, ask, grant);
  }
}

// --- The rest.

Result<std::vector<Cells>> PostgresDriver::Read(PostgresStatement statement, Instant deadline) {
  PostgresOutcome outcome = connection_.Run(std::move(statement), deadline);
  if (outcome.done()) return std::move(outcome.rows);
  return Refusal(outcome, "");
}

Result<std::optional<Row>> PostgresDriver::Find(std::string_view tag, Instant deadline) {
  if (!CanBeName(tag)) return std::optional<Row>();
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  const auto rows = Read({find_, {std::string(tag)}}, deadline);
  if (!rows.ok()) {
    if (rows.error().code == Code::kNotFound) return std::optional<Row>();
    return rows.error();
  }
  return rows->empty() ? std::optional<Row>() : std::optional(ToRow(rows->front()));
}

Result<std::vector<Row>> PostgresDriver::List(std::string_view after, int limit, Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  LEAF_ASSIGN_OR_RETURN(const auto found,
                        Read({list_, {std::string(after), std::to_string(limit)}}, deadline));
  std::vector<Row> rows;
  rows.reserve(found.size());
  for (const Cells& cells : found) rows.push_back(ToRow(cells));
  return rows;
}

Result<std::vector<Cells>> PostgresDriver::Change(PostgresStatement statement, std::string_view tag,
                                                  Instant deadline) {
  if (!CanBeName(tag)) return refusal::NoRow(tag);
  PostgresOutcome outcome;
  for (int i = 0; i < kSerializationTries; ++i) {
    LEAF_RETURN_IF_ERROR(Ready(deadline));
    const Duration limit = Limit(deadline);
    if (limit < kLimitMin) return Unavailable("too little time was left to begin");
    const PostgresStatement statements[] = {Preamble(limit), statement};
    outcome = connection_.Run(statements, deadline);
    if (!IsSerialization(outcome)) break;
  }
  if (outcome.done() && outcome.rows.size() > 1) {
    Close();
    return SeveralRows(tag);
  }
  if (outcome.done()) return std::move(outcome.rows);
  return Refusal(outcome, tag);
}

Result<Row> PostgresDriver::ChangedRow(PostgresStatement statement, std::string_view tag,
                                       Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const auto rows, Change(std::move(statement), tag, deadline));
  if (rows.empty()) return refusal::NoRow(tag);
  return ToRow(rows.front());
}

Result<Row> PostgresDriver::Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                                   Instant deadline) {
  const auto row = ChangedRow(
      {create_, {std::string(tag), std::to_string(max_id), std::to_string(step)}}, tag, deadline);
  if (!row.ok() && row.error().code == Code::kNotFound) {
    return Unavailable("the column biz_tag cannot hold the characters of '" + std::string(tag) +
                       "'");
  }
  return row;
}

Result<Row> PostgresDriver::SetStep(std::string_view tag, std::int64_t step, Instant deadline) {
  return ChangedRow({set_step_, {std::string(tag), std::to_string(step)}}, tag, deadline);
}

Result<Row> PostgresDriver::Delete(std::string_view tag, Instant deadline) {
  return ChangedRow({delete_, {std::string(tag)}}, tag, deadline);
}

Result<std::int64_t> PostgresDriver::Raise(std::string_view tag, std::int64_t not_below,
                                           std::int64_t add, Instant deadline) {
  LEAF_ASSERT(add >= 0);
  LEAF_ASSIGN_OR_RETURN(const auto rows, Change({raise_,
                                                 {std::string(tag), std::to_string(not_below),
                                                  std::to_string(add), facts_.fingerprint}},
                                                tag, deadline));
  if (!rows.empty()) {
    if (const auto max_id = Number(rows[0][0])) return *max_id;
    return Unavailable("the server's answer makes no sense");
  }
  LEAF_ASSIGN_OR_RETURN(const auto found, Read({find_, {std::string(tag)}}, deadline));
  if (found.empty()) return refusal::NoRow(tag);
  const auto max_id = Number(found[0][1]);
  if (!max_id) return Unavailable(refusal::HasNull(tag, true));
  const std::int64_t from = std::max(*max_id, not_below);
  if (from > kMaxEnd - add) return refusal::Exhausted(tag, from, add);
  open_ = false;
  return Unavailable("the row of '" + std::string(tag) +
                     "' changed meanwhile, or the server is another than before or has other "
                     "settings; it will be examined anew");
}

Result<bool> PostgresDriver::HandBack(std::string_view tag, Range tail, Instant deadline) {
  LEAF_ASSERT(tail.first < tail.last);
  const auto rows = Change({hand_back_,
                            {std::string(tag), std::to_string(tail.first),
                             std::to_string(tail.last), facts_.fingerprint}},
                           tag, deadline);
  if (rows.ok()) return !rows->empty();
  if (rows.error().code == Code::kNotFound) return false;
  return rows.error();
}

Result<std::vector<std::string>> PostgresDriver::LackingRights(Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  LEAF_ASSIGN_OR_RETURN(const auto rows,
                        Read({"SELECT p FROM unnest(ARRAY['INSERT', 'DELETE']) p WHERE NOT "
                              "has_table_privilege($1::text, p)",
                              {facts_.table}},
                             deadline));
  std::vector<std::string> lacking;
  for (const Cells& row : rows) {
    const std::string privilege = row[0].value_or("");
    lacking.push_back("the user '" + settings_.user + "' may not " + privilege + " on " +
                      facts_.table + ", which only the admin API needs: GRANT " + privilege +
                      " ON " + facts_.table + " TO " + QuotedName(settings_.user) + ";");
  }
  return lacking;
}

Result<std::vector<UnreadableRow>> PostgresDriver::Unreadable(int most, Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  LEAF_ASSIGN_OR_RETURN(const auto rows,
                        Read({"SELECT t.biz_tag, t.max_id, t.step FROM ONLY " + facts_.table +
                                  " t WHERE t.max_id IS NULL OR t.step IS NULL ORDER BY t.biz_tag "
                                  "LIMIT $1::bigint",
                              {std::to_string(most)}},
                             deadline));
  std::vector<UnreadableRow> found;
  for (const Cells& row : rows) {
    found.push_back({row[0].value_or(""), row[1].has_value(), row[2].has_value(),
                     refusal::HasNull(row[0].value_or(""), !row[1])});
  }
  return found;
}

}  // namespace

Result<DriverFactory> MakePostgresFactory(const StoreOptions& options) {
  LEAF_ASSIGN_OR_RETURN(PostgresSettings settings, ParsePostgresSettings(options));
  return DriverFactory(
      [settings = std::move(settings)] { return std::make_unique<PostgresDriver>(settings); });
}

}  // namespace leaf
