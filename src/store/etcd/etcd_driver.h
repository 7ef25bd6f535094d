#pragma once

#include "leaf/result.h"
#include "store/driver.h"
#include "store/options.h"

namespace leaf {

/// Leaf's table in etcd (v3 API, 3.4 or later): one key a tag, `PREFIX/TABLE/TAG`, with the value
/// `{"max_id":"1001","step":1000}`, and exactly that; any other value is a refusal that names the
/// key and the value, and heals when it is mended.
///
/// A reservation is one transaction: if the key still has the revision and the value that this
/// process saw last, it gets the new value; else the present one comes back with the answer and is
/// tried next. Servers that reserve the same tag at the same time win in turn; one that loses too
/// often is refused. Many asks travel at once over the session's one connection, each with its own
/// answer. All reads are linearizable, so a member that is cut off says nothing.
///
/// Each call ends by its deadline. A transaction that was sent and not clearly answered is
/// kUnknown and ends the session, and the next session begins with another endpoint; so does a
/// member that has no leader, is a learner or is going away, without a doubt about the outcome.
///
/// Open judges the cluster: alarms, permissions (by a transaction that can change nothing),
/// durability: `replicated` with two voting members or more, `power` with one or where the list of
/// members may not be read. Judged again before a reservation that comes a second or more after the
/// last look; a difference ends the session. Every answer carries the id of the cluster, and
/// another one than Open saw makes the outcome unknown.
///
/// A role with read and write permission on the prefix `PREFIX/TABLE/` is enough. kInvalidArgument
/// for options that cannot be used (see ParseEtcdSettings).
Result<DriverFactory> MakeEtcdFactory(const StoreOptions& options);

}  // namespace leaf
