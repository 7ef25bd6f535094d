#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace leaf::sim {

/// What can happen in a history.
enum class What : std::uint8_t {
  kStart,
  kKill,
  kStop,
  kStopped,
  kPause,
  kTake,
  kTaken,
  kPark,
  kServed,
  kFailed,
  kCancel,
  kAbandon,
  kAsk,
  kExecute,
  kGrant,
  kStale,
  kRefused,
  kUnknown,
  kSilence,
  kHandBack,
  kHandedBack,
  kRaise,
  kCreate,
  kDelete,
  kSetStep,
  kResume,
  kDrop,
  kOutage,
  kHealed,
  kLock,
  kForeign,
  kMaxUp,
  kMaxDown,
  kRestore,
  kTakeOver,
  kVerdict,
};
const char* Name(What what) noexcept;

/// The story of one run: a hash over all steps, and the last of them for people. Confined.
class Trace {
 public:
  struct Step {
    Instant at;
    What what = What::kStart;
    int server = -1;  ///< -1: the world
    int tag = -1;     ///< -1: none
    std::int64_t a = 0, b = 0;
  };

  void Add(const Step& step);
  std::uint64_t hash() const noexcept { return hash_; }
  std::uint64_t steps() const noexcept { return steps_; }
  /// The last steps, one a line, oldest first.
  std::string Tail(std::size_t lines) const;

 private:
  static constexpr std::size_t kKept = 256;

  std::vector<Step> ring_;
  std::uint64_t steps_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace leaf::sim
