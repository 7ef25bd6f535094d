#pragma once

#include <string>

#include "leaf/result.h"
#include "registry/registry_driver.h"

namespace leaf {

/// Workers in this process's memory, for `store.url = "memory:"` and for tests. Sessions of one
/// factory share them. `clock` is the registry's own clock if given, else it has none. kUnavailable
/// never.
RegistryFactory MakeMemoryRegistry(std::string cluster, const Clock* clock = nullptr);

}  // namespace leaf
