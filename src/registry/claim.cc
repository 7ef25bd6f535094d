#include "registry/claim.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/iso_time.h"

namespace leaf {
namespace {

constexpr std::size_t kIdentityBytes = 255;

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

/// The rows of one registry as one asker sees them.
class Planner {
 public:
  Planner(const std::vector<WorkerRow>& rows, const ClaimAsk& ask,
          std::optional<std::int64_t> registry_ms)
      : ask_(ask),
        registry_ms_(registry_ms),
        now_ms_(registry_ms ? std::min(ask.now_ms, *registry_ms) : ask.now_ms) {
    for (const WorkerRow& row : rows) Sort(row);
    for (const std::int64_t worker : ask.excluded) Exclude(worker);
  }

  Result<ClaimPlan> Plan() {
    if (foreign_ != nullptr) return OtherLayout();
    const std::int64_t free = ask_.workers - held_;
    const std::int64_t lease = Lease(free);
    LEAF_ASSIGN_OR_RETURN(const std::int64_t limit, LimitWithin(ask_.now_ms, lease, registry_ms_));
    ClaimPlan plan;
    plan.limit_ms = limit;
    if (own_ != nullptr) {
      Adopt(lease, plan);
      plan.free_workers = free;  // its own row is one of the held
      return plan;
    }
    if (!Choose(plan)) return AllHeld();
    plan.free_workers = free - 1;
    return plan;
  }

 private:
  bool Excluded(std::int64_t worker) const {
    return std::find(ask_.excluded.begin(), ask_.excluded.end(), worker) != ask_.excluded.end();
  }

  void Sort(const WorkerRow& row) {
    const WorkerRecord& record = row.record;
    const bool alive = record.limit_ms > now_ms_;
    if (alive && !row.taken && !row.layout.empty() && row.layout != ask_.layout) foreign_ = &row;
    if (record.worker < 0 || record.worker >= ask_.workers) {
      ++outside_;
      return;
    }
    known_.insert(record.worker);
    if (!alive && !row.taken) {
      if (!Excluded(record.worker)) free_.push_back(&row);
      return;
    }
    ++held_;
    held_workers_.insert(record.worker);
    if (row.taken || Excluded(record.worker)) return;
    if (record.owner == ask_.owner) own_ = &row;
    if (first_ == nullptr || record.limit_ms < first_->record.limit_ms) first_ = &row;
  }

  void Exclude(std::int64_t worker) {
    if (worker < 0 || worker >= ask_.workers) return;
    if (held_workers_.insert(worker).second) ++held_;
  }

  std::int64_t Lease(std::int64_t free) const {
    // Workers are at most 2^20 and a lease some hours: no overflow.
    if (free * 4 >= ask_.workers) return ask_.lease_ms;
    return std::max({ask_.lease_ms * free * 4 / ask_.workers, ask_.lease_ms / 10, std::int64_t{1}});
  }

  // The claim whose answer was lost found a limit that was not above its time, and wrote at least
  // that time and the lease; so the old limit is not above the present one less the lease, also
  // where the clock went back since.
  void Adopt(std::int64_t lease, ClaimPlan& plan) const {
    plan.kind = ClaimPlan::Kind::kAdopt;
    plan.worker = own_->record.worker;
    plan.expected = own_->record.generation;
    plan.generation = plan.expected + 1;
    plan.limit_ms = own_->record.limit_ms;
    plan.floor_ms = std::max(now_ms_, plan.limit_ms - lease);
  }

  bool Choose(ClaimPlan& plan) const {
    const auto rank = [&](const WorkerRow* row) {
      const WorkerRecord& record = row->record;
      const int order = record.owner == ask_.owner ? 0 : record.identity == ask_.identity ? 1 : 2;
      return std::make_tuple(order, record.limit_ms, record.worker);
    };
    const auto best = std::min_element(free_.begin(), free_.end(),
                                       [&](auto* a, auto* b) { return rank(a) < rank(b); });
    if (best != free_.end()) {
      const WorkerRecord& record = (*best)->record;
      plan.kind = ClaimPlan::Kind::kTake;
      plan.worker = record.worker;
      plan.expected = record.generation;
      plan.generation = record.generation + 1;
      plan.floor_ms = record.limit_ms;
      return true;
    }
    for (std::int64_t worker = 0; worker < ask_.workers; ++worker) {
      if (known_.count(worker) != 0 || Excluded(worker)) continue;
      plan.kind = ClaimPlan::Kind::kCreate;
      plan.worker = worker;
      plan.generation = 1;
      return true;
    }
    return false;
  }

  Error OtherLayout() const {
    const WorkerRecord& record = foreign_->record;
    return Unavailable("worker " + std::to_string(record.worker) + " is held by " +
                       record.identity + " with layout " + foreign_->layout + ", this server has " +
                       ask_.layout +
                       ": ids of two layouts can be equal. Give the servers one layout, or this "
                       "one another snowflake.name; that worker is held until " +
                       IsoTime(record.limit_ms));
  }

  Error AllHeld() const {
    std::string text = "all " + std::to_string(ask_.workers) + " workers of the cluster are held";
    if (first_ != nullptr) {
      text += "; the first is free at " + IsoTime(first_->record.limit_ms) + " (worker " +
              std::to_string(first_->record.worker) + " of " + first_->record.identity +
              "), if it is not extended";
    }
    if (outside_ > 0) {
      text += "; " + std::to_string(outside_) +
              " rows name a worker that the layout does not hold and were not counted";
    }
    return Unavailable(text + ". Stop a server, wait, or choose a layout with more worker bits");
  }

  const ClaimAsk& ask_;
  const std::optional<std::int64_t> registry_ms_;
  const std::int64_t now_ms_;  // the earlier of both clocks
  std::vector<const WorkerRow*> free_;
  std::set<std::int64_t> known_, held_workers_;
  std::int64_t held_ = 0, outside_ = 0;
  const WorkerRow *own_ = nullptr, *first_ = nullptr, *foreign_ = nullptr;
};

}  // namespace

Result<ClaimPlan> PlanClaim(const std::vector<WorkerRow>& rows, const ClaimAsk& ask,
                            std::optional<std::int64_t> registry_ms) {
  return Planner(rows, ask, registry_ms).Plan();
}

std::string IdentityText(std::string_view identity, std::string_view layout) {
  const std::size_t tail = layout.empty() ? 0 : layout.size() + 1;
  std::size_t room = tail >= kIdentityBytes ? 0 : kIdentityBytes - tail;
  if (identity.size() > room) {
    // Not in the middle of a character.
    while (room > 0 && (static_cast<unsigned char>(identity[room]) & 0xc0) == 0x80) --room;
    identity = identity.substr(0, room);
  }
  std::string text(identity);
  if (!layout.empty()) text += " " + std::string(layout);
  return text;
}

IdentityParts ParseIdentity(std::string_view text) {
  const std::size_t blank = text.rfind(' ');
  if (blank == std::string_view::npos || text.find('@', blank) == std::string_view::npos) {
    return {std::string(text), ""};
  }
  return {std::string(text.substr(0, blank)), std::string(text.substr(blank + 1))};
}

}  // namespace leaf
