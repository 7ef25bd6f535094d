#pragma once

#include <string_view>

#include "base/executor.h"
#include "base/time.h"
#include "codec/http1/writer.h"
#include "core/request_stats.h"
#include "core/segment/engine.h"

namespace leaf {

/// What the lanes of one reactor see of it. Confined to its thread, but for the counters.
struct ReactorState {
  Executor& home;
  const Clock& clock;
  Engine* engine = nullptr;  ///< nullptr: no segment mode here
  Reader* reader = nullptr;  ///< set while the loop runs
  Instant now{};             ///< read once a turn
  bool draining = false;     ///< answers end their connections
  http1::DateLine date{};
  std::string_view date_line{};
  RequestStats stats{};
};

}  // namespace leaf
