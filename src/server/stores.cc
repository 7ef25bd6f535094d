#include "server/stores.h"

#include <cstdio>
#include <string_view>
#include <utility>

#include "base/fnv.h"
#include "store/blocking_store.h"
#include "store/etcd/etcd_driver.h"
#include "store/memory/memory_driver.h"
#include "store/mysql/mysql_driver.h"
#include "store/postgres/postgres_driver.h"
#include "store/sqlite/sqlite_driver.h"

namespace leaf {
namespace {

struct StoreKind {
  std::string_view kind;
  Result<DriverFactory> (*make)(const StoreOptions&);
};

constexpr StoreKind kStores[] = {
    {"memory", MakeMemoryFactory},     {"sqlite", MakeSqliteFactory}, {"mysql", MakeMysqlFactory},
    {"postgres", MakePostgresFactory}, {"etcd", MakeEtcdFactory},
};

}  // namespace

Result<DriverFactory> MakeStoreDriver(const StoreOptions& options) {
  for (const StoreKind& store : kStores) {
    if (store.kind == options.kind) return store.make(options);
  }
  return Error{Code::kInvalidArgument, "not in this version: store.url of kind " + options.kind};
}

Result<std::unique_ptr<SegmentStore>> MakeStore(const StoreOptions& options, Clock& clock) {
  LEAF_ASSIGN_OR_RETURN(DriverFactory factory, MakeStoreDriver(options));
  return std::unique_ptr<SegmentStore>(
      std::make_unique<BlockingStore>(BlockingOptions(options), std::move(factory), clock));
}

std::string MarkFileName(const StoreOptions& store) {
  const std::string table =
      store.kind + "\n" + store.path + "\n" + store.database + "\n" + store.table;
  char name[64];
  std::snprintf(name, sizeof name, "marks-%s-%016llx", store.kind.c_str(),
                static_cast<unsigned long long>(Fnv1a(table)));
  return name;
}

}  // namespace leaf
