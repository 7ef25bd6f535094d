#pragma once

#include <cstdint>
#include <string>

namespace leaf {

/// "2019-09-06T01:35:00.834Z" of milliseconds since 1970, for years 0 to 9999; else only the
/// number.
std::string IsoTime(std::int64_t unix_ms);

}  // namespace leaf
