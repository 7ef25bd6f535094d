#pragma once

#include <memory>
#include <string>

#include "base/time.h"
#include "core/segment/segment_store.h"
#include "leaf/result.h"
#include "store/driver.h"
#include "store/options.h"

namespace leaf {

/// The one place that knows every store: the table from StoreOptions::kind to its driver. Opens no
/// connection. kInvalidArgument for a kind that this version does not have.
Result<std::unique_ptr<SegmentStore>> MakeStore(const StoreOptions& options, Clock& clock);
/// Likewise, the driver alone.
Result<DriverFactory> MakeStoreDriver(const StoreOptions& options);

/// The name of the journal of marks in the state folder. The marks belong to one table, so a state
/// folder that is pointed at another store starts another journal. The host is left out: a failover
/// or a new address must not lose the marks.
std::string MarkFileName(const StoreOptions& store);

}  // namespace leaf
