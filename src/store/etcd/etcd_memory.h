#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "store/etcd/etcd_value.h"

namespace leaf {

/// A key as it was last seen.
struct EtcdKnown {
  std::int64_t revision = 0;  ///< mod_revision
  EtcdValue value;
};

/// What the sessions of one process remember of the rows, so that a reservation takes one trip. To
/// be wrong costs a second trip and nothing else. Bounded. Thread-safe.
class EtcdMemory {
 public:
  /// A session told the cluster's revision.
  void Saw(std::int64_t revision);
  std::int64_t latest() const;
  /// A session found this cluster at `revision`; `known` is what latest() was before it asked. How
  /// often the cluster has lost a part of its history: then it was restored from a backup, which
  /// keeps its id, and lacks what was acknowledged since. Reads and writes that are linearizable
  /// tell no revision below one that was told before they were asked. Forgets everything if it came
  /// from another cluster or history.
  int Belongs(std::uint64_t cluster_id, std::int64_t known, std::int64_t revision);
  std::optional<EtcdKnown> Find(std::string_view tag) const;
  void Keep(std::string_view tag, const EtcdKnown& known);
  void Drop(std::string_view tag);

 private:
  static constexpr std::size_t kMost = 1 << 20;

  mutable Mutex mu_;
  std::uint64_t cluster_id_ GUARDED_BY(mu_) = 0;
  std::int64_t latest_ GUARDED_BY(mu_) = 0;
  int losses_ GUARDED_BY(mu_) = 0;
  std::map<std::string, EtcdKnown, std::less<>> rows_ GUARDED_BY(mu_);
};

}  // namespace leaf
