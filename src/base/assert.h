#pragma once

namespace leaf {
/// Prints the broken condition and aborts.
[[noreturn]] void AssertFailed(const char* condition, const char* file, int line) noexcept;
}  // namespace leaf

/// On in release builds too: stopping is better than issuing an id twice. For what our own code
/// must keep true, never for what a store, a client or a file says.
#define LEAF_ASSERT(condition)                  \
  (__builtin_expect(!!(condition), 1) ? (void)0 \
                                      : ::leaf::AssertFailed(#condition, __FILE__, __LINE__))
