#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/snowflake/layout.h"
#include "core/snowflake/minted.h"

namespace leaf::sim {

/// What every history of a cluster of snowflake servers keeps.
enum class SnowflakeRule : std::uint8_t {
  kUnique,   ///< no id twice
  kOrder,    ///< ids of one server rise in real time, also over a restart that kept its order word
  kRight,    ///< the registry said before that this owner may mint that time
  kJournal,  ///< a worker bound to a node: the durable journal covered that time
  kEnded,    ///< nothing is minted after Close, or after the registry named another's write
  kServed,   ///< in a calm history no request fails
};
const char* Name(SnowflakeRule rule) noexcept;

/// Judges a history while it happens. It is told what the registry wrote, by the registry, and what
/// was minted, by the servers. Confined.
class SnowflakeChecker {
 public:
  struct Violation {
    Instant at;
    SnowflakeRule rule;
    std::string text;
  };

  explicit SnowflakeChecker(const Layout& layout) : layout_(layout) {}

  /// The registry wrote that `owner` may mint [floor_ms, limit_ms) as `worker`.
  void Granted(const std::string& owner, std::int64_t worker, std::int64_t floor_ms,
               std::int64_t limit_ms);
  void Limited(const std::string& owner, std::int64_t worker, std::int64_t limit_ms);

  /// `owner` minted these ids, sent or not.
  void Claimed(Instant at, const std::string& owner, const Minted& minted);
  /// An answer that was asked for when `above` was the largest id sent left the server.
  void Sent(Instant at, int server, std::int64_t above, const Minted& minted);
  /// The server's order word is lost: its ids begin anew.
  void Forget(int server) { largest_.erase(server); }
  std::int64_t Largest(int server) const;

  void Violate(Instant at, SnowflakeRule rule, std::string text);
  const std::vector<Violation>& violations() const noexcept { return violations_; }
  std::uint64_t ids() const noexcept { return ids_; }

 private:
  struct Tenure {
    std::int64_t floor_ms = 0, limit_ms = 0;
  };
  void CheckUnique(Instant at, const Minted& minted);
  void CheckRight(Instant at, const std::string& owner, const Minted& minted);

  const Layout layout_;
  std::map<std::pair<std::string, std::int64_t>, std::vector<Tenure>> tenures_;
  /// By worker: the first place of each run of places, and the one after its last.
  std::map<std::int64_t, std::map<std::uint64_t, std::uint64_t>> minted_;
  std::map<int, std::int64_t> largest_;
  std::vector<Violation> violations_;
  std::uint64_t ids_ = 0;
};

}  // namespace leaf::sim
