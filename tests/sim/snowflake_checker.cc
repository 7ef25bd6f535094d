#include "snowflake_checker.h"

#include <algorithm>
#include <iterator>

namespace leaf::sim {

const char* Name(SnowflakeRule rule) noexcept {
  switch (rule) {
    case SnowflakeRule::kUnique:
      return "unique";
    case SnowflakeRule::kOrder:
      return "order";
    case SnowflakeRule::kRight:
      return "right";
    case SnowflakeRule::kJournal:
      return "journal";
    case SnowflakeRule::kEnded:
      return "ended";
    case SnowflakeRule::kServed:
      return "served";
  }
  return "?";
}

void SnowflakeChecker::Violate(Instant at, SnowflakeRule rule, std::string text) {
  violations_.push_back({at, rule, std::move(text)});
}

void SnowflakeChecker::Granted(const std::string& owner, std::int64_t worker, std::int64_t floor_ms,
                               std::int64_t limit_ms) {
  tenures_[{owner, worker}].push_back({floor_ms, limit_ms});
}

void SnowflakeChecker::Limited(const std::string& owner, std::int64_t worker,
                               std::int64_t limit_ms) {
  auto& all = tenures_[{owner, worker}];
  if (all.empty()) all.push_back({});
  all.back().limit_ms = limit_ms;
}

std::int64_t SnowflakeChecker::Largest(int server) const {
  const auto found = largest_.find(server);
  return found == largest_.end() ? -1 : found->second;
}

void SnowflakeChecker::Claimed(Instant at, const std::string& owner, const Minted& minted) {
  ids_ += static_cast<std::uint64_t>(minted.count);
  CheckUnique(at, minted);
  CheckRight(at, owner, minted);
}

void SnowflakeChecker::CheckUnique(Instant at, const Minted& minted) {
  auto& runs = minted_[minted.worker];
  const std::uint64_t end = minted.first + static_cast<std::uint64_t>(minted.count);
  const auto next = runs.lower_bound(minted.first);
  const bool below = next != runs.begin() && std::prev(next)->second > minted.first;
  if (below || (next != runs.end() && next->first < end)) {
    Violate(at, SnowflakeRule::kUnique,
            "id " + std::to_string(minted.At(layout_, 0)) + " or one behind it was minted before");
    return;
  }
  if (next != runs.begin() && std::prev(next)->second == minted.first) {
    std::prev(next)->second = end;
  } else {
    runs.emplace_hint(next, minted.first, end);
  }
}

// Neither the engine's view nor its answers are asked: only what the registry wrote counts.
void SnowflakeChecker::CheckRight(Instant at, const std::string& owner, const Minted& minted) {
  const std::int64_t from = Decode(layout_, minted.At(layout_, 0)).time_ms;
  const std::int64_t to = Decode(layout_, minted.At(layout_, minted.count - 1)).time_ms;
  const auto found = tenures_.find({owner, minted.worker});
  // Two claims of one owner may follow one another in time.
  std::int64_t covered = from;
  for (bool more = found != tenures_.end(); more && covered <= to;) {
    more = false;
    for (const Tenure& each : found->second) {
      if (each.floor_ms > covered || each.limit_ms <= covered) continue;
      covered = each.limit_ms;
      more = true;
    }
  }
  if (covered > to) return;
  std::string text = "worker " + std::to_string(minted.worker) + " minted " + std::to_string(from) +
                     " to " + std::to_string(to) + ", held";
  if (found == tenures_.end()) {
    text += " never";
  } else {
    for (const Tenure& each : found->second)
      text += " [" + std::to_string(each.floor_ms) + ", " + std::to_string(each.limit_ms) + ")";
  }
  Violate(at, SnowflakeRule::kRight, text);
}

void SnowflakeChecker::Sent(Instant at, int server, std::int64_t above, const Minted& minted) {
  const std::int64_t first = minted.At(layout_, 0);
  if (first <= above) {
    Violate(at, SnowflakeRule::kOrder,
            "server " + std::to_string(server) + " answered " + std::to_string(first) + " after " +
                std::to_string(above));
  }
  auto& largest = largest_.try_emplace(server, -1).first->second;
  largest = std::max(largest, minted.At(layout_, minted.count - 1));
}

}  // namespace leaf::sim
