#pragma once

#include <string_view>

#include "config/url.h"
#include "leaf/result.h"

namespace leaf {

/// A JDBC URL as MySQL's Connector/J and MariaDB's driver read it; docs/migrating-from-leaf.md has
/// the table of parameters. What cannot be honoured becomes a warning where that is safe, an error
/// where not; encryption and verification are never weakened. Errors as of ParseStoreUrl.
/// REQUIRES: it begins with "jdbc:".
Result<StoreUrl> ParseJdbcUrl(std::string_view text);

}  // namespace leaf
