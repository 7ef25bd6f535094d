#pragma once

#include "core/segment/segment_store.h"
#include "leaf/result.h"
#include "registry/options.h"
#include "registry/registry_driver.h"

namespace leaf {

/// Workers in etcd, one key each: `PREFIX/worker/CLUSTER/WORKER` with the value
/// `{"generation":"1","owner":"..","identity":"HOST:PORT LAYOUT","limit_ms":"1700000000000"}`, and
/// exactly that; any other value is an error that names the key and the value, and heals when it is
/// mended. etcd has no clock of its own: rights carry no registry_ms.
///
/// Every write is one transaction that compares the revision of the key with the one read. All
/// reads are linearizable. A role with read and write permission on `PREFIX/worker/CLUSTER/` is
/// enough. Options: servers, chroot (the prefix), user, password, parameters ssl-*.
/// kInvalidArgument for options that cannot be used.
Result<RegistryFactory> MakeEtcdRegistry(const RegistryOptions& options, Durability demanded);

}  // namespace leaf
