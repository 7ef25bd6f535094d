#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/time.h"

namespace leaf {

/// Names that the table was seen not to have, for a while. Thread-compatible.
class NegativeCache {
 public:
  explicit NegativeCache(Duration ttl) : ttl_(ttl) {}

  bool Has(const std::string& name, Instant now) const {
    const auto it = until_.find(name);
    return it != until_.end() && it->second > now;
  }
  void Add(const std::string& name, Instant now) {
    until_[name] = now + ttl_;
    order_.emplace_back(now + ttl_, name);
  }
  void Erase(const std::string& name) { until_.erase(name); }
  /// Forgets what has passed.
  void Trim(Instant now) {
    for (; !order_.empty() && order_.front().first <= now; order_.pop_front()) {
      const auto it = until_.find(order_.front().second);
      if (it != until_.end() && it->second <= now) until_.erase(it);
    }
  }
  /// Entries that take room.
  std::size_t size() const noexcept { return order_.size(); }

 private:
  const Duration ttl_;
  std::unordered_map<std::string, Instant> until_;
  std::deque<std::pair<Instant, std::string>> order_;  ///< of passing, as all live equally long
};

}  // namespace leaf
