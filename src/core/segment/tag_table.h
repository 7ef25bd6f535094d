#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "core/segment/directory.h"
#include "core/segment/tag.h"

namespace leaf {

/// Owns the tags. Thread-safe; Find takes no lock.
///
/// Tags share a few locks, because a mutex in each would be a third of an idle tag. So a thread
/// never holds the locks of two tags at once.
class TagTable {
 public:
  TagTable() = default;
  TagTable(const TagTable&) = delete;
  TagTable& operator=(const TagTable&) = delete;
  ~TagTable();

  Tag* Find(std::string_view name) const noexcept;
  Tag& FindOrAdd(std::string_view name);

  Mutex& LockOf(const Tag& tag) const noexcept { return locks_[tag.hash() % kLocks].mutex; }

  /// Visits each tag that is in when the call begins. No lock is held.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    directory_.ForEach(visit);
  }

  /// Gives the tag its use. REQUIRES: the tag's lock; it has none.
  TagUse& BeginUse(Tag& tag);
  /// The tags that have a use. They never lose it.
  std::vector<Tag*> InUse() const;

 private:
  struct alignas(64) PaddedMutex {
    Mutex mutex;
  };
  static constexpr std::size_t kLocks = 64;

  mutable std::array<PaddedMutex, kLocks> locks_;
  Directory<Tag> directory_;
  Mutex write_mu_;  ///< one writer of the directory at a time
  mutable Mutex in_use_mu_;
  std::vector<Tag*> in_use_ GUARDED_BY(in_use_mu_);
};

}  // namespace leaf
