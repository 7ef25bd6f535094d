#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/segment/range.h"
#include "world.h"

namespace leaf::sim {

/// What a history can break; I1 and so on are those of docs/guarantees.md.
enum class Rule : std::uint8_t {
  kUnique,     ///< I1: an id was issued twice
  kMemory,     ///< an id below the mark with which the server started
  kOrder,      ///< I3: an id below one that was answered before the request arrived
  kQueue,      ///< a waiter was passed over
  kDeadline,   ///< I5: a request did not end in time
  kLoss,       ///< I4: more ids lost than allowed
  kFalseStop,  ///< a tag was stopped though its row never went back
  kAnswer,     ///< an error that nothing in the history explains
  kProgress,   ///< no id though nothing was wrong
  kStop,       ///< a clean stop that did not end, or gave back less than it could
  kSpin,       ///< the engine asks to be called again and again
  kAccount,    ///< ids leased are not ids issued plus held plus discarded
};
inline constexpr int kRuleCount = 12;
const char* Name(Rule rule) noexcept;

/// A set of ids, kept as disjoint ranges.
class IdSet {
 public:
  /// The part of the first range held that `range` shares.
  std::optional<Range> Overlap(Range range) const;
  /// REQUIRES: no overlap.
  void Insert(Range range);

 private:
  std::map<std::int64_t, std::int64_t> last_of_;  // by first
};

/// Judges a history while it happens. A duplicate between servers is excused only after the world
/// moved the row back by force, because a server cannot notice what it never saw; a server's own
/// duplicates are excused only where a crash cost it the memory of them as well. Confined.
class Checker {
 public:
  Checker(World& world, int servers, int tags);

  struct Violation {
    Rule rule;
    Instant at;
    std::string text;
  };
  void Fail(Rule rule, std::string text);
  const std::vector<Violation>& violations() const noexcept { return violations_; }
  /// The steps that led to the first violation.
  const std::string& trace() const noexcept { return trace_; }
  bool Broke(Rule rule) const noexcept { return broken_[static_cast<std::size_t>(rule)] > 0; }

  /// The largest id of the tag that the server has answered: to be remembered at arrival.
  std::int64_t Floor(int server, int tag) const { return Of(server, tag).answered; }
  /// The ids left the engine: nobody else may get them, whether or not the client does.
  void Issued(int server, int tag, const Ranges& ids);
  /// The answer left the server. `floor` is what Floor said when its request arrived.
  void Answered(int server, int tag, const Ranges& ids, std::int64_t floor);
  /// Another program on the same table took these.
  void Foreign(int tag, Range ids);
  /// A server gave these back to the row.
  void HandedBack(int server, int tag, Range ids);

  /// The server started, and its journal says that its mark of the tag is `mark`.
  void Remembers(int server, int tag, std::int64_t mark);
  /// A crash cost the server memory of the tag's latest leases.
  void Forgets(int server, int tag) { Of(server, tag).forgot = true; }
  /// The world moved the row back by force.
  void Regressed(int tag) { regressed_[static_cast<std::size_t>(tag)] = true; }
  bool regressed(int tag) const { return regressed_[static_cast<std::size_t>(tag)]; }
  /// A failover lost the row's last updates: a server that knows better may stop the tag, but no id
  /// may be issued twice.
  void Lost(int tag) { lost_[static_cast<std::size_t>(tag)] = true; }
  bool may_stop(int tag) const { return regressed(tag) || lost_[static_cast<std::size_t>(tag)]; }

  std::uint64_t ids() const noexcept { return ids_; }
  std::uint64_t answers() const noexcept { return answers_; }
  std::uint64_t excused() const noexcept { return excused_; }

 private:
  struct PerServer {
    IdSet issued;
    std::int64_t answered = -1;
    std::int64_t mark = 0;
    bool forgot = false;
  };
  const PerServer& Of(int server, int tag) const;
  PerServer& Of(int server, int tag);
  bool CheckUnique(int owner, int tag, Range ids);

  World& world_;
  int servers_;
  int tags_;
  std::vector<PerServer> per_;  // servers, then the foreigner; each with its tags
  std::vector<bool> regressed_, lost_;
  std::vector<Violation> violations_;
  std::string trace_;
  std::array<int, kRuleCount> broken_{};
  std::uint64_t ids_ = 0, answers_ = 0, excused_ = 0;
};

}  // namespace leaf::sim
