// A claim, in this order: the parents; ZooKeeper's time, which also makes what is read afterwards
// as new as that; the children; then our node is made, or judged and written. Every write names the
// version that it replaces, so a twin that writes in between is seen.

#include "registry/zookeeper/leaf_layout.h"

#include <algorithm>
#include <utility>

#include "base/iso_time.h"
#include "base/log.h"

namespace leaf {
namespace {

constexpr Duration kWatch = std::chrono::seconds(7);  // two reports of a twin fall into it

/// ZooKeeper answered, and the node is not this server's to use. Not kUnavailable: that would let
/// the engine carry on by its journal, beside whoever wrote the node.
Error Refused(std::string message) { return {Code::kConflict, std::move(message)}; }

Error Twin(const std::string& path) {
  return Refused("another process writes node " + path +
                 ": a server with this identity runs already; stop it, or give this one "
                 "another snowflake.identity");
}

/// Not to be had: another process of this host mints with it.
Result<void> CheckExcluded(const ClaimAsk& ask, std::int64_t worker, const std::string& below) {
  if (std::find(ask.excluded.begin(), ask.excluded.end(), worker) == ask.excluded.end()) return {};
  return Error{Code::kUnavailable, "worker " + std::to_string(worker) + ", this server's below " +
                                       below +
                                       ", is in use by another process of this host; stop that"};
}

Error NumbersUsedUp(const std::string& forever, std::int64_t next, std::int64_t workers) {
  return Refused(
      "ZooKeeper would number the next node below " + forever + " " + std::to_string(next) +
      ", and the layout holds workers 0 to " + std::to_string(workers - 1) +
      "; it gives no number twice. Take over the node of a server that is gone by its "
      "snowflake.identity, or use the native layout (?layout=native), where workers that were "
      "retired (leafctl workers retire) are used again");
}

}  // namespace

Result<WorkerRight> LeafLayout::Claim(const ClaimAsk& ask) {
  LEAF_RETURN_IF_ERROR(tree_.Ensure(tree_.paths().forever, ask.deadline));
  LEAF_ASSIGN_OR_RETURN(const std::int64_t now_ms, tree_.Clock(ask.deadline));
  LEAF_ASSIGN_OR_RETURN(const LeafChildren children, tree_.ListLeaf(ask.deadline));
  const auto own =
      std::find_if(children.nodes.begin(), children.nodes.end(),
                   [&](const LeafNode& node) { return node.parts.identity == ask.identity; });
  if (own == children.nodes.end()) return Create(ask, children.next, now_ms);
  return Take(ask, *own, now_ms);
}

Result<WorkerRight> LeafLayout::Create(const ClaimAsk& ask, std::int64_t next,
                                       std::int64_t now_ms) {
  const std::string& forever = tree_.paths().forever;
  if (next >= ask.workers) return NumbersUsedUp(forever, next, ask.workers);
  LEAF_RETURN_IF_ERROR(CheckExcluded(ask, next, forever));
  LEAF_ASSIGN_OR_RETURN(const std::int64_t before, NativeFloor(next, now_ms, ask.deadline));
  static_cast<void>(before);  // it is asked for again when the number is certain
  LEAF_ASSIGN_OR_RETURN(const std::int64_t limit, LimitWithin(ask.now_ms, ask.lease_ms, now_ms));
  ZkMemory::Write write{ask.owner, ask.identity, "", -1, 0, limit, 0};
  const ZkReply made = tree_.session().Create(forever + "/" + ask.identity + "-",
                                              LeafText(ask.identity, limit), true, ask.deadline);
  if (made.code == ZkCode::kUnknown) tree_.memory().MayHaveWritten(write);
  if (!made.ok()) return tree_.session().Explain(made, "making a node below", forever);
  write.node = made.text.substr(made.text.rfind('/') + 1);
  tree_.SawClock(made.stat.mtime_ms);
  const auto parts = ParseLeafName(write.node);
  if (!parts) return Error{Code::kInternal, "ZooKeeper named a node " + made.text};
  write.worker = parts->counter;
  tree_.memory().Wrote(write);  // from here on a repeated claim finds it
  // Others may have come in between, and have taken the last number or this worker.
  Result<std::int64_t> floor = NativeFloor(parts->counter, made.stat.mtime_ms, ask.deadline);
  if (parts->counter >= ask.workers) floor = NumbersUsedUp(forever, parts->counter, ask.workers);
  if (!floor.ok()) {
    // Without an answer nothing is known against the node: it stays, as its number is never given
    // again.
    if (tree_.session().usable()) tree_.session().Delete(made.text, 0, ask.deadline);
    return floor.error();
  }
  write.floor_ms = *floor;
  tree_.memory().Wrote(write);
  WorkerRight right;
  right.worker = parts->counter;
  right.owner = ask.owner;
  right.floor_ms = *floor;
  right.limit_ms = limit;
  right.registry_ms = made.stat.mtime_ms;
  return right;
}

Result<WorkerRight> LeafLayout::Take(const ClaimAsk& ask, const LeafNode& node,
                                     std::int64_t now_ms) {
  const std::int64_t worker = node.parts.counter;
  const std::string path = tree_.LeafPath(node.name);
  if (worker >= ask.workers) {
    return Refused("node " + path + " is this server's, and the layout holds workers 0 to " +
                   std::to_string(ask.workers - 1) +
                   " only; use another snowflake.identity, or the native layout");
  }
  LEAF_RETURN_IF_ERROR(CheckExcluded(ask, worker, tree_.paths().forever));
  std::int64_t written_ms = 0;
  LEAF_ASSIGN_OR_RETURN(const Found found, Read(node.name, &written_ms, ask.deadline));
  LEAF_ASSIGN_OR_RETURN(std::int64_t floor, FloorOf(ask, node, found, now_ms - written_ms));
  LEAF_ASSIGN_OR_RETURN(const std::int64_t native, NativeFloor(worker, now_ms, ask.deadline));
  floor = std::max(floor, native);
  LEAF_ASSIGN_OR_RETURN(std::int64_t limit, LimitWithin(ask.now_ms, ask.lease_ms, now_ms));
  limit = std::max(limit, found.limit_ms);
  if (floor >= limit) {
    return Refused("node " + path + " says that its time may be used up to " + IsoTime(floor) +
                   "; nothing proves that it was not, so the worker rests until its lease "
                   "reaches beyond. If the time is wrong, mend it by hand");
  }
  const ZkMemory::Write write{ask.owner,         ask.identity, node.name, worker,
                              found.version + 1, limit,        floor};
  const ZkReply set = tree_.session().Set(path, LeafText(ask.identity, limit),
                                          static_cast<std::int32_t>(found.version), ask.deadline);
  if (set.code == ZkCode::kBadVersion) return Twin(path);
  if (set.code == ZkCode::kUnknown) tree_.memory().MayHaveWritten(write);
  if (!set.ok()) return tree_.session().Explain(set, "writing", path);
  tree_.memory().Wrote(write);
  tree_.SawClock(set.stat.mtime_ms);
  WorkerRight right;
  right.worker = worker;
  right.generation = set.stat.version;
  right.owner = ask.owner;
  right.floor_ms = floor;
  right.limit_ms = limit;
  right.registry_ms = set.stat.mtime_ms;
  return right;
}

/// Above what the node's last writer may have minted. Where nothing proves that it was this server,
/// a young record is watched first, over as many calls as that takes.
Result<std::int64_t> LeafLayout::FloorOf(const ClaimAsk& ask, const LeafNode& node,
                                         const Found& found, std::int64_t age_ms) {
  const auto& journal = ask.journal;
  if (journal && journal->worker == node.parts.counter && journal->generation == found.version &&
      journal->limit_ms == found.limit_ms) {
    return journal->short_ms;
  }
  const auto ours =
      tree_.memory().Find(ask.owner, ask.identity, node.name, found.version, found.limit_ms);
  if (ours) return ours->floor_ms;
  const std::string path = tree_.LeafPath(node.name);
  const auto seen = tree_.memory().Watch(path, found.version, SystemClock().Now(), kWatch);
  if (seen == ZkMemory::Watched::kMoved) return Twin(path);
  if (seen == ZkMemory::Watched::kStill && age_ms < kLeafAliveMs) {
    return Refused("node " + path + " was written " + std::to_string(age_ms) +
                   " ms ago: it is watched for 7 s, in case another server with this "
                   "identity runs");
  }
  return found.limit_ms + kLeafAliveMs;
}

Result<LeafLayout::Found> LeafLayout::Read(const std::string& name, std::int64_t* written_ms,
                                           Instant deadline) {
  const std::string path = tree_.LeafPath(name);
  const ZkReply read = tree_.session().Get(path, deadline);
  if (read.code == ZkCode::kNoNode) return Refused("node " + path + " was removed just now");
  if (!read.ok()) return tree_.session().Explain(read, "reading", path);
  const Result<std::int64_t> limit = ParseLeafText(read.text, path);
  if (!limit.ok()) return Refused(limit.error().message);
  if (written_ms != nullptr) *written_ms = read.stat.mtime_ms;
  return Found{name, read.stat.version, *limit};
}

/// The limit of a native worker of that number: 0 if there is none; an error while it holds.
Result<std::int64_t> LeafLayout::NativeFloor(std::int64_t worker, std::int64_t now_ms,
                                             Instant deadline) {
  const std::string path = tree_.paths().NativeNode(worker);
  const ZkReply read = tree_.session().Get(path, deadline);
  if (read.code == ZkCode::kNoNode) return std::int64_t{0};
  if (!read.ok()) return tree_.session().Explain(read, "reading", path);
  LEAF_ASSIGN_OR_RETURN(const NativeRow row, ParseNativeText(read.text, worker, path));
  if (row.record.limit_ms <= now_ms) return row.record.limit_ms;
  return Refused("worker " + std::to_string(worker) + " is held in the native layout by " +
                 row.record.identity + " until " + IsoTime(row.record.limit_ms) +
                 "; one cluster should use one layout");
}

Result<LeafNode> LeafLayout::NodeOf(const WorkerRight& right, Instant deadline) {
  const auto last = tree_.memory().Last(right.owner, right.worker);
  if (last) return LeafNode{last->node, {last->identity, right.worker}};
  LEAF_ASSIGN_OR_RETURN(LeafChildren children, tree_.ListLeaf(deadline));
  for (LeafNode& node : children.nodes) {
    if (node.parts.counter == right.worker && node.parts.identity == identity_)
      return std::move(node);
  }
  return Error{Code::kConflict, "this server has no node with number " +
                                    std::to_string(right.worker) + " below " +
                                    tree_.paths().forever + " any more"};
}

Result<WorkerRight> LeafLayout::Extend(const WorkerRight& right, std::int64_t limit_ms,
                                       std::int64_t lease_ms, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const std::int64_t now_ms, tree_.RecentClock(deadline));
  return Write(right, std::min(limit_ms, now_ms + lease_ms + kClockToleranceMs), true, deadline);
}

