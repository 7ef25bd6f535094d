#pragma once

#include "store/driver.h"
#include "store/options.h"

namespace leaf {

/// The embedded store: one SQLite file (`options.path`, absolute), used by one process at a time.
///
/// WAL with synchronous=FULL, so that a commit survives a power loss (Durability::kPower; kProcess
/// on a file system that lives in memory). The sessions of a factory share its lock on `PATH.lock`,
/// taken by the first Open and held until the factory and its sessions are gone; Open's error names
/// the process that holds it. Network file systems are refused. The table is made if it is missing,
/// the file with mode 0600. update_time is UTC, "YYYY-MM-DD HH:MM:SS.0".
///
/// The identity is a random name in the file plus its inode, so that a copy differs. A file that is
/// removed while sessions are open is an error until it is back; it is not made anew then.
Result<DriverFactory> MakeSqliteFactory(const StoreOptions& options);

}  // namespace leaf
