#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/snowflake/worker_registry.h"
#include "registry/zookeeper/zookeeper_tree.h"

namespace leaf {

/// Leaf's layout: one node a server below `forever`, bound to its identity, whose counter is the
/// worker. Beside servers in Java, which know no limits: they report each 3 s the time at which
/// they are. Calls as in RegistryDriver; `timestamp` is our limit, the generation the node's
/// version.
class LeafLayout {
 public:
  /// `identity` names this server's nodes; `tree` outlives this.
  LeafLayout(std::string identity, ZkTree& tree) : identity_(std::move(identity)), tree_(tree) {}

  Result<WorkerRight> Claim(const ClaimAsk& ask);
  Result<WorkerRight> Extend(const WorkerRight& right, std::int64_t limit_ms, std::int64_t lease_ms,
                             Instant deadline);
  Result<WorkerRight> Lower(const WorkerRight& right, std::int64_t limit_ms, Instant deadline);
  Result<std::vector<WorkerRecord>> List(Instant deadline);
  Result<WorkerRecord> Retire(std::int64_t worker, Instant deadline);

  /// What is odd about the children, for people.
  Result<std::vector<std::string>> Findings(Instant deadline);

 private:
  struct Found {
    std::string name;
    std::int64_t version = 0, limit_ms = 0;
  };
  Result<WorkerRight> Create(const ClaimAsk& ask, std::int64_t next, std::int64_t now_ms);
  Result<WorkerRight> Take(const ClaimAsk& ask, const LeafNode& node, std::int64_t now_ms);
  Result<Found> Read(const std::string& name, std::int64_t* written_ms, Instant deadline);
  Result<std::int64_t> FloorOf(const ClaimAsk& ask, const LeafNode& node, const Found& found,
                               std::int64_t age_ms);
  Result<std::int64_t> NativeFloor(std::int64_t worker, std::int64_t now_ms, Instant deadline);
  Result<WorkerRight> Write(WorkerRight right, std::int64_t limit_ms, bool raise_only,
                            Instant deadline);
  Result<WorkerRight> ReadBack(WorkerRight right, const LeafNode& node, Instant deadline);
  Result<LeafNode> NodeOf(const WorkerRight& right, Instant deadline);

  const std::string identity_;
  ZkTree& tree_;
};

}  // namespace leaf