Result<WorkerRight> LeafLayout::Lower(const WorkerRight& right, std::int64_t limit_ms,
                                      Instant deadline) {
  return Write(right, limit_ms, false, deadline);
}

/// Writes the limit over `right`, which must still be the node's last word, or the one before a
/// write of ours whose answer was lost.
Result<WorkerRight> LeafLayout::Write(WorkerRight right, std::int64_t limit_ms, bool raise_only,
                                      Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const LeafNode node, NodeOf(right, deadline));
  const std::string path = tree_.LeafPath(node.name);
  for (int attempt = 0;; ++attempt) {
    const std::int64_t limit =
        raise_only ? std::max(limit_ms, right.limit_ms) : std::min(limit_ms, right.limit_ms);
    const ZkMemory::Write write{right.owner,   node.parts.identity,  node.name,
                                right.worker,  right.generation + 1, limit,
                                right.floor_ms};
    const ZkReply set = tree_.session().Set(path, LeafText(node.parts.identity, limit),
                                            static_cast<std::int32_t>(right.generation), deadline);
    if (set.ok()) {
      tree_.memory().Wrote(write);
      tree_.SawClock(set.stat.mtime_ms);
      right.generation = set.stat.version;
      right.limit_ms = limit;
      right.registry_ms = set.stat.mtime_ms;
      return right;
    }
    if (set.code == ZkCode::kNoNode)
      return Error{Code::kConflict, "this server's node " + path + " was removed"};
    if (set.code == ZkCode::kUnknown) tree_.memory().MayHaveWritten(write);
    if (set.code != ZkCode::kBadVersion || attempt > 0)
      return tree_.session().Explain(set, "writing", path);
    LEAF_ASSIGN_OR_RETURN(right, ReadBack(std::move(right), node, deadline));
  }
}

