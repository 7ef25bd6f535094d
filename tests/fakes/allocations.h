#pragma once

#include <cstdint>

namespace leaf::fakes {

/// Calls of operator new so far, in a program that is linked with allocations.cc.
std::int64_t Allocations() noexcept;

}  // namespace leaf::fakes
