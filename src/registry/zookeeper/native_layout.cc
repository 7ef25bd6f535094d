#include "registry/zookeeper/native_layout.h"

#include <algorithm>
#include <utility>

#include "base/iso_time.h"

namespace leaf {
namespace {

constexpr int kWriteTries = 5;

Error Lost(const std::string& path, const std::string& why) {
  return {Code::kConflict, "the right to node " + path + " is lost: " + why};
}

}  // namespace

Result<std::vector<NativeLayout::Row>> NativeLayout::Rows(Instant deadline) {
  std::vector<Row> rows;
  const ZkReply listed = tree_.session().Children(tree_.paths().workers, deadline);
  if (listed.code == ZkCode::kNoNode) return rows;
  if (!listed.ok()) return tree_.session().Explain(listed, "listing", tree_.paths().workers);
  std::vector<std::int64_t> workers;
  for (const std::string& name : listed.names) {
    const auto worker = ParseNativeName(name);
    if (worker) workers.push_back(*worker);
  }
  std::sort(workers.begin(), workers.end());
  std::vector<std::string> paths;
  for (const std::int64_t worker : workers) paths.push_back(tree_.paths().NativeNode(worker));
  const std::vector<ZkReply> replies = tree_.session().GetAll(paths, deadline);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const ZkReply& reply = replies[i];
    if (reply.code == ZkCode::kNoNode) continue;
    if (!reply.ok()) return tree_.session().Explain(reply, "reading", paths[i]);
    Row& row = rows.emplace_back();
    row.version = reply.stat.version;
    Result<NativeRow> parsed = ParseNativeText(reply.text, workers[i], paths[i]);
    if (parsed.ok()) {
      row.row = std::move(parsed).value();
    } else {
      row.error = parsed.error().message;
      row.row.record.worker = workers[i];
    }
  }
  return rows;
}

Result<NativeLayout::Row> NativeLayout::ReadRow(std::int64_t worker, Instant deadline) {
  const std::string path = tree_.paths().NativeNode(worker);
  const ZkReply read = tree_.session().Get(path, deadline);
  if (read.code == ZkCode::kNoNode) return Error{Code::kNotFound, "there is no node " + path};
  if (!read.ok()) return tree_.session().Explain(read, "reading", path);
  Row row;
  row.version = read.stat.version;
  LEAF_ASSIGN_OR_RETURN(row.row, ParseNativeText(read.text, worker, path));
  return row;
}

Result<bool> NativeLayout::LeafHas(std::int64_t worker, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const LeafChildren children, tree_.ListLeaf(deadline));
  return std::any_of(children.nodes.begin(), children.nodes.end(),
                     [&](const LeafNode& node) { return node.parts.counter == worker; });
}

Result<WorkerRight> NativeLayout::Claim(const ClaimAsk& ask) {
  LEAF_RETURN_IF_ERROR(tree_.Ensure(tree_.paths().workers, ask.deadline));
  for (;;) {
    LEAF_ASSIGN_OR_RETURN(const std::int64_t now_ms, tree_.Clock(ask.deadline));
    LEAF_ASSIGN_OR_RETURN(const LeafChildren leaf, tree_.ListLeaf(ask.deadline));
    LEAF_ASSIGN_OR_RETURN(const std::vector<Row> rows, Rows(ask.deadline));
    std::vector<WorkerRow> plain;
    for (const Row& row : rows)
      plain.push_back({row.row.record, row.row.layout, !row.error.empty()});
    for (const LeafNode& node : leaf.nodes) {
      const auto same = std::find_if(plain.begin(), plain.end(), [&](const WorkerRow& row) {
        return row.record.worker == node.parts.counter;
      });
      WorkerRow& row = same == plain.end() ? plain.emplace_back() : *same;
      row.record.worker = node.parts.counter;
      row.taken = true;
    }
    std::sort(plain.begin(), plain.end(), [](const WorkerRow& a, const WorkerRow& b) {
      return a.record.worker < b.record.worker;
    });
    LEAF_ASSIGN_OR_RETURN(const ClaimPlan plan, PlanClaim(plain, ask, now_ms));
    LEAF_ASSIGN_OR_RETURN(const auto right, Carry(ask, plan, rows));
    if (right) return *right;
  }
}

Result<std::optional<WorkerRight>> NativeLayout::Carry(const ClaimAsk& ask, const ClaimPlan& plan,
                                                       const std::vector<Row>& rows) {
  const std::string path = tree_.paths().NativeNode(plan.worker);
  WorkerRight right;
  right.worker = plan.worker;
  right.generation = plan.generation;
  right.owner = ask.owner;
  right.floor_ms = plan.floor_ms;
  right.limit_ms = plan.limit_ms;
  right.free_workers = plan.free_workers;
  NativeRow row;
  row.record = {plan.worker, plan.generation, ask.owner, ask.identity, plan.limit_ms, ""};
  row.layout = ask.layout;
  ZkReply reply;
  if (plan.kind == ClaimPlan::Kind::kCreate) {
    reply = tree_.session().Create(path, NativeText(row), false, ask.deadline);
  } else {
    const auto old = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
      return other.row.record.worker == plan.worker;
    });
    if (old == rows.end()) return Error{Code::kInternal, "a plan for a worker that is not there"};
    reply = tree_.session().Set(path, NativeText(row), old->version, ask.deadline);
  }
  if (reply.code == ZkCode::kExists || reply.code == ZkCode::kBadVersion ||
      reply.code == ZkCode::kNoNode) {
    return std::optional<WorkerRight>();
  }
  if (!reply.ok()) return tree_.session().Explain(reply, "claiming", path);
  right.registry_ms = reply.stat.mtime_ms;
  tree_.SawClock(reply.stat.mtime_ms);
  // A node of that number below `forever` that was made since the children were listed sees ours,
  // or we see it here.
  LEAF_ASSIGN_OR_RETURN(const bool taken, LeafHas(plan.worker, ask.deadline));
  if (!taken) return std::optional<WorkerRight>(right);
  row.record.owner.clear();
  row.record.limit_ms = plan.floor_ms;
  const ZkReply back = tree_.session().Set(path, NativeText(row), reply.stat.version, ask.deadline);
  if (!back.ok() && back.code != ZkCode::kBadVersion)
    return tree_.session().Explain(back, "giving back", path);
  return std::optional<WorkerRight>();
}

