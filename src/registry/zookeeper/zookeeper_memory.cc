#include "registry/zookeeper/zookeeper_memory.h"

#include <algorithm>

namespace leaf {
namespace {

constexpr std::size_t kMaxWrites = 4096;
constexpr Duration kClockHolds = std::chrono::minutes(1);

}  // namespace

void ZkMemory::Wrote(const Write& write) {
  const MutexLock lock(mu_);
  std::erase_if(writes_, [&](const Write& old) {
    return old.owner == write.owner && (old.node == write.node || old.node.empty());
  });
  writes_.push_back(write);
  watched_.erase(write.node);
}

void ZkMemory::MayHaveWritten(const Write& write) {
  const MutexLock lock(mu_);
  writes_.push_back(write);
  if (writes_.size() > kMaxWrites) writes_.erase(writes_.begin());
}

std::optional<ZkMemory::Write> ZkMemory::Find(std::string_view owner, std::string_view identity,
                                              std::string_view node, std::int64_t version,
                                              std::int64_t limit_ms) const {
  const MutexLock lock(mu_);
  const auto found = std::find_if(writes_.rbegin(), writes_.rend(), [&](const Write& write) {
    return write.owner == owner && write.identity == identity &&
           (write.node.empty() || write.node == node) && write.version == version &&
           write.limit_ms == limit_ms;
  });
  if (found == writes_.rend()) return std::nullopt;
  return *found;
}

bool ZkMemory::IsOurs(std::string_view node, std::int64_t version) const {
  const MutexLock lock(mu_);
  return std::any_of(writes_.begin(), writes_.end(), [&](const Write& write) {
    return write.node == node && write.version == version;
  });
}

std::optional<ZkMemory::Write> ZkMemory::Last(std::string_view owner, std::int64_t worker) const {
  const MutexLock lock(mu_);
  const auto found = std::find_if(writes_.rbegin(), writes_.rend(), [&](const Write& write) {
    return write.owner == owner && write.worker == worker;
  });
  if (found == writes_.rend()) return std::nullopt;
  return *found;
}

ZkMemory::Watched ZkMemory::Watch(const std::string& node, std::int64_t version, Instant now,
                                  Duration span) {
  const MutexLock lock(mu_);
  const auto [at, fresh] = watched_.try_emplace(node, View{version, now});
  if (fresh) return Watched::kStill;
  if (at->second.version != version) {
    at->second = {version, now, true};
    return Watched::kMoved;
  }
  if (now - at->second.since >= span) return Watched::kQuiet;
  return at->second.moved ? Watched::kMoved : Watched::kStill;
}

void ZkMemory::Unwatch(const std::string& node) {
  const MutexLock lock(mu_);
  watched_.erase(node);
}

void ZkMemory::SawClock(std::int64_t server_ms, Instant now) {
  const MutexLock lock(mu_);
  clock_ms_ = server_ms;
  clock_read_ = now;
}

std::optional<std::int64_t> ZkMemory::Clock(Instant now) const {
  const MutexLock lock(mu_);
  if (!clock_ms_ || now - clock_read_ > kClockHolds) return std::nullopt;
  return *clock_ms_ +
         std::chrono::duration_cast<std::chrono::milliseconds>(now - clock_read_).count();
}

}  // namespace leaf
