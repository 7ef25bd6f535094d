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

std::uint32_t Lineage::Remember(std::uint32_t name, bool moved) {
  if (moved) moved_.store(true, std::memory_order_release);
  if (name == 0) return 0;
  MutexLock lock(mu_);
  const auto known = std::find(names_.begin(), names_.end(), name);
  if (known != names_.end()) return static_cast<std::uint32_t>(known - names_.begin()) + 1;
  names_.push_back(name);
  if (names_.size() > 1) moved_.store(true, std::memory_order_release);
  return static_cast<std::uint32_t>(names_.size());
}

Lineage::Word Lineage::Hear(std::uint64_t store_id, std::uint32_t turn) {
  MutexLock lock(mu_);
  const bool first = current() == 0;
  if (!first && turn < turn_) return Word::kStale;
  if (!first && turn == turn_ && store_id == store_id_) return Word::kSame;
  if (names_.size() >= kMost) return Word::kStale;  // years of a change each second: serve no more
  store_id_ = store_id;
  turn_ = turn;
  const std::uint32_t name = NameFrom(store_id);
  if (first && turn == 0) {
    // Of a process that has seen one store only, what the journal knows decides.
    const auto known = std::find(names_.begin(), names_.end(), name);
    if (known != names_.end() || names_.empty()) {
      if (names_.empty()) names_.push_back(name);
      const auto at = std::find(names_.begin(), names_.end(), name) - names_.begin();
      current_.store(static_cast<std::uint32_t>(at) + 1, std::memory_order_release);
      return Word::kSame;
    }
  }
  names_.push_back(name);
  moved_.store(true, std::memory_order_release);
  current_.store(static_cast<std::uint32_t>(names_.size()), std::memory_order_release);
  return Word::kAnother;
}

std::uint64_t Lineage::store_id() const {
  MutexLock lock(mu_);
  return store_id_;
}

std::uint32_t Lineage::NameOf(std::uint32_t generation) const {
  MutexLock lock(mu_);
  return generation == 0 || generation > names_.size() ? 0 : names_[generation - 1];
}

}  // namespace leaf
