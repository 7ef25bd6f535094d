#include "base/random.h"

#include <sys/random.h>

#include "base/assert.h"

namespace leaf {
namespace {

class HostRandom final : public Random {
 public:
  std::uint64_t Next() noexcept override {
    std::uint64_t value = 0;
    // Up to 256 bytes come whole once the kernel's pool is initialised.
    LEAF_ASSERT(getrandom(&value, sizeof value, 0) == static_cast<ssize_t>(sizeof value));
    return value;
  }
};

}  // namespace

Random& SystemRandom() noexcept {
  static HostRandom* const random = new HostRandom;  // never destroyed: threads may outlive main
  return *random;
}

}  // namespace leaf
