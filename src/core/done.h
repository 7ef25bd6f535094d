#pragma once

#include <functional>

#include "leaf/result.h"

namespace leaf {

/// Called at most once, from any thread: with the result, or with an error. A late or lost answer
/// may never come; the asker keeps its own deadline.
template <typename T>
using Done = std::function<void(Result<T>)>;

}  // namespace leaf
