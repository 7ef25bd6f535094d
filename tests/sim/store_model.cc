#include "store_model.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace leaf::sim {

std::string TagName(int tag) { return "t" + std::to_string(tag); }

int TagIndex(std::string_view name) {
  int tag = -1;
  if (name.size() < 2 || name.front() != 't') return -1;
  std::from_chars(name.data() + 1, name.data() + name.size(), tag);
  return tag;
}

StoreModel::StoreModel(World& world, Checker& checker, SimRandom random, StoreSetup setup, int tags)
    : world_(world),
      checker_(checker),
      random_(random),
      setup_(setup),
      per_tag_(static_cast<std::size_t>(tags)) {
  for (PerTag& tag : per_tag_) tag.absent_since = Instant{};
}

const StoreModel::TableRow* StoreModel::Find(const std::string& tag) const {
  const auto at = table_.find(tag);
  return at == table_.end() ? nullptr : &at->second;
}

void StoreModel::Write(TableRow& row, int server, std::int64_t max_id) {
  row.max_id = max_id;
  row.version = ++version_;
  row.writer = server;
}

std::optional<Range> StoreModel::Misbehave(int server, const std::string& tag, TableRow& row,
                                           std::int64_t count) {
  const Range next{row.max_id, row.max_id + count};
  const PerTag& state = At(TagIndex(tag));
  switch (setup_.mutant) {
    case Mutant::kNone:
    case Mutant::kRetryHandBack:
      return std::nullopt;
    case Mutant::kGrantTwice:
      if (state.last_granted_to == server || state.last_grant.size() != count) return std::nullopt;
      return random_.Chance(0.3) ? std::optional(state.last_grant) : std::nullopt;
    case Mutant::kGrantUnwritten:
      return random_.Chance(0.2) ? std::optional(next) : std::nullopt;
    case Mutant::kLostUpdate:
      world_.After(setup_.latency_min, kWorld, [this, tag, server, next] {
        const auto at = table_.find(tag);
        if (at != table_.end()) Write(at->second, server, next.last);
      });
      return next;
  }
  return std::nullopt;
}

Grant StoreModel::Reserve(int server, const std::string& tag, std::int64_t count) {
  Grant grant;
  grant.store_id = identity_;
  grant.outcome = Outcome::kRefused;
  const auto at = table_.find(tag);
  if (at == table_.end()) {
    grant.error = {Code::kNotFound, "no row " + tag};
    return grant;
  }
  TableRow& row = at->second;
  if (row.step <= 0) {
    grant.error = {Code::kUnavailable, "step of " + tag + " is not above 0"};
    return grant;
  }
  if (row.max_id > kMaxEnd - count) {
    grant.error = {Code::kExhausted, "the ids of " + tag + " end"};
    return grant;
  }
  grant.outcome = Outcome::kGranted;
  if (random_.Chance(0.5)) grant.row_step = row.step;
  if (const std::optional<Range> range = Misbehave(server, tag, row, count)) {
    grant.range = *range;
  } else {
    grant.range = {row.max_id, row.max_id + count};
    Write(row, server, grant.range.last);
  }
  At(TagIndex(tag)).last_grant = grant.range;
  At(TagIndex(tag)).last_granted_to = server;
  world_.Note(What::kExecute, server, TagIndex(tag), grant.range.first, grant.range.last);
  return grant;
}

Result<Row> StoreModel::Create(int server, const std::string& tag, std::int64_t step,
                               std::int64_t max_id) {
  if (table_.count(tag) != 0) return Error{Code::kConflict, tag + " exists"};
  TableRow& row = table_[tag];
  row.step = step;
  Write(row, server, max_id);
  Appear(TagIndex(tag), step);
  if (max_id < At(TagIndex(tag)).high_water) checker_.Regressed(TagIndex(tag));
  world_.Note(What::kCreate, server, TagIndex(tag), max_id, step);
  return Row{tag, max_id, step, ""};
}

Result<Row> StoreModel::SetStep(const std::string& tag, std::int64_t step) {
  const auto at = table_.find(tag);
  if (at == table_.end()) return Error{Code::kNotFound, "no row " + tag};
  if (step <= 0 || at->second.step <= 0) Fault(TagIndex(tag));
  at->second.step = step;
  At(TagIndex(tag)).largest_step = std::max(At(TagIndex(tag)).largest_step, step);
  world_.Note(What::kSetStep, kWorld, TagIndex(tag), step);
  return Row{tag, at->second.max_id, step, ""};
}

Result<Row> StoreModel::Delete(const std::string& tag) {
  const auto at = table_.find(tag);
  if (at == table_.end()) return Error{Code::kNotFound, "no row " + tag};
  const Row row{tag, at->second.max_id, at->second.step, ""};
  table_.erase(at);
  Vanish(TagIndex(tag), row.max_id);
  world_.Note(What::kDelete, kWorld, TagIndex(tag), row.max_id);
  return row;
}

