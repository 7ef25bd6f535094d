#pragma once

#include <string>
#include <string_view>

#include "leaf/result.h"
#include "registry/claim.h"

namespace leaf {

/// What the key of a worker holds:
/// {"generation":"1","owner":"..","identity":"HOST:PORT LAYOUT","limit_ms":"1700000000000"}
std::string WorkerText(const WorkerRow& row);

/// Reads what WorkerText writes: these four names and no other, every value in quotation marks.
/// kUnavailable with the key, the value and the form that is wanted. Whether the numbers make sense
/// is another question (CheckRow).
Result<WorkerRow> ParseWorker(std::string_view key, std::int64_t worker, std::string_view value);

}  // namespace leaf
