#pragma once

#include "config/config.h"
#include "config/config_leaf.h"
#include "config/config_settings.h"

namespace leaf::config {

/// Fills config.store from store.url, store.password_file and, if there is one, leaf.properties.
/// `config` has every other value already.
void ResolveStore(const Settings& settings, const LeafFile* leaf, Config& config,
                  Findings& findings);

}  // namespace leaf::config