Result<std::int64_t> StoreModel::Raise(int server, const std::string& tag, std::int64_t not_below,
                                       std::int64_t add) {
  const auto at = table_.find(tag);
  if (at == table_.end()) return Error{Code::kNotFound, "no row " + tag};
  const std::int64_t base = std::max(at->second.max_id, not_below);
  if (add < 0 || base > kMaxEnd - add) return Error{Code::kExhausted, "the ids of " + tag + " end"};
  Write(at->second, server, base + add);
  world_.Note(What::kRaise, server, TagIndex(tag), base + add);
  return base + add;
}

bool StoreModel::HandBack(int server, const std::string& tag, Range tail) {
  const auto at = table_.find(tag);
  const bool lowers = at != table_.end() && at->second.max_id == tail.last;
  if (lowers) {
    checker_.HandedBack(server, TagIndex(tag), tail);
    Write(at->second, server, tail.first);
    At(TagIndex(tag)).given_back = {server, tail, world_.now()};
  }
  world_.Note(lowers ? What::kHandedBack : What::kHandBack, server, TagIndex(tag), tail.first,
              tail.last);
  return lowers;
}

void StoreModel::Edit(int tag, std::int64_t max_id) {
  const auto at = table_.find(TagName(tag));
  if (at == table_.end()) return;
  if (max_id < at->second.max_id) checker_.Regressed(tag);
  world_.Note(max_id < at->second.max_id ? What::kMaxDown : What::kMaxUp, kWorld, tag, max_id,
              at->second.max_id);
  Write(at->second, kWorld, max_id);
}

void StoreModel::Restore(const Table& snapshot, bool declared) {
  for (int tag = 0; tag < static_cast<int>(per_tag_.size()); ++tag) {
    const bool now_there = table_.count(TagName(tag)) != 0;
    const bool then_there = snapshot.count(TagName(tag)) != 0;
    if (declared) checker_.Regressed(tag);
    if (now_there && !then_there) Vanish(tag, Find(TagName(tag))->max_id);
    if (!now_there && then_there) Appear(tag, snapshot.at(TagName(tag)).step);
  }
  table_ = snapshot;
  Fault(-1);
  if (random_.Chance(0.5)) BecomeAnother(false);
  world_.Note(What::kRestore, kWorld, -1, static_cast<std::int64_t>(snapshot.size()));
}

void StoreModel::BecomeAnother(bool known) {
  ++turn_;
  const std::uint64_t before = identity_;
  if (known) identity_ = random_.Below(identities_) + 1;
  if (identity_ == before) identity_ = ++identities_;
}

void StoreModel::TakeOver(const Table& replica, bool known) {
  for (auto& [name, row] : table_) {
    const auto copy = replica.find(name);
    if (copy == replica.end() || copy->second.max_id >= row.max_id) continue;
    checker_.Lost(TagIndex(name));
    row.max_id = copy->second.max_id;
    row.version = ++version_;
  }
  BecomeAnother(known);
  Fault(-1);
  world_.Note(What::kTakeOver, kWorld, -1, static_cast<std::int64_t>(identity_));
}

void StoreModel::EndOutage() {
  if (outage_ == Outage::kNone) return;
  outage_ = Outage::kNone;
  for (int tag = 0; tag < static_cast<int>(per_tag_.size()); ++tag) Fault(tag);
  world_.Note(What::kHealed, kWorld, -1);
}

void StoreModel::Lock(int tag, Instant until) {
  At(tag).locked_until = until;
  At(tag).last_fault = std::max(At(tag).last_fault, until);
  world_.Note(What::kLock, kWorld, tag, until.time_since_epoch().count());
}

void StoreModel::EndFaults() {
  EndOutage();
  setup_.faults = 0;
  setup_.inline_refusals = false;
  for (PerTag& tag : per_tag_) tag.locked_until = std::min(tag.locked_until, world_.now());
}

Instant StoreModel::HealthySince(int tag) const {
  if (outage_ != Outage::kNone) return world_.now();
  const TableRow* row = Find(TagName(tag));
  if (row != nullptr && row->step <= 0) return world_.now();
  return std::min(At(tag).last_fault, world_.now());
}

void StoreModel::Fault(int tag) {
  if (tag < 0) {
    for (PerTag& each : per_tag_) each.last_fault = std::max(each.last_fault, world_.now());
    return;
  }
  At(tag).last_fault = std::max(At(tag).last_fault, world_.now());
}

void StoreModel::Appear(int tag, std::int64_t step) {
  At(tag).largest_step = std::max(At(tag).largest_step, step);
  Fault(tag);
  At(tag).absent_since = kNever;
  At(tag).last_absent = world_.now();
}

void StoreModel::Vanish(int tag, std::int64_t max_id) {
  Fault(tag);
  At(tag).absent_since = world_.now();
  At(tag).high_water = std::max(At(tag).high_water, max_id);
}

}  // namespace leaf::sim
