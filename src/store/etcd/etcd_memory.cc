#include "store/etcd/etcd_memory.h"

namespace leaf {

void EtcdMemory::Belongs(std::uint64_t cluster_id) {
  MutexLock lock(mu_);
  if (cluster_id_ != cluster_id) rows_.clear();
  cluster_id_ = cluster_id;
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
