// What can be wrong with a row: it went back, it is gone, or its id space ends.

#include <algorithm>
#include <utility>

#include "core/segment/checked.h"
#include "core/segment/engine_impl.h"
#include "core/segment/errors.h"

namespace leaf {

// 16 of the largest leases. A process that has leased nothing yet of a tag that it has marks of
// does not know how large they were.
std::int64_t Engine::Impl::SkipOf(const Tag& tag) const {
  if (options_.failover_skip > 0) return options_.failover_skip;
  std::int64_t largest = std::max<std::int64_t>(tag.row_step, 1);
  if (tag.use) largest = std::max(largest, tag.use->largest);
  const bool forgotten = tag.mark > 0 && (!tag.use || tag.use->refills == 0);
  if (forgotten) largest = policy_.MostCount(largest);
  return MultiplyCapped(largest, 16);
}

// What lies between our last lease and this one, up to what one lease of theirs can be.
std::int64_t Engine::Impl::LeasedByOthers(const Tag& tag, Range granted) const {
  if (tag.mark == 0) return 0;
  const std::int64_t most = policy_.MostCount(std::max<std::int64_t>(tag.row_step, 1));
  return std::min(granted.first - tag.mark, most);
}

void Engine::Impl::WentBack(Tag& tag, Range granted, After& after) {
  TagUse& use = *tag.use;
  Burn(use, granted.size(), Discard::kRegressed);
  DiscardHeld(tag, Discard::kRegressed);
  ++use.refill_failures;
  use.wanted = false;
  use.last_error = "the store granted [" + std::to_string(granted.first) + ", " +
                   std::to_string(granted.last) + "), but ids up to " +
                   std::to_string(tag.mark - 1) +
                   " were leased before; the grant is not used and the row is raised above every "
                   "id seen here";
  tag.regressed = true;
  tag.raised = false;
  regressed_.fetch_add(1, std::memory_order_relaxed);
  Record(tag);
  const Error error = Stopped(tag);
  EndWaiters(tag, error, after);
  use.phase = Phase::kRaising;
  after.raise = true;
  after.warning = error.message;
}

Error Engine::Impl::Stopped(const Tag& tag) const {
  return RowWentBack(tag.name(), options_.admin_url,
                     tag.use ? std::string_view(tag.use->last_error) : std::string_view());
}

void Engine::Impl::StartRaise(Tag& tag) {
  std::int64_t not_below = 0, add = 0;
  {
    MutexLock lock(LockOf(tag));
    not_below = std::max(tag.mark, tag.seen);
    if (tag.regressed) {
      // The skip is part of the bound and nothing is added, so that a call that happened twice does
      // no more than one.
      not_below = AddCapped(not_below, SkipOf(tag));
    } else {
      add = SkipOf(tag);  // above whatever other servers have made of the row
    }
  }
  const Instant deadline = clock_.Now() + options_.store_timeout;
  store_.Raise(std::string(tag.name()), not_below, add, deadline,
               calls_.Bound<std::int64_t>(
                   deadline, [this, &tag](Result<std::int64_t> max_id) { Raised(tag, max_id); }));
}

void Engine::Impl::Raised(Tag& tag, const Result<std::int64_t>& max_id) {
  if (max_id.ok()) KeepGeneration(tag);
  After after;
  {
    MutexLock lock(LockOf(tag));
    TagUse& use = *tag.use;
    if (use.phase != Phase::kRaising) return;
    use.phase = Phase::kRest;
    if (!tag.regressed) {
      Moved(tag, max_id, after);
    } else if (max_id.ok()) {
      tag.raised = true;
      tag.row_max = *max_id;
      tag.seen = std::max(tag.seen, *max_id);
      use.failures = 0;
      Record(tag);
    } else if (max_id.error().code == Code::kNotFound) {
      tag.raised = true;  // there is nothing that could be raised
    } else {
      const std::string why_stopped = std::move(use.last_error);
      RetryLater(tag, "", clock_.Now(), after);
      use.last_error = why_stopped;
      after.warning = "could not raise the row of tag \"" + std::string(tag.name()) +
                      "\", which went back; trying again: " + max_id.error().message;
    }
    Schedule(tag, after);
  }
  Run(&tag, after);
}

void Engine::Impl::StartProbe(Tag& tag) {
  const Instant deadline = clock_.Now() + options_.store_timeout;
  store_.Find(std::string(tag.name()), deadline,
              calls_.Bound<std::optional<Row>>(
                  deadline, [this, &tag](Result<std::optional<Row>> row) { Probed(tag, row); }));
}

void Engine::Impl::Probed(Tag& tag, const Result<std::optional<Row>>& row) {
  After after;
  {
    MutexLock lock(LockOf(tag));
    TagUse& use = *tag.use;
    if (use.phase != Phase::kProbing) return;
    use.phase = Phase::kRest;
    if (!row.ok()) {
      ++use.refill_failures;
      RetryLater(tag, row.error().message, clock_.Now(), after);
    } else if (!row->has_value()) {
      MarkAbsent(tag, after);
    } else if ((*row)->max_id >= kMaxEnd) {
      tag.row_max = (*row)->max_id;
      tag.exhausted = true;
      use.wanted = false;
      EndWaiters(tag, SpaceExhausted(tag.name()), after);
    } else {
      tag.row_max = (*row)->max_id;
      use.end_limit = kMaxEnd - std::max<std::int64_t>((*row)->max_id, 0);
      use.wanted = true;
      Want(tag, after);
    }
    Schedule(tag, after);
  }
  Run(&tag, after);
}

void Engine::Impl::MarkAbsent(Tag& tag, After& after) {
  if (tag.absent) return;
  tag.absent = true;
  tag.exhausted = false;
  known_.fetch_sub(1, std::memory_order_relaxed);
  if (!tag.use) return;
  GiveUpFlight(tag, after);
  DiscardHeld(tag, Discard::kDeleted);
  EndWaiters(tag, NoSuchTag(tag.name()), after);
}

}  // namespace leaf
