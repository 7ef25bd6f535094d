#pragma once

#include <cstdint>
#include <string_view>

#include "codec/http1/message.h"
#include "core/snowflake/layout.h"

namespace leaf {

/// Leaf's /decodeSnowflakeId: the id comes in the query or in a posted form, the time is told in
/// the host's zone (TZ), an id that cannot be read is 200 with errorMsg. `wall_ms` stamps error
/// bodies.
http1::Response DecodeAsLeaf(const http1::Request& request, std::int64_t wall_ms);

/// GET /api/v1/decode/{id}?layout=: `id` decoded, a number from 0 to 2^63 - 1; by default in `own`,
/// the layout of this server, which is also what `layout=custom` means.
http1::Response DecodeId(std::string_view id, const http1::Request& request, const Layout& own);

}  // namespace leaf
