#include "core/segment/policy.h"

#include <algorithm>
#include <chrono>

namespace leaf {

namespace {

// Leaf tests "less than nine tenths are left" before it takes the id of the same request; so the
// request that finds floor(size / 10) + 1 ids gone is the one that asks.
std::int64_t BeyondTenth(Range newest) noexcept { return newest.first + newest.size() / 10 + 1; }

class FixedPolicy final : public RefillPolicy {
 public:
  const char* name() const noexcept override { return "fixed"; }
  std::int64_t NextCount(const Demand& demand, Instant) const noexcept override {
    return demand.row_step;
  }
  std::int64_t MostCount(std::int64_t row_step) const noexcept override { return row_step; }
  std::int64_t RefillAt(Range newest, const Demand&) const noexcept override {
    return BeyondTenth(newest);
  }
};

class LeafPolicy final : public RefillPolicy {
 public:
  const char* name() const noexcept override { return "leaf"; }

  std::int64_t NextCount(const Demand& demand, Instant now) const noexcept override {
    if (demand.leases < 2) return demand.row_step;
    const std::int64_t last = demand.last_count;
    const Duration since = now - demand.last_lease;
    std::int64_t next = last;
    if (since < kDuration) {
      if (last <= kMaxStep / 2) next = last * 2;
    } else if (since >= 2 * kDuration) {
      const std::int64_t half = last / 2;
      if (half >= demand.row_step) next = half;
    }
    return std::max(next, demand.row_step);
  }

  std::int64_t MostCount(std::int64_t row_step) const noexcept override {
    return std::max(row_step, kMaxStep);
  }

  std::int64_t RefillAt(Range newest, const Demand&) const noexcept override {
    return BeyondTenth(newest);
  }

 private:
  static constexpr std::int64_t kMaxStep = 1'000'000;
  static constexpr Duration kDuration = std::chrono::minutes(15);
};

}  // namespace

std::unique_ptr<RefillPolicy> MakeLeafPolicy() { return std::make_unique<LeafPolicy>(); }
std::unique_ptr<RefillPolicy> MakeFixedPolicy() { return std::make_unique<FixedPolicy>(); }

}  // namespace leaf
