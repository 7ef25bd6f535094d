#include "base/failpoint.h"

#ifdef LEAF_FAILPOINTS

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>

namespace leaf {
namespace {

struct Armed {
  std::string_view name;
  std::atomic<long> passes_left{1};

  Armed() {
    const char* text = std::getenv("LEAFD_STOP_AT");
    if (text == nullptr) return;
    name = text;
    const auto colon = name.rfind(':');
    if (colon == std::string_view::npos) return;
    long passes = 0;
    const char* last = name.data() + name.size();
    if (std::from_chars(name.data() + colon + 1, last, passes).ptr == last) passes_left = passes;
    name = name.substr(0, colon);
  }
};

}  // namespace

void PassFailpoint(std::string_view name) noexcept {
  static Armed armed;
  if (armed.name != name) return;
  if (armed.passes_left.fetch_sub(1, std::memory_order_relaxed) == 1) raise(SIGSTOP);
}

}  // namespace leaf

#endif
