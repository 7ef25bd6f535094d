#include "registry/row_registry.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace leaf {
namespace {

Error Lost(const WorkerRecord& record, const WorkerRight& right) {
  const std::string why =
      record.owner.empty() ? "it was retired" : "it is held by " + record.identity;
  return {Code::kConflict, "the right to worker " + std::to_string(right.worker) + " is lost: " +
                               why + " (generation " + std::to_string(record.generation) +
                               ", ours was " + std::to_string(right.generation) + ")"};
}

WorkerRight RightFrom(const ClaimPlan& plan, const ClaimAsk& ask,
                      std::optional<std::int64_t> registry_ms) {
  WorkerRight right;
  right.worker = plan.worker;
  right.generation = plan.generation;
  right.owner = ask.owner;
  right.floor_ms = plan.floor_ms;
  right.limit_ms = plan.limit_ms;
  right.registry_ms = registry_ms;
  right.free_workers = plan.free_workers;
  return right;
}

WorkerRow RowFrom(const ClaimPlan& plan, const ClaimAsk& ask) {
  WorkerRow row;
  row.record.worker = plan.worker;
  row.record.generation = plan.generation;
  row.record.owner = ask.owner;
  row.record.identity = ask.identity;
  row.record.limit_ms = plan.limit_ms;
  row.layout = ask.layout;
  return row;
}

bool IsNonce(const std::string& text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

Error RowRegistry::Late(const char* what) const {
  return {Code::kUnavailable, Where() + ": the deadline passed before " + what};
}

Result<WorkerRight> RowRegistry::Claim(const ClaimAsk& ask) {
  // Each round that fails means that another server got its worker.
  while (SystemClock().Now() < ask.deadline) {
    LEAF_ASSIGN_OR_RETURN(const std::optional<WorkerRight> right, TryClaim(ask));
    if (right) return *right;
  }
  return Late("a worker was won; others claim at the same time");
}

Result<std::optional<WorkerRight>> RowRegistry::TryClaim(const ClaimAsk& ask) {
  LEAF_ASSIGN_OR_RETURN(const Snapshot seen, Read(std::nullopt, ask.deadline));
  LEAF_ASSIGN_OR_RETURN(const ClaimPlan plan, PlanClaim(seen.rows, ask, seen.registry_ms));
  const std::optional<WorkerRight> right = RightFrom(plan, ask, seen.registry_ms);
  const WorkerRow row = RowFrom(plan, ask);
  bool won = false;
  if (plan.kind == ClaimPlan::Kind::kCreate) {
    LEAF_ASSIGN_OR_RETURN(won, Insert(row, ask.deadline));
  } else {
    const auto old = std::find_if(seen.rows.begin(), seen.rows.end(), [&](const WorkerRow& r) {
      return r.record.worker == plan.worker;
    });
    if (old == seen.rows.end()) return Error{Code::kInternal, "a plan for a row that is not there"};
    LEAF_ASSIGN_OR_RETURN(won, Replace(old->record, row, ask.deadline));
  }
  return won ? right : std::optional<WorkerRight>();
}

// Brings the limit of a right to what `limit_for` says of the present one; safe to repeat. A limit
// that is not the one that the right knows was written by a call whose answer was lost.
template <typename F>
Result<WorkerRight> RowRegistry::Move(const WorkerRight& right, Instant deadline, F limit_for) {
  while (SystemClock().Now() < deadline) {
    LEAF_ASSIGN_OR_RETURN(Snapshot seen, Read(right.worker, deadline));
    if (seen.rows.empty()) {
      return Error{Code::kConflict, "the right to worker " + std::to_string(right.worker) +
                                        " is lost: its row was removed from " + Where()};
    }
    WorkerRow& row = seen.rows.front();
    if (row.record.owner != right.owner || row.record.generation != right.generation)
      return Lost(row.record, right);
    WorkerRow to = row;
    to.record.limit_ms = limit_for(row.record.limit_ms, seen.registry_ms);
    if (to.record.limit_ms != row.record.limit_ms) {
      LEAF_ASSIGN_OR_RETURN(const bool done, Replace(row.record, to, deadline));
      if (!done) continue;
    }
    WorkerRight now = right;
    now.limit_ms = to.record.limit_ms;
    now.registry_ms = seen.registry_ms;
    return now;
  }
  return Late("the limit was written");
}

Result<WorkerRight> RowRegistry::Extend(const WorkerRight& right, std::int64_t limit_ms,
                                        std::int64_t lease_ms, Instant deadline) {
  return Move(right, deadline, [&](std::int64_t present, std::optional<std::int64_t> registry_ms) {
    std::int64_t limit = limit_ms;
    if (registry_ms) limit = std::min(limit, *registry_ms + lease_ms + kClockToleranceMs);
    if (limit > present) return limit;
    // What a lost call wrote may not be on the registry's copies: only a write of this call is.
    return present == right.limit_ms ? present : present + 1;
  });
}

Result<WorkerRight> RowRegistry::Lower(const WorkerRight& right, std::int64_t limit_ms,
                                       Instant deadline) {
  return Move(right, deadline, [&](std::int64_t present, std::optional<std::int64_t>) {
    return std::min(limit_ms, present);
  });
}

Result<std::vector<WorkerRecord>> RowRegistry::List(Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(Snapshot seen, Read(std::nullopt, deadline));
  std::vector<WorkerRecord> records;
  for (WorkerRow& row : seen.rows) records.push_back(std::move(row.record));
  return records;
}

Result<std::optional<std::int64_t>> RowRegistry::Now(Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const Snapshot seen, Read(0, deadline));
  return seen.registry_ms;
}

Result<WorkerRecord> RowRegistry::Retire(std::int64_t worker, Instant deadline) {
  while (SystemClock().Now() < deadline) {
    LEAF_ASSIGN_OR_RETURN(const Snapshot seen, Read(worker, deadline));
    if (worker < 0 || seen.rows.empty()) {
      return Error{Code::kNotFound,
                   "there is no worker " + std::to_string(worker) + " in " + Where()};
    }
    WorkerRow to = seen.rows.front();
    to.record.owner.clear();
    ++to.record.generation;
    LEAF_ASSIGN_OR_RETURN(const bool done, Replace(seen.rows.front().record, to, deadline));
    if (done) return seen.rows.front().record;
  }
  return Late("the worker was retired");
}

Result<void> CheckRow(const WorkerRecord& record, const std::string& where) {
  std::string what;
  if (record.worker < 0) what = "worker is negative";
  if (record.limit_ms < 0) what = "limit_ms is negative: " + std::to_string(record.limit_ms);
  if (record.generation < 0) what = "generation is negative: " + std::to_string(record.generation);
  if (record.generation == std::numeric_limits<std::int64_t>::max())
    what = "generation cannot rise any more";  // each owner raises it
  if (!record.owner.empty() && !IsNonce(record.owner))
    what = "owner is not 32 lower-case hexadecimal digits";
  if (what.empty()) return {};
  return Error{Code::kUnavailable,
               where + ": the row of worker " + std::to_string(record.worker) +
                   " is broken: " + what +
                   ". No worker is given until it is mended: set owner = '', "
                   "generation = 1 if that is what is broken, and limit_ms to a time, in ms since "
                   "1970, that its last owner certainly did not pass"};
}

bool ReadInteger(const std::optional<std::string>& cell, std::int64_t& number) {
  if (!cell) return false;
  const char* end = cell->data() + cell->size();
  const auto [at, failed] = std::from_chars(cell->data(), end, number);
  return failed == std::errc() && at == end;
}

Result<void> ReadRow(std::span<const std::optional<std::string>> cells, const std::string& where,
                     WorkerRow& row) {
  WorkerRecord& record = row.record;
  if (!ReadInteger(cells[0], record.worker)) record.worker = -1;
  if (!ReadInteger(cells[1], record.generation)) record.generation = -1;
  if (!ReadInteger(cells[4], record.limit_ms)) record.limit_ms = -1;
  record.owner = cells[2].value_or("?");
  IdentityParts parts = ParseIdentity(cells[3].value_or(""));
  record.identity = std::move(parts.identity);
  row.layout = std::move(parts.layout);
  return CheckRow(record, where);
}

}  // namespace leaf
