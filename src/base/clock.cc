#include <ctime>

#include "base/time.h"

namespace leaf {
namespace {

std::int64_t Nanos(clockid_t id) noexcept {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

class HostClock final : public Clock {
 public:
  Instant Now() const noexcept override { return Instant(Duration(Nanos(CLOCK_MONOTONIC))); }
  std::int64_t WallMillis() const noexcept override { return Nanos(CLOCK_REALTIME) / 1'000'000; }
};

}  // namespace

Clock& SystemClock() noexcept {
  static HostClock* const clock = new HostClock;  // never destroyed: threads may outlive main
  return *clock;
}

}  // namespace leaf
