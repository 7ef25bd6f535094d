#pragma once

#include "cli/findings.h"
#include "config/config.h"

namespace leaf {

/// Judges the store, the registry of workers and the state folder as a leafd with this
/// configuration would, with its timeouts, and changes none of them. What cannot be reached is a
/// finding, and the rest goes on.
doctor::Report RunDoctor(const Config& config);

/// The report of a configuration that cannot be used: `message` is LoadConfig's.
doctor::Report BadConfig(const std::string& message);

}  // namespace leaf
