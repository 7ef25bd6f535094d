#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/segment/segment_store.h"

/// The refusals that every store words alike.
namespace leaf::refusal {

Error NoRow(std::string_view tag);
Error Exists(std::string_view tag);
Error Late(std::string_view kind);
/// `add` ids do not fit between max_id and the end of the id space.
Error Exhausted(std::string_view tag, std::int64_t max_id, std::int64_t add);
/// Why a row that exists cannot grant `count` ids; nullopt if it can.
std::optional<Error> BadRow(std::string_view tag, std::int64_t max_id, std::int64_t step,
                            std::int64_t count);

}  // namespace leaf::refusal
