#pragma once

#include "leaf/result.h"
#include "registry/options.h"
#include "registry/registry_driver.h"

namespace leaf {

/// Workers in ZooKeeper, in Leaf's layout or the native one (RegistryOptions::leaf_layout), through
/// libzookeeper_mt. docs/guarantees.md says what each layout promises; the nodes are described in
/// zookeeper_registry.cc.
Result<RegistryFactory> MakeZooKeeperRegistry(const RegistryOptions& options);

/// Its traits: Leaf's layout binds workers to nodes, has foreign writers and reports each 3 s.
RegistryTraits ZooKeeperTraits(const RegistryOptions& options) noexcept;

}  // namespace leaf
