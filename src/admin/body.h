#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "leaf/result.h"

namespace leaf {

/// Bodies of admin requests: flat JSON objects. Strict: an unknown or repeated key, a wrong type, a
/// nested value or bytes behind the object are kInvalidArgument, with what was expected.

/// PUT /api/v1/tags/{tag}: {"step":1000,"max_id":"1"}. step is 1 to 2^31 - 1 as Leaf's column holds
/// it, max_id a decimal string from 0 to 2^63 - 2.
struct PutBody {
  std::int64_t step = 0;
  std::optional<std::int64_t> max_id;
};
Result<PutBody> ParsePutBody(std::string_view body);

/// POST .../resume: {"skip":1000}; skip is 0 or more.
Result<std::int64_t> ParseResumeBody(std::string_view body);

/// A request without a body, or with {}.
Result<void> ParseEmptyBody(std::string_view body);

}  // namespace leaf
