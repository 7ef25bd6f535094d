// The nodes, below the chroot:
//
//   /snowflake/{name}/forever/{IP:PORT}-{10 digits}   Leaf's layout: {"ip","port","timestamp"}
//   /snowflake/{name}/workers/{4 digits}              the native one: {"owner","generation",
//                                                     "identity","layout","limit_ms"}
//
// All are persistent: nothing hangs on a session, so an expired one costs a connection and no
// right. ZooKeeper's time is that of a transaction which makes and deletes an ephemeral node beside
// `forever`; it is never seen by anybody, and below `forever` nothing is written but our own node.

#include "registry/zookeeper/zookeeper_registry.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "registry/zookeeper/leaf_layout.h"
#include "registry/zookeeper/native_layout.h"
#include "registry/zookeeper/zookeeper_memory.h"
#include "registry/zookeeper/zookeeper_session.h"
#include "registry/zookeeper/zookeeper_tree.h"

namespace leaf {
namespace {

constexpr Duration kReport = std::chrono::seconds(3);  // as Leaf's

class ZooKeeperDriver final : public RegistryDriver {
 public:
  ZooKeeperDriver(const RegistryOptions& options, std::shared_ptr<ZkMemory> memory)
      : leaf_layout_(options.leaf_layout),
        session_({options.servers, options.chroot, options.user, options.password,
                  options.private_nodes}),
        tree_(options.cluster, session_, std::move(memory)),
        leaf_(options.identity, tree_),
        native_(tree_) {}

  Result<void> Open(Instant deadline, std::vector<std::string>& warnings) override;
  bool connected() const noexcept override { return session_.usable(); }
  void Close() noexcept override { session_.Close(); }
  void Interrupt() noexcept override { session_.Interrupt(); }

  Result<WorkerRight> Claim(const ClaimAsk& ask) override {
    LEAF_RETURN_IF_ERROR(Ready(ask.deadline));
    return leaf_layout_ ? leaf_.Claim(ask) : native_.Claim(ask);
  }
  Result<WorkerRight> Extend(const WorkerRight& right, std::int64_t limit_ms, std::int64_t lease_ms,
                             Instant deadline) override {
    LEAF_RETURN_IF_ERROR(Ready(deadline));
    return leaf_layout_ ? leaf_.Extend(right, limit_ms, lease_ms, deadline)
                        : native_.Extend(right, limit_ms, lease_ms, deadline);
  }
  Result<WorkerRight> Lower(const WorkerRight& right, std::int64_t limit_ms,
                            Instant deadline) override {
    LEAF_RETURN_IF_ERROR(Ready(deadline));
    return leaf_layout_ ? leaf_.Lower(right, limit_ms, deadline)
                        : native_.Lower(right, limit_ms, deadline);
  }
  Result<std::vector<WorkerRecord>> List(Instant deadline) override {
    LEAF_RETURN_IF_ERROR(Ready(deadline));
    return leaf_layout_ ? leaf_.List(deadline) : native_.List(deadline);
  }
  Result<WorkerRecord> Retire(std::int64_t worker, Instant deadline) override {
    LEAF_RETURN_IF_ERROR(Ready(deadline));
    return leaf_layout_ ? leaf_.Retire(worker, deadline) : native_.Retire(worker, deadline);
  }

 private:
  /// A session that has expired, or was given up, is replaced by the next call.
  Result<void> Ready(Instant deadline) {
    session_.BeginCall();
    return session_.Connect(deadline);
  }

  const bool leaf_layout_;
  ZkSession session_;
  ZkTree tree_;
  LeafLayout leaf_;
  NativeLayout native_;
};

Result<void> ZooKeeperDriver::Open(Instant deadline, std::vector<std::string>& warnings) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  LEAF_ASSIGN_OR_RETURN(std::vector<std::string> findings, leaf_.Findings(deadline));
  for (std::string& finding : findings) warnings.push_back(std::move(finding));
  return {};
}

Error Bad(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

bool IsNodeName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

}  // namespace

Result<RegistryFactory> MakeZooKeeperRegistry(const RegistryOptions& options) {
  if (options.servers.empty())
    return Bad("snowflake.registry: no ZooKeeper server is named (zookeeper://H1:2181,H2:2181/)");
  if (!options.chroot.empty() && (options.chroot.front() != '/' || options.chroot.back() == '/'))
    return Bad("snowflake.registry: the path '" + options.chroot +
               "' must begin with '/' and not end with one");
  if (!IsNodeName(options.cluster))
    return Bad("snowflake.name '" + options.cluster + "' cannot be the name of a ZooKeeper node");
  if (options.leaf_layout &&
      (!IsNodeName(options.identity) || !ParseLeafName(options.identity + "-0000000000"))) {
    return Bad("snowflake.identity '" + options.identity +
               "' must be IP:PORT, as Leaf's nodes are named by it");
  }
  if (options.private_nodes && options.user.empty())
    return Bad("snowflake.registry: private nodes need a user and a password");
  auto memory = std::make_shared<ZkMemory>();
  return RegistryFactory([options, memory]() -> std::unique_ptr<RegistryDriver> {
    return std::make_unique<ZooKeeperDriver>(options, memory);
  });
}

RegistryTraits ZooKeeperTraits(const RegistryOptions& options) noexcept {
  RegistryTraits traits;
  if (!options.leaf_layout) return traits;
  traits.bound = true;
  traits.foreign_writers = true;
  traits.renew = kReport;
  return traits;
}

}  // namespace leaf