/// The node has another version than we wrote last: it may be by a write of ours that we took for
/// lost. If it was anybody else the right has ended.
Result<WorkerRight> LeafLayout::ReadBack(WorkerRight right, const LeafNode& node,
                                         Instant deadline) {
  const std::string path = tree_.LeafPath(node.name);
  const ZkReply read = tree_.session().Get(path, deadline);
  if (read.code == ZkCode::kUnknown || read.code == ZkCode::kRefused)
    return tree_.session().Explain(read, "reading", path);
  const Result<std::int64_t> limit = ParseLeafText(read.text, path);
  if (limit.ok() && read.stat.version == right.generation + 1 &&
      tree_.memory().Find(right.owner, node.parts.identity, node.name, read.stat.version, *limit)) {
    right.generation = read.stat.version;
    right.limit_ms = *limit;
    return right;
  }
  return Error{Code::kConflict,
               "node " + path + " was written by another process (version " +
                   std::to_string(read.stat.version) + ", " +
                   (limit.ok() ? "time " + IsoTime(*limit) : limit.error().message) +
                   "): a server with this identity runs beside this one"};
}

Result<std::vector<WorkerRecord>> LeafLayout::List(Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const LeafChildren children, tree_.ListLeaf(deadline));
  std::vector<std::string> paths;
  for (const LeafNode& node : children.nodes) paths.push_back(tree_.LeafPath(node.name));
  const std::vector<ZkReply> replies = tree_.session().GetAll(paths, deadline);
  std::vector<WorkerRecord> records;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const ZkReply& reply = replies[i];
    if (reply.code == ZkCode::kNoNode) continue;
    if (!reply.ok()) return tree_.session().Explain(reply, "reading", paths[i]);
    WorkerRecord record;
    record.worker = children.nodes[i].parts.counter;
    record.generation = reply.stat.version;
    record.identity = children.nodes[i].parts.identity;
    const Result<std::int64_t> limit = ParseLeafText(reply.text, paths[i]);
    if (limit.ok()) {
      record.limit_ms = *limit;
    } else {
      record.note = limit.error().message;
    }
    records.push_back(std::move(record));
  }
  return records;
}

Result<WorkerRecord> LeafLayout::Retire(std::int64_t worker, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const LeafChildren children, tree_.ListLeaf(deadline));
  for (const LeafNode& node : children.nodes) {
    if (node.parts.counter == worker) return tree_.RetireLeaf(node, deadline);
  }
  return Error{Code::kNotFound,
               "no node below " + tree_.paths().forever + " has number " + std::to_string(worker)};
}

Result<std::vector<std::string>> LeafLayout::Findings(Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const LeafChildren children, tree_.ListLeaf(deadline));
  std::vector<std::string> findings;
  for (const std::string& name : children.foreign) {
    findings.push_back("node " + tree_.LeafPath(name) +
                       " is none of Leaf's (IP:PORT-0000000000): skipped here, but no server in "
                       "Java can start beside it; remove it");
  }
  std::vector<std::string> own;
  for (const LeafNode& node : children.nodes) {
    if (node.parts.identity == identity_) own.push_back(node.name);
  }
  if (own.size() > 1) {
    findings.push_back("this server has " + std::to_string(own.size()) + " nodes below " +
                       tree_.paths().forever + ": it uses " + own.front() +
                       ", the lowest; retire the others");
  }
  return findings;
}

}  // namespace leaf
