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
/// `subject` ("the store") keeps less than store.min_durability demands.
Error TooWeak(std::string_view subject, Durability level, Durability demanded);
/// A change was acknowledged by a server that is not as it was judged.
Error Changed();
/// `add` ids do not fit between max_id and the end of the id space.
Error Exhausted(std::string_view tag, std::int64_t max_id, std::int64_t add);
/// "tag 'x' has max_id NULL", or step.
std::string HasNull(std::string_view tag, bool max_id);
/// Why a row that exists cannot grant `count` ids; nullopt if it can.
std::optional<Error> BadRow(std::string_view tag, std::int64_t max_id, std::int64_t step,
                            std::int64_t count);

}  // namespace leaf::refusal
