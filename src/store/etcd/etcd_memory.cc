#include "store/etcd/etcd_memory.h"

#include <algorithm>

namespace leaf {

void EtcdMemory::Saw(std::int64_t revision) {
  MutexLock lock(mu_);
  latest_ = std::max(latest_, revision);
}

std::int64_t EtcdMemory::latest() const {
  MutexLock lock(mu_);
  return latest_;
}

int EtcdMemory::Belongs(std::uint64_t cluster_id, std::int64_t known, std::int64_t revision) {
  MutexLock lock(mu_);
  const bool same = cluster_id_ == cluster_id;
  // Below latest_ too: else another session has noticed it already.
  const bool lost = same && revision < known && revision < latest_;
  if (!same || lost) {
    rows_.clear();
    latest_ = revision;
  }
  if (lost) ++losses_;
  cluster_id_ = cluster_id;
  latest_ = std::max(latest_, revision);
  return losses_;
}

std::optional<EtcdKnown> EtcdMemory::Find(std::string_view tag) const {
  MutexLock lock(mu_);
  const auto at = rows_.find(tag);
  return at == rows_.end() ? std::nullopt : std::optional(at->second);
}

void EtcdMemory::Keep(std::string_view tag, const EtcdKnown& known) {
  MutexLock lock(mu_);
  if (const auto at = rows_.find(tag); at != rows_.end()) {
    at->second = known;
    return;
  }
  if (rows_.size() >= kMost) rows_.erase(rows_.begin());
  rows_.emplace(tag, known);
}

void EtcdMemory::Drop(std::string_view tag) {
  MutexLock lock(mu_);
  if (const auto at = rows_.find(tag); at != rows_.end()) rows_.erase(at);
}

}  // namespace leaf
