#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"

namespace leaf {

class Tag;

/// When Tick has to run, and for which tags. A tag is entered again only for an earlier time than
/// before, and looks anew at what is due when its time has come; so it costs about one entry a
/// second however many requests and flights pass. Thread-safe; its lock is a leaf.
class Agenda {
 public:
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }

  /// True: the caller is to call Wake, after it has released its locks.
  [[nodiscard]] bool Add(Instant due, Tag& tag);
  /// Something other than a tag is due then. Wakes by itself, so no lock may be held.
  void Need(Instant due);
  void Wake() const {
    if (wake_) wake_();
  }

  /// Tick, in this order: Begin, Pop until nullptr, and last End, which returns the next time, no
  /// later than `due`.
  void Begin();
  Tag* Pop(Instant now);
  Instant End(Instant due);

 private:
  struct Entry {
    Instant due;
    std::uint64_t order;  ///< of arrival among equals, so that runs repeat exactly
    Tag* tag;
    bool operator>(const Entry& other) const noexcept {
      return due != other.due ? due > other.due : order > other.order;
    }
  };
  bool Promise(Instant due) REQUIRES_LOCK(mu_);

  std::function<void()> wake_;
  Mutex mu_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_ GUARDED_BY(mu_);
  std::uint64_t entered_ GUARDED_BY(mu_) = 0;
  Instant need_ GUARDED_BY(mu_) = kNever;
  Instant promised_ GUARDED_BY(mu_) = kNever;  ///< when Tick comes; min() while it runs
};

}  // namespace leaf
