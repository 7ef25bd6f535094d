#include "core/snowflake/wall.h"

#include <cstdlib>

namespace leaf {
namespace {

constexpr std::int64_t kMs = 1'000'000;
/// The largest step forward that is believed by itself, in nanoseconds.
constexpr std::int64_t kFollowed = 1'000 * kMs;

std::int64_t OffsetOf(Instant now, std::int64_t wall_ms) noexcept {
  return wall_ms * kMs - now.time_since_epoch().count();
}

}  // namespace

Wall::Wall(Options options, Instant now, std::int64_t wall_ms) noexcept
    : options_(options),
      offset_(OffsetOf(now, wall_ms)),
      registry_has_clock_(options.registry_has_clock) {}

void Wall::Follow(std::int64_t step) noexcept {
  if (step <= -kMs) steps_back_.fetch_add(1, std::memory_order_relaxed);
  if (step > kFollowed) steps_forward_.fetch_add(1, std::memory_order_relaxed);
  offset_.store(offset_.load(std::memory_order_relaxed) + step, std::memory_order_relaxed);
  doubt_.reset();
}

void Wall::Look(Instant now, std::int64_t wall_ms, std::int64_t reached_ms) noexcept {
  // A reading is a whole millisecond, cut off, so on average half of one below the truth: what is
  // within it is no step.
  const std::int64_t step = OffsetOf(now, wall_ms) - offset_.load(std::memory_order_relaxed);
  if (step > -kMs && step <= 0) {
    doubt_.reset();
    return;
  }
  if (step >= -options_.drift.count() && step <= kFollowed) {
    Follow(step);
    return;
  }
  // Forward, what ids have reached already spends nothing of the worker's future.
  if (!registry_has_clock_ && (step < 0 || wall_ms <= reached_ms + kFollowed / kMs)) {
    Follow(step);
    return;
  }
  // The same step as at the last look, or another one: the clock may go on jumping.
  if (!doubt_ || std::llabs(doubt_->step - step) > kFollowed) doubt_ = Doubt{step, now, false};
  doubt_->step = step;
  if (!registry_has_clock_ && now - doubt_->since >= options_.patience) Follow(step);
}

void Wall::Confirm(std::int64_t registry_ms, Instant sent, Instant received,
                   std::int64_t wall_ms) noexcept {
  // The registry read its clock between the two; the middle is off by half of the trip at most.
  const std::int64_t middle =
      sent.time_since_epoch().count() / 2 + received.time_since_epoch().count() / 2;
  const std::int64_t registry_offset = registry_ms * kMs - middle;
  const std::int64_t believed = offset_.load(std::memory_order_relaxed);
  ahead_ = (believed - registry_offset) / kMs;
  registry_has_clock_ = true;
  Look(received, wall_ms);
  if (!doubt_) return;
  const std::int64_t with_wall = std::llabs(believed + doubt_->step - registry_offset);
  if (with_wall < std::llabs(believed - registry_offset)) {
    Follow(doubt_->step);
    ahead_ = (offset_.load(std::memory_order_relaxed) - registry_offset) / kMs;
  } else {
    doubt_->refused = true;
  }
}

std::int64_t Wall::doubt_ms() const noexcept { return doubt_ ? doubt_->step / kMs : 0; }

}  // namespace leaf
