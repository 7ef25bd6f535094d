#pragma once

#include "leaf/result.h"
#include "registry/options.h"
#include "registry/registry_driver.h"
#include "store/options.h"

namespace leaf {

/// Workers in table `leafd_worker` of the SQLite file that also holds the tags; made when missing.
/// A local file has no clock of its own. Every change is one durable transaction (WAL,
/// synchronous=FULL), as for tags.
Result<RegistryFactory> MakeSqliteRegistry(const StoreOptions& store,
                                           const RegistryOptions& options);

}  // namespace leaf
