#include "trace.h"

#include <algorithm>
#include <cstdio>

namespace leaf::sim {

const char* Name(What what) noexcept {
  switch (what) {
    case What::kStart:
      return "start";
    case What::kKill:
      return "kill";
    case What::kStop:
      return "stop";
    case What::kStopped:
      return "stopped";
    case What::kPause:
      return "pause until";
    case What::kTake:
      return "wants";
    case What::kTaken:
      return "taken";
    case What::kPark:
      return "parked";
    case What::kServed:
      return "served";
    case What::kFailed:
      return "failed";
    case What::kCancel:
      return "cancelled";
    case What::kAbandon:
      return "abandoned";
    case What::kAsk:
      return "ask";
    case What::kExecute:
      return "executed";
    case What::kGrant:
      return "grant";
    case What::kStale:
      return "stale grant";
    case What::kRefused:
      return "refused";
    case What::kUnknown:
      return "unknown";
    case What::kSilence:
      return "silence";
    case What::kHandBack:
      return "hand back";
    case What::kHandedBack:
      return "handed back";
    case What::kRaise:
      return "raise to";
    case What::kCreate:
      return "create";
    case What::kDelete:
      return "delete";
    case What::kSetStep:
      return "set step";
    case What::kResume:
      return "resume";
    case What::kDrop:
      return "drop";
    case What::kOutage:
      return "outage";
    case What::kHealed:
      return "healed";
    case What::kLock:
      return "row locked until";
    case What::kForeign:
      return "foreign lease";
    case What::kMaxUp:
      return "max_id up";
    case What::kMaxDown:
      return "max_id down";
    case What::kRestore:
      return "restore";
    case What::kTakeOver:
      return "take-over";
    case What::kVerdict:
      return "VERDICT";
  }
  return "?";
}

void Trace::Add(const Step& step) {
  const auto mix = [this](std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x100000001b3u;
    hash_ ^= hash_ >> 29;
  };
  mix(static_cast<std::uint64_t>(step.at.time_since_epoch().count()));
  mix(static_cast<std::uint64_t>(step.what));
  mix(static_cast<std::uint64_t>(step.server) << 32 ^ static_cast<std::uint64_t>(step.tag));
  mix(static_cast<std::uint64_t>(step.a));
  mix(static_cast<std::uint64_t>(step.b));
  if (ring_.size() < kKept) {
    ring_.push_back(step);
  } else {
    ring_[steps_ % kKept] = step;
  }
  ++steps_;
}

std::string Trace::Tail(std::size_t lines) const {
  std::string text;
  const std::size_t held = ring_.size();
  const std::size_t shown = std::min(lines, held);
  for (std::size_t i = held - shown; i < held; ++i) {
    const Step& step = ring_[(steps_ - held + i) % held];
    char line[160];
    std::snprintf(line, sizeof line, "%12.6f s  %-8s %-4s %-16s %lld %lld\n",
                  static_cast<double>(step.at.time_since_epoch().count()) / 1e9,
                  step.server < 0 ? "world" : ("server" + std::to_string(step.server)).c_str(),
                  step.tag < 0 ? "" : ("t" + std::to_string(step.tag)).c_str(), Name(step.what),
                  static_cast<long long>(step.a), static_cast<long long>(step.b));
    text += line;
  }
  return text;
}

}  // namespace leaf::sim
