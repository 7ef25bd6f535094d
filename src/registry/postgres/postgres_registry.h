#pragma once

#include <string>

#include "leaf/result.h"
#include "registry/options.h"
#include "registry/registry_driver.h"
#include "store/options.h"

namespace leaf {

/// Workers in table `leafd_worker`, in the schema that also holds Leaf's table. It is not made by
/// leafd: Open's error holds the statement (or run `leafctl store init`). Needs SELECT, INSERT and
/// UPDATE on it. The clock is the server's `clock_timestamp()`. A pooler in transaction mode may
/// stand between.
Result<RegistryFactory> MakePostgresRegistry(const StoreOptions& store,
                                             const RegistryOptions& options);

/// The statement that makes the table; also what `leafctl store init` runs.
std::string PostgresWorkerTableDdl(const std::string& quoted_table);

}  // namespace leaf
