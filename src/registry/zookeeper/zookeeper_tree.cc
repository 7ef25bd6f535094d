#include "registry/zookeeper/zookeeper_tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/iso_time.h"
#include "base/random.h"

namespace leaf {

ZkTree::ZkTree(const std::string& cluster, ZkSession& session, std::shared_ptr<ZkMemory> memory)
    : paths_(cluster),
      clock_path_(paths_.base + "/leafd-clock-" + std::to_string(SystemRandom().Next())),
      session_(session),
      memory_(std::move(memory)) {}

Result<void> ZkTree::Ensure(const std::string& path, Instant deadline) {
  const ZkReply there = session_.Get(path, deadline);
  if (there.ok() || there.code == ZkCode::kRefused) return {};  // no right to read it is needed
  if (there.code != ZkCode::kNoNode) return session_.Explain(there, "reading", path);
  const std::size_t slash = path.rfind('/');
  if (slash > 0) LEAF_RETURN_IF_ERROR(Ensure(path.substr(0, slash), deadline));
  const ZkReply made = session_.Create(path, "", false, deadline);
  if (made.ok() || made.code == ZkCode::kExists) return {};
  return session_.Explain(made, "making", path);
}

void ZkTree::SawClock(std::int64_t server_ms) { memory_->SawClock(server_ms, SystemClock().Now()); }

Result<std::int64_t> ZkTree::Clock(Instant deadline) {
  const ZkReply reply = session_.Clock(clock_path_, deadline);
  if (!reply.ok()) return session_.Explain(reply, "asking for the time at", clock_path_);
  SawClock(reply.stat.mtime_ms);
  return reply.stat.mtime_ms;
}

Result<std::int64_t> ZkTree::RecentClock(Instant deadline) {
  const auto recent = memory_->Clock(SystemClock().Now());
  if (recent) return *recent;
  return Clock(deadline);
}

Result<LeafChildren> ZkTree::ListLeaf(Instant deadline) {
  LeafChildren children;
  ZkReply reply = session_.Children(paths_.forever, deadline);
  if (reply.code == ZkCode::kNoNode) return children;
  if (!reply.ok()) return session_.Explain(reply, "listing", paths_.forever);
  children.next = reply.stat.made;
  for (std::string& name : reply.names) {
    auto parts = ParseLeafName(name);
    if (parts) {
      children.nodes.push_back({std::move(name), std::move(*parts)});
    } else {
      children.foreign.push_back(std::move(name));
    }
  }
  std::sort(children.nodes.begin(), children.nodes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.parts.counter, a.name) < std::tie(b.parts.counter, b.name);
  });
  return children;
}

Result<WorkerRecord> ZkTree::RetireLeaf(const LeafNode& node, Instant deadline) {
  const std::string path = LeafPath(node.name);
  LEAF_ASSIGN_OR_RETURN(const std::int64_t now, Clock(deadline));
  const ZkReply read = session_.Get(path, deadline);
  if (read.code == ZkCode::kNoNode)
    return Error{Code::kNotFound, "node " + path + " has been removed already"};
  if (!read.ok()) return session_.Explain(read, "reading", path);
  LEAF_ASSIGN_OR_RETURN(const std::int64_t limit, ParseLeafText(read.text, path));
  // A living Java node may have a slow clock: when it wrote counts too, unless it was we.
  const bool ours = memory_->IsOurs(node.name, read.stat.version);
  const std::int64_t free_at = std::max(limit, ours ? 0 : read.stat.mtime_ms) + kLeafAliveMs;
  if (now < free_at) {
    return Error{Code::kConflict, "node " + path + " is in use: its time ends at " +
                                      IsoTime(limit) + ", it was written at " +
                                      IsoTime(read.stat.mtime_ms) + "; retire it after " +
                                      IsoTime(free_at)};
  }
  const ZkReply gone = session_.Delete(path, read.stat.version, deadline);
  if (gone.code == ZkCode::kBadVersion)
    return Error{Code::kConflict, "node " + path + " was written just now: its server lives"};
  if (!gone.ok() && gone.code != ZkCode::kNoNode) return session_.Explain(gone, "removing", path);
  WorkerRecord record;
  record.worker = node.parts.counter;
  record.generation = read.stat.version;
  record.identity = node.parts.identity;
  record.limit_ms = limit;
  return record;
}

}  // namespace leaf
