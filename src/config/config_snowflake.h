#pragma once

#include "config/config.h"
#include "config/config_leaf.h"
#include "config/config_settings.h"

namespace leaf::config {

/// Fills config.snowflake from the snowflake.* keys: layout, registry, name and identity belong
/// together. `config` has every plain value of its own already.
void ResolveSnowflake(const Settings& settings, const LeafFile* leaf, Config& config,
                      Findings& findings);

/// Whether workers are kept beside the tags, so that the store is needed for them too.
bool KeepsWorkersInStore(const Config& config);

/// What needs the store and the listeners as well: a registry that no other host can see is not
/// taken by default where other hosts can come. `config.store` is resolved.
void CheckLocalRegistry(const Settings& settings, Config& config);

}  // namespace leaf::config
