#pragma once

#include <string>

#include "registry/options.h"
#include "registry/registry_driver.h"

namespace leaf {

/// One worker, given by hand (`fixed:N`), whose limit is kept in a file of the state folder:
/// durable (fsync of file and folder) before it counts. The file knows where it was written (inode,
/// machine): a copied one is refused, with what to do. A broken one likewise. No clock of its own.
RegistryFactory MakeFixedRegistry(const RegistryOptions& options, std::string state_dir);

}  // namespace leaf
