#include "core/segment/lineage.h"

#include <algorithm>

namespace leaf {
namespace {

// 32 bits of the hash: one change in four thousand million would go unnoticed over a restart.
std::uint32_t NameFrom(std::uint64_t store_id) {
  const auto name = static_cast<std::uint32_t>(store_id ^ (store_id >> 32));
  return name == 0 ? 1 : name;
}

}  // namespace

void Lineage::Remember(std::uint32_t generation, std::uint32_t name) {
  MutexLock lock(mu_);
  const std::uint32_t latest = current();
  if (generation > latest) {
    current_.store(generation, std::memory_order_release);
    name_ = name;
  } else if (generation == latest && name != name_) {
    name_ = 0;  // no store's: whichever answers has taken over
  }
}

Lineage::Heard Lineage::Hear(std::uint64_t store_id, std::uint32_t turn) {
  MutexLock lock(mu_);
  const std::uint32_t name = NameFrom(store_id);
  const std::uint32_t latest = current();
  if (heard_ && turn < turn_) return {};
  // Of a process that has seen one store only, what the journal knows decides.
  const bool same =
      heard_ ? turn == turn_ && store_id == store_id_ : turn == 0 && (latest == 0 || name == name_);
  if (!same && latest >= kMost) return {};  // years of a change each second: serve no more
  heard_ = true;
  store_id_ = store_id;
  turn_ = turn;
  name_ = name;
  const std::uint32_t generation = std::max(latest, 1U) + (same ? 0 : 1);
  current_.store(generation, std::memory_order_release);
  return {same ? Word::kSame : Word::kAnother, generation};
}

std::uint64_t Lineage::store_id() const {
  MutexLock lock(mu_);
  return store_id_;
}

std::uint32_t Lineage::NameOf(std::uint32_t generation) const {
  MutexLock lock(mu_);
  return generation == current() ? name_ : 0;
}

}  // namespace leaf
