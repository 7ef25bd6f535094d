#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/segment/marks.h"
#include "leaf/result.h"

namespace leaf {

/// The bytes of a journal of marks: a header, then records, each with its own checksum. Numbers are
/// little-endian. A tag may have many records; the last one counts.
inline constexpr std::string_view kMarkHeader = "leafd marks 3\n\n\n";  // 16 bytes

/// What journals of earlier versions begin with. Their records are read, and others appended.
inline constexpr std::string_view kMarkHeader1 = "leafd marks 1\n\n\n";
inline constexpr std::string_view kMarkHeader2 = "leafd marks 2\n\n\n";

void AppendMark(std::string_view tag, const Mark& mark, std::string& out);

/// Calls `visit` for each record of a whole file and returns where the sound part ends: the size,
/// or less if a crash tore the tail. An error: no journal, or a broken record with a sound one
/// behind it.
Result<std::size_t> ParseMarks(std::string_view file,
                               const std::function<void(std::string_view, const Mark&)>& visit);

}  // namespace leaf
