// When another store has taken over: a failover, a restore, another address.
//
// What the former store acknowledged last may be missing there: ours, which the marks would tell,
// and that of other servers, which nothing tells. So no lease of a tag counts there before its row
// was raised, once, by more than what may be missing (store.failover_skip). A tag is moved over by
// asking the new store for an id: if that lies below our mark the row went back and the tag stops,
// as always; otherwise the id is thrown away and the row is raised.

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "core/segment/checked.h"
#include "core/segment/engine_impl.h"

namespace leaf {

bool Engine::Impl::HasToMove(const Tag& tag, std::uint32_t generation) {
  return generation > 1 && tag.generation != generation;
}

bool Engine::Impl::HasToMove(const Tag& tag) const { return HasToMove(tag, lineage_.current()); }

// Not only tags that are due: until a row is raised, a server that knows nothing of what was lost
// could lease it anew.
void Engine::Impl::MoveAll() {
  log::Warn(
      "another store has taken over: the row of each tag is raised by store.failover_skip before "
      "its next lease counts",
      {{"generation", static_cast<std::int64_t>(lineage_.current())}});
  for (Tag* tag : tags_.InUse()) {
    After after;
    {
      MutexLock lock(LockOf(*tag));
      if (!HasToMove(*tag)) continue;
      tag->use->moving = true;
      Want(*tag, after);
    }
    if (after.wake) agenda_.Wake();
  }
  Send();
}

void Engine::Impl::MoveOver(Tag& tag, Range granted, std::uint32_t generation, After& after) {
  TagUse& use = *tag.use;
  Burn(use, granted.size(), Discard::kFailover);
  use.moving = true;
  use.moving_to = generation;
  use.largest = std::max(use.largest, LeasedByOthers(tag, granted));
  use.phase = Phase::kRaising;
  after.raise = true;
}

void Engine::Impl::Moved(Tag& tag, const Result<std::int64_t>& max_id, After& after) {
  TagUse& use = *tag.use;
  if (!max_id.ok()) {
    if (max_id.error().code == Code::kNotFound) {
      use.moving = false;
      use.moving_to = 0;
      return MarkAbsent(tag, after);
    }
    RetryLater(tag, max_id.error().message, clock_.Now(), after);
    after.warning =
        "could not raise the row of tag \"" + std::string(tag.name()) +
        "\" after another store had taken over; trying again: " + max_id.error().message;
    return;
  }
  use.moving = use.leased_here = false;
  use.failures = 0;
  tag.generation = std::exchange(use.moving_to, 0U) & Lineage::kMost;
  tag.row_max = *max_id;
  tag.seen = std::max(tag.seen, *max_id);
  Record(tag);
  if (use.wanted || !use.waiters.empty()) Want(tag, after);
}

// A crash must not forget that there was a store in between: where the one before it comes back, it
// lacks what was leased meanwhile. So a record of each generation is on disk before its first
// lease.
void Engine::Impl::KeepGeneration(Tag& tag) {
  std::uint32_t generation = 0;
  {
    MutexLock lock(LockOf(tag));
    generation = tag.use->moving_to;
    if (tag.use->phase != Phase::kRaising || generation <= kept_.load()) return;
    tag.generation = generation & Lineage::kMost;
    Record(tag);
  }
  (void)journal_.Sync();  // a disk that is full is in the log, and keeps nobody from serving
  kept_.store(generation);
}

}  // namespace leaf
