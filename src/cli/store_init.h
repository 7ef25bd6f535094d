#pragma once

#include <string>

#include "config/config.h"
#include "leaf/result.h"

namespace leaf {

/// The statements that make the tables of a MySQL store where they are missing, one a line. For
/// SQLite and memory: a comment that leafd makes them itself.
Result<std::string> StoreDdl(const Config& config);

/// Makes what is missing and says what it did, in lines for people.
Result<std::string> InitStore(const Config& config);

}  // namespace leaf
