#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"

namespace leaf {

/// Which stores the leases of this server came from, in their order. A store takes over from
/// another one at a failover, at a restore and when the configuration is pointed elsewhere; it may
/// lack what the former one had acknowledged. Stores are told apart by Grant::store_id, and, if one
/// comes back after another, by Grant::store_turn. Each that takes over is a generation of its own,
/// counted from 1 to below 2^24, also over restarts: the journal keeps the generation of each mark,
/// and the name of the store with those of the latest. Thread-safe.
class Lineage {
 public:
  static constexpr std::uint32_t kMost = (1U << 24) - 1;

  /// At start, of each mark in the journal: its generation (0: none is known) and the store's name,
  /// as NameOf gave it.
  void Remember(std::uint32_t generation, std::uint32_t name);

  enum class Word : std::uint8_t {
    kSame,     ///< the store of before, or the first one ever
    kAnother,  ///< a store that took over
    kStale,    ///< one that another took over from meanwhile: its grant does not count
  };
  struct Heard {
    Word word = Word::kStale;
    std::uint32_t generation = 0;  ///< of the store that granted; 0 if stale
  };
  /// A grant came.
  Heard Hear(std::uint64_t store_id, std::uint32_t turn);

  /// The latest generation; 0 before the first grant ever. Where it is above 1, a lease counts only
  /// if it came from that generation, or the row was raised there.
  std::uint32_t current() const noexcept { return current_.load(std::memory_order_acquire); }
  std::uint64_t store_id() const;
  /// For the journal; 0 of an earlier generation, which needs none: it is over.
  std::uint32_t NameOf(std::uint32_t generation) const;

 private:
  mutable Mutex mu_;
  bool heard_ GUARDED_BY(mu_) = false;      ///< a grant of this process
  std::uint32_t name_ GUARDED_BY(mu_) = 0;  ///< of the store of the latest generation
  std::uint64_t store_id_ GUARDED_BY(mu_) = 0;
  std::uint32_t turn_ GUARDED_BY(mu_) = 0;
  std::atomic<std::uint32_t> current_{0};
};

}  // namespace leaf
