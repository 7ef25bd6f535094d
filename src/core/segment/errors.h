#pragma once

#include <string_view>

#include "base/time.h"
#include "leaf/result.h"

namespace leaf {

/// The engine's errors, each in one place, so that they read alike everywhere.
Error NoSuchTag(std::string_view tag);
Error ShuttingDown();
Error TooManyWaiters();
Error TooManyLookups(std::string_view tag);
Error NoIdsInTime(std::string_view tag, Duration wait, std::string_view reason);
Error SpaceExhausted(std::string_view tag);
/// Says how to resume the tag; `admin_url` is what curl needs to reach the admin listener, empty if
/// there is none.
Error RowWentBack(std::string_view tag, std::string_view admin_url, std::string_view detail);

}  // namespace leaf
