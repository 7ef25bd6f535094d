#pragma once

#include "config/config.h"
#include "config/config_settings.h"

namespace leaf::config {

/// Checks listeners, and values that must agree with each other. `config` is complete.
void CheckTogether(const Settings& settings, const Config& config, Findings& findings);

/// Whether clients of other hosts can reach this listener.
bool IsBeyondLoopback(std::string_view listener);

}  // namespace leaf::config
