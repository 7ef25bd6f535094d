#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/mutex.h"

namespace leaf {

/// Which stores the leases of this server came from, in their order. A store takes over from
/// another one at a failover, at a restore and when the configuration is pointed elsewhere; it may
/// lack what the former one had acknowledged. Stores are told apart by Grant::store_id, and, if one
/// comes back after another, by Grant::store_turn. Each has a generation, 1 or above, below 2^24;
/// 0 means that nothing is known. Thread-safe.
class Lineage {
 public:
  static constexpr std::uint32_t kMost = (1U << 24) - 1;

  /// At start: the generation of a store that the journal names (0: none), by the name that NameOf
  /// gave. `moved`: the lease was made after a store had taken over.
  std::uint32_t Remember(std::uint32_t name, bool moved);

  enum class Word : std::uint8_t {
    kSame,     ///< the store of before, or the first one ever
    kAnother,  ///< a store that took over
    kStale,    ///< one that another took over from meanwhile
  };
  /// A grant came.
  Word Hear(std::uint64_t store_id, std::uint32_t turn);

  /// Of the store that grants now; 0 before the first grant.
  std::uint32_t current() const noexcept { return current_.load(std::memory_order_acquire); }
  std::uint64_t store_id() const;
  /// Whether a store has ever taken over: then a lease counts only if it came from `current`, or
  /// the row was raised there.
  bool moved() const noexcept { return moved_.load(std::memory_order_acquire); }
  /// For the journal.
  std::uint32_t NameOf(std::uint32_t generation) const;

 private:
  mutable Mutex mu_;
  std::vector<std::uint32_t> names_ GUARDED_BY(mu_);  ///< by generation - 1
  std::uint64_t store_id_ GUARDED_BY(mu_) = 0;
  std::uint32_t turn_ GUARDED_BY(mu_) = 0;
  std::atomic<std::uint32_t> current_{0};
  std::atomic<bool> moved_{false};
};

}  // namespace leaf
