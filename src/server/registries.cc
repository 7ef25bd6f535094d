#include "server/registries.h"

#include <string_view>
#include <utility>

#include "registry/blocking_registry.h"
#include "registry/etcd/etcd_registry.h"
#include "registry/fixed/fixed_registry.h"
#include "registry/memory/memory_registry.h"
#include "registry/mysql/mysql_registry.h"
#include "registry/postgres/postgres_registry.h"
#include "registry/sqlite/sqlite_registry.h"
#include "registry/zookeeper/zookeeper_registry.h"

namespace leaf {
namespace {

struct RegistryKind {
  std::string_view kind, store;  ///< `store` counts for the kind "store" only
  Result<RegistryFactory> (*make)(const Config&);
  RegistryTraits (*traits)(const RegistryOptions&);
};

RegistryTraits Free(const RegistryOptions&) { return {}; }
RegistryTraits Fixed(const RegistryOptions&) { return {.bound = true}; }

// The cluster that holds the tags holds the workers as well, below the same prefix.
RegistryOptions OfStore(RegistryOptions options, const StoreOptions& store) {
  options.servers = store.servers;
  options.chroot = store.path;
  options.user = store.user;
  options.password = store.password;
  options.parameters = store.parameters;
  return options;
}

constexpr RegistryKind kRegistries[] = {
    {"store", "memory",
     [](const Config& config) -> Result<RegistryFactory> {
       return MakeMemoryRegistry(config.snowflake.registry.cluster);
     },
     Free},
    {"store", "sqlite",
     [](const Config& config) {
       return MakeSqliteRegistry(config.store, config.snowflake.registry);
     },
     Free},
    {"store", "mysql",
     [](const Config& config) {
       return MakeMysqlRegistry(config.store, config.snowflake.registry);
     },
     Free},
    {"store", "postgres",
     [](const Config& config) {
       return MakePostgresRegistry(config.store, config.snowflake.registry);
     },
     Free},
    {"store", "etcd",
     [](const Config& config) {
       return MakeEtcdRegistry(OfStore(config.snowflake.registry, config.store),
                               config.store.min_durability);
     },
     Free},
    {"etcd", "",
     [](const Config& config) {
       return MakeEtcdRegistry(config.snowflake.registry, config.store.min_durability);
     },
     Free},
    {"fixed", "",
     [](const Config& config) -> Result<RegistryFactory> {
       return MakeFixedRegistry(config.snowflake.registry, config.server.state_dir);
     },
     Fixed},
    {"zookeeper", "",
     [](const Config& config) { return MakeZooKeeperRegistry(config.snowflake.registry); },
     ZooKeeperTraits},
};

Result<const RegistryKind*> KindOf(const Config& config) {
  const RegistryOptions& options = config.snowflake.registry;
  for (const RegistryKind& registry : kRegistries) {
    if (registry.kind != options.kind) continue;
    if (registry.store.empty() || registry.store == config.store.kind) return &registry;
  }
  return Error{Code::kInvalidArgument, "not in this version: snowflake.registry of kind " +
                                           options.kind + " on store " + config.store.kind};
}

}  // namespace

Result<RegistryFactory> MakeRegistryDriver(const Config& config) {
  LEAF_ASSIGN_OR_RETURN(const RegistryKind* const registry, KindOf(config));
  return registry->make(config);
}

Result<std::unique_ptr<WorkerRegistry>> MakeRegistry(const Config& config, Clock& clock) {
  LEAF_ASSIGN_OR_RETURN(const RegistryKind* const registry, KindOf(config));
  LEAF_ASSIGN_OR_RETURN(RegistryFactory factory, registry->make(config));
  BlockingRegistry::Options blocking;
  blocking.kind = config.snowflake.registry.kind;
  blocking.traits = registry->traits(config.snowflake.registry);
  return std::unique_ptr<WorkerRegistry>(
      std::make_unique<BlockingRegistry>(std::move(blocking), std::move(factory), clock));
}

}  // namespace leaf
