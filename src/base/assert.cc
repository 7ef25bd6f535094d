#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace leaf {

void AssertFailed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "leafd: broken invariant at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace leaf
