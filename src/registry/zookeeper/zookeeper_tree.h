#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "registry/zookeeper/zookeeper_memory.h"
#include "registry/zookeeper/zookeeper_nodes.h"
#include "registry/zookeeper/zookeeper_session.h"

namespace leaf {

/// Leaf's rule of life: a server that is up writes its node each 3 s. What is older than this has
/// stopped.
inline constexpr std::int64_t kLeafAliveMs = 10'000;

/// A node below `forever`.
struct LeafNode {
  std::string name;
  LeafName parts;
};
struct LeafChildren {
  std::vector<LeafNode> nodes;       ///< by counter
  std::vector<std::string> foreign;  ///< names of another shape
  std::int64_t next = 0;             ///< the number that ZooKeeper gives next
};

/// What both layouts do in one cluster's tree. Confined as the session is.
class ZkTree {
 public:
  ZkTree(const std::string& cluster, ZkSession& session, std::shared_ptr<ZkMemory> memory);

  ZkSession& session() noexcept { return session_; }
  ZkMemory& memory() noexcept { return *memory_; }
  const ZkPaths& paths() const noexcept { return paths_; }
  std::string LeafPath(const std::string& name) const { return paths_.forever + "/" + name; }

  /// Makes `path` and all above it where missing, without data, as Leaf does.
  Result<void> Ensure(const std::string& path, Instant deadline);
  /// ZooKeeper's own time. The parents of `forever` exist.
  Result<std::int64_t> Clock(Instant deadline);
  /// A bound from below for it, without a call if it was seen lately.
  Result<std::int64_t> RecentClock(Instant deadline);
  void SawClock(std::int64_t server_ms);

  Result<LeafChildren> ListLeaf(Instant deadline);
  /// Removes a node below `forever` whose time is over.
  Result<WorkerRecord> RetireLeaf(const LeafNode& node, Instant deadline);

 private:
  const ZkPaths paths_;
  const std::string clock_path_;
  ZkSession& session_;
  const std::shared_ptr<ZkMemory> memory_;
};

}  // namespace leaf
