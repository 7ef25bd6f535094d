#pragma once

#include <memory>

#include "base/time.h"
#include "config/config.h"
#include "core/snowflake/worker_registry.h"
#include "leaf/result.h"
#include "registry/registry_driver.h"

namespace leaf {

/// The registry of workers that the configuration names: the one table of all kinds of registries.
/// `clock` outlives it.
Result<std::unique_ptr<WorkerRegistry>> MakeRegistry(const Config& config, Clock& clock);
/// Likewise, the driver alone.
Result<RegistryFactory> MakeRegistryDriver(const Config& config);

}  // namespace leaf
