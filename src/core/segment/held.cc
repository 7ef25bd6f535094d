// The ids a tag holds: the current segment, which all threads take from, and the reserve behind it.
//
// Ids leave in ascending order. An id beyond the current segment leaves only after that segment was
// closed or seen exhausted, under the tag's lock; from then on nobody can take from it any more.

#include <algorithm>

#include "base/assert.h"
#include "core/segment/checked.h"
#include "core/segment/cut.h"
#include "core/segment/engine_impl.h"

namespace leaf {

void Engine::Impl::Retire(Segment<>* segment) {
  MutexLock lock(qsbr_mu_);
  qsbr_.Retire(segment, [](void* object) { delete static_cast<Segment<>*>(object); });
  // Tick collects too; tags with small steps can be quicker than it.
  if (qsbr_.waiting() % 256 == 0) qsbr_.Collect();
}

std::int64_t Engine::Impl::Left(const Tag& tag) const {
  const Segment<>* current = tag.current.load(std::memory_order_relaxed);
  const std::int64_t left = current != nullptr ? current->left().size() : 0;
  return tag.use ? AddCapped(left, CountIds(tag.use->reserve)) : left;
}

void Engine::Impl::Gather(Tag& tag) {
  Segment<>* current = tag.current.load(std::memory_order_relaxed);
  if (current == nullptr) return;
  const Range tail = current->Close();
  if (tail.first > current->bounds().first) tag.use->issued_to = tail.first;
  std::vector<Range>& reserve = tag.use->reserve;
  if (!tail.empty()) {
    LEAF_ASSERT(reserve.empty() || tail.last <= reserve.front().first);
    reserve.insert(reserve.begin(), tail);
  }
  tag.current.store(nullptr, std::memory_order_release);
  Retire(current);
}

void Engine::Impl::Publish(Tag& tag) {
  std::vector<Range>& reserve = tag.use->reserve;
  if (reserve.empty() || closing()) return;
  LEAF_ASSERT(tag.current.load(std::memory_order_relaxed) == nullptr);
  const Range front = reserve.front();
  reserve.erase(reserve.begin());
  tag.current.store(new Segment<>(front), std::memory_order_release);
}

bool Engine::Impl::Serve(Tag& tag, const Waiter& waiter, Ranges& out) {
  if (Segment<>* current = tag.current.load(std::memory_order_relaxed)) {
    const Range range = current->Take(waiter.count, true);
    if (!range.empty()) {
      out = Ranges{};
      out.at[0] = range;
      out.size = 1;
      return true;
    }
  }
  if (Left(tag) < waiter.count) return false;
  TagUse& use = *tag.use;
  std::int64_t skipped = 0;
  Gather(tag);
  const bool served = Cut(use.reserve, waiter.count, waiter.one_piece, out, skipped);
  if (served) use.issued_to = out.at[static_cast<std::size_t>(out.size - 1)].last;
  use.discarded[static_cast<int>(Discard::kSkipped)] += static_cast<std::uint64_t>(skipped);
  Publish(tag);
  return served;
}

std::int64_t Engine::Impl::ServeWaiters(Tag& tag, After& after) {
  TagUse& use = *tag.use;
  const Segment<>* current = tag.current.load(std::memory_order_relaxed);
  if (use.waiters.empty() && current != nullptr && !current->left().empty()) return 0;
  std::int64_t end = 0;
  Gather(tag);
  for (Waiter* waiter = use.waiters.front(); waiter != nullptr;) {
    Waiter* next = WaiterQueue::next(*waiter);
    Ranges ids;
    std::int64_t skipped = 0;
    if (Cut(use.reserve, waiter->count, waiter->one_piece, ids, skipped)) {
      LEAF_ASSERT(ids.count() == waiter->count && ids.at[0].first >= end);
      end = use.issued_to = ids.at[static_cast<std::size_t>(ids.size - 1)].last;
      use.discarded[static_cast<int>(Discard::kSkipped)] += static_cast<std::uint64_t>(skipped);
      use.waiters.Remove(*waiter);
      after.Finish(*waiter, ids);
    }
    waiter = next;
  }
  Publish(tag);
  return end;
}

std::int64_t Engine::Impl::DiscardHeld(Tag& tag, Discard reason) {
  tag.refill_at.store(kMaxEnd, std::memory_order_relaxed);
  if (!tag.use) return 0;
  Gather(tag);
  TagUse& use = *tag.use;
  const std::int64_t count = CountIds(use.reserve);
  use.reserve.clear();
  use.discarded[static_cast<int>(reason)] += static_cast<std::uint64_t>(count);
  return count;
}

}  // namespace leaf
