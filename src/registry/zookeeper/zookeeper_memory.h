#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"

namespace leaf {

/// What this process knows of its own doings in Leaf's layout, over all of its sessions: a session
/// is thrown away after each call that had no answer. Thread-safe.
class ZkMemory {
 public:
  /// A write of ours. Of those that may have happened at one version of a node at most one has.
  struct Write {
    std::string owner, identity;
    std::string node;  ///< name below `forever`; empty: was to be made, its name did not come
    std::int64_t worker = -1;  ///< -1: likewise
    std::int64_t version = 0;  ///< that the node has after it
    std::int64_t limit_ms = 0;
    std::int64_t floor_ms = 0;  ///< of the right that it belongs to
  };

  /// It happened: what may have happened to that node before is settled.
  void Wrote(const Write& write);
  /// It was sent, and no answer came.
  void MayHaveWritten(const Write& write);
  /// Our own write that left `node` at this version with this limit.
  std::optional<Write> Find(std::string_view owner, std::string_view identity,
                            std::string_view node, std::int64_t version,
                            std::int64_t limit_ms) const;
  /// Whether this process made that write, whatever owner it had then.
  bool IsOurs(std::string_view node, std::int64_t version) const;
  /// The node that `owner` wrote last for that worker.
  std::optional<Write> Last(std::string_view owner, std::int64_t worker) const;

  /// A node that another may be writing.
  enum class Watched : std::uint8_t { kStill, kQuiet, kMoved };
  /// kQuiet: it had that version all through the last `span`; kMoved: it was written while it was
  /// watched, and was not quiet for a `span` since; kStill: neither yet.
  Watched Watch(const std::string& node, std::int64_t version, Instant now, Duration span);
  void Unwatch(const std::string& node);

  void SawClock(std::int64_t server_ms, Instant now);
  /// The server's clock, or a little less; nullopt: it was read too long ago.
  std::optional<std::int64_t> Clock(Instant now) const;

 private:
  struct View {
    std::int64_t version = 0;
    Instant since;
    bool moved = false;
  };
  mutable Mutex mu_;
  std::vector<Write> writes_ GUARDED_BY(mu_);  ///< the newest last
  std::map<std::string, View> watched_ GUARDED_BY(mu_);
  std::optional<std::int64_t> clock_ms_ GUARDED_BY(mu_);
  Instant clock_read_ GUARDED_BY(mu_);
};

}  // namespace leaf