Result<WorkerRight> NativeLayout::Extend(const WorkerRight& right, std::int64_t limit_ms,
                                         std::int64_t lease_ms, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const std::int64_t now_ms, tree_.RecentClock(deadline));
  LEAF_ASSIGN_OR_RETURN(const bool taken, LeafHas(right.worker, deadline));
  if (taken) {
    return Lost(tree_.paths().NativeNode(right.worker),
                "a node of Leaf's with that number came below " + tree_.paths().forever);
  }
  return Write(right, std::min(limit_ms, now_ms + lease_ms + kClockToleranceMs), true, deadline);
}

Result<WorkerRight> NativeLayout::Lower(const WorkerRight& right, std::int64_t limit_ms,
                                        Instant deadline) {
  return Write(right, limit_ms, false, deadline);
}

/// Safe to repeat: it reads what is there, an earlier write of ours included.
Result<WorkerRight> NativeLayout::Write(const WorkerRight& right, std::int64_t limit_ms,
                                        bool raise_only, Instant deadline) {
  const std::string path = tree_.paths().NativeNode(right.worker);
  for (int attempt = 0; attempt < kWriteTries; ++attempt) {
    Result<Row> read = ReadRow(right.worker, deadline);
    if (!read.ok() && read.error().code == Code::kNotFound) return Lost(path, "it was removed");
    if (!read.ok()) return read.error();
    WorkerRecord& record = read->row.record;
    if (record.owner != right.owner || record.generation != right.generation) {
      return Lost(path, record.owner.empty() ? "it was retired"
                                             : "it belongs to " + record.identity + " now");
    }
    record.limit_ms =
        raise_only ? std::max(limit_ms, record.limit_ms) : std::min(limit_ms, record.limit_ms);
    const ZkReply set = tree_.session().Set(path, NativeText(read->row), read->version, deadline);
    if (set.code == ZkCode::kBadVersion || set.code == ZkCode::kNoNode) continue;
    if (!set.ok()) return tree_.session().Explain(set, "writing", path);
    tree_.SawClock(set.stat.mtime_ms);
    WorkerRight now = right;
    now.limit_ms = record.limit_ms;
    now.registry_ms = set.stat.mtime_ms;
    return now;
  }
  return Error{Code::kUnavailable, "node " + path + " is being written by others all the time"};
}

Result<std::vector<WorkerRecord>> NativeLayout::List(Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const LeafChildren leaf, tree_.ListLeaf(deadline));
  LEAF_ASSIGN_OR_RETURN(std::vector<Row> rows, Rows(deadline));
  std::vector<WorkerRecord> records;
  for (Row& row : rows) {
    row.row.record.note = std::move(row.error);
    records.push_back(std::move(row.row.record));
  }
  for (const LeafNode& node : leaf.nodes) {
    WorkerRecord record;
    record.worker = node.parts.counter;
    record.identity = node.parts.identity;
    record.note = "taken by node " + tree_.LeafPath(node.name) + " until that is retired";
    records.push_back(std::move(record));
  }
  std::stable_sort(
      records.begin(), records.end(),
      [](const WorkerRecord& a, const WorkerRecord& b) { return a.worker < b.worker; });
  return records;
}

Result<WorkerRecord> NativeLayout::Retire(std::int64_t worker, Instant deadline) {
  LEAF_ASSIGN_OR_RETURN(const LeafChildren leaf, tree_.ListLeaf(deadline));
  for (const LeafNode& node : leaf.nodes) {
    if (node.parts.counter == worker) return tree_.RetireLeaf(node, deadline);
  }
  const std::string path = tree_.paths().NativeNode(worker);
  for (int attempt = 0; attempt < kWriteTries; ++attempt) {
    Result<Row> read = ReadRow(worker, deadline);
    if (!read.ok()) return read.error();
    const WorkerRecord before = read->row.record;
    read->row.record.owner.clear();
    ++read->row.record.generation;
    const ZkReply set = tree_.session().Set(path, NativeText(read->row), read->version, deadline);
    if (set.code == ZkCode::kBadVersion || set.code == ZkCode::kNoNode) continue;
    if (!set.ok()) return tree_.session().Explain(set, "retiring", path);
    return before;
  }
  return Error{Code::kUnavailable, "node " + path + " is being written by others all the time"};
}

}  // namespace leaf
