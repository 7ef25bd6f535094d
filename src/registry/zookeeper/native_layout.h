#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/snowflake/worker_registry.h"
#include "registry/claim.h"
#include "registry/zookeeper/zookeeper_tree.h"

namespace leaf {

/// The native layout: a node a worker below `workers`, bound to nobody, taken by PlanClaim's rule.
/// A number that a node below `forever` has counts as taken until that node is retired, and is left
/// at once where such a node comes later. Calls as in RegistryDriver.
class NativeLayout {
 public:
  /// `tree` outlives this.
  explicit NativeLayout(ZkTree& tree) : tree_(tree) {}

  Result<WorkerRight> Claim(const ClaimAsk& ask);
  Result<WorkerRight> Extend(const WorkerRight& right, std::int64_t limit_ms, std::int64_t lease_ms,
                             Instant deadline);
  Result<WorkerRight> Lower(const WorkerRight& right, std::int64_t limit_ms, Instant deadline);
  Result<std::vector<WorkerRecord>> List(Instant deadline);
  Result<WorkerRecord> Retire(std::int64_t worker, Instant deadline);

 private:
  struct Row {
    NativeRow row;
    std::string error;  ///< why the node cannot be read; then the rest but the worker is empty
    std::int32_t version = 0;
  };
  Result<std::vector<Row>> Rows(Instant deadline);
  Result<Row> ReadRow(std::int64_t worker, Instant deadline);
  /// nullopt: another was quicker, plan anew.
  Result<std::optional<WorkerRight>> Carry(const ClaimAsk& ask, const ClaimPlan& plan,
                                           const std::vector<Row>& rows);
  Result<bool> LeafHas(std::int64_t worker, Instant deadline);
  Result<WorkerRight> Write(const WorkerRight& right, std::int64_t limit_ms, bool raise_only,
                            Instant deadline);

  ZkTree& tree_;
};

}  // namespace leaf
