#pragma once

#include <string_view>

namespace leaf {

/// A named place at which a test can stop the process, as a scheduler, a hypervisor or a debugger
/// could at any instruction. Exists in builds with tests only.
///
/// snowflake.before_claim, after_claim, before_extend, after_extend, before_lower: around the calls
/// of the registry (core/snowflake/right_keeper.cc); claim_place: between reading a place and its
/// compare-and-swap (generator.h); before_mint, after_mint, before_send: around a request
/// (frontend/ids_handler.cc).
///
/// LEAFD_STOP_AT=NAME[:N] in the environment: the N-th pass (the first) of LEAF_FAILPOINT(NAME)
/// raises SIGSTOP.
#ifdef LEAF_FAILPOINTS
void PassFailpoint(std::string_view name) noexcept;
#define LEAF_FAILPOINT(name) ::leaf::PassFailpoint(name)
#else
#define LEAF_FAILPOINT(name) static_cast<void>(0)
#endif

}  // namespace leaf
