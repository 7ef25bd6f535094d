// Pictures of tags and sums over them.

#include <algorithm>

#include "core/segment/engine_impl.h"

namespace leaf {

TagView Engine::Impl::ViewOf(const Tag& tag) const {
  TagView view;
  view.name = tag.name();
  view.state = tag.regressed ? TagState::kRegressed
               : tag.absent  ? TagState::kAbsent
               : tag.use     ? TagState::kActive
                             : TagState::kIdle;
  view.max_id = tag.row_max;
  view.step = tag.row_step;
  view.mark = tag.mark;
  if (!tag.use) return view;

  const TagUse& use = *tag.use;
  if (const Segment<>* current = tag.current.load(std::memory_order_relaxed)) {
    const Range left = current->left();
    if (!left.empty()) view.segments.push_back({current->bounds(), left.first});
  }
  for (const Range& range : use.reserve) view.segments.push_back({range, range.first});
  for (const TagView::Piece& piece : view.segments) {
    view.remaining += piece.range.last - piece.next;
  }
  view.lease = use.last_lease_count;
  view.parked = use.waiters.size();
  view.refills = use.refills;
  view.refill_failures = use.refill_failures;
  view.waits = use.waits;
  view.last_error = use.last_error;
  // Nobody counts on the hot path: what was leased, is not held and was not discarded, was issued.
  auto issued = static_cast<std::uint64_t>(use.leased - view.remaining);
  for (int i = 0; i < kDiscardCount; ++i) {
    view.discarded[i] = use.discarded[i];
    if (i != static_cast<int>(Discard::kAbandoned)) issued -= use.discarded[i];
  }
  view.issued = issued;
  return view;
}

std::optional<TagView> Engine::Impl::View(std::string_view name) const {
  const Tag* tag = tags_.Find(name);
  if (tag == nullptr) return std::nullopt;
  MutexLock lock(LockOf(*tag));
  if (tag->absent && !tag->regressed) return std::nullopt;
  return ViewOf(*tag);
}

void Engine::Impl::Visit(const std::function<void(const TagView&)>& visit) const {
  tags_.ForEach([this, &visit](const Tag& tag) {
    std::optional<TagView> view;
    {
      MutexLock lock(LockOf(tag));
      if (tag.absent && !tag.regressed) return;
      view = ViewOf(tag);
    }
    visit(*view);
  });
}

Engine::Totals Engine::Impl::Sum() const {
  Totals totals;
  totals.known = known_.load(std::memory_order_relaxed);
  totals.regressed = regressed_.load(std::memory_order_relaxed);
  totals.parked = room_.parked();
  totals.flights = flights_.under_way();
  totals.store_changes = store_changes_.load(std::memory_order_relaxed);
  totals.stale_grants = stale_grants_.load(std::memory_order_relaxed);
  totals.lookups = lookups_.started();
  totals.lookups_refused = lookups_.refused();
  totals.list_complete = list_.complete();
  totals.list_error = list_.last_error();
  for (const Tag* tag : tags_.InUse()) {
    MutexLock lock(LockOf(*tag));
    if (tag->absent) continue;
    ++totals.active;
    totals.holds_ids = totals.holds_ids || Left(*tag) > 0;
  }
  return totals;
}

}  // namespace leaf
