#include "registry/memory/memory_registry.h"

#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "registry/row_registry.h"

namespace leaf {
namespace {

struct Table {
  std::string cluster;
  const Clock* clock = nullptr;
  Mutex mu;
  std::map<std::int64_t, WorkerRow> rows GUARDED_BY(mu);
};

class MemoryRegistry final : public RowRegistry {
 public:
  explicit MemoryRegistry(std::shared_ptr<Table> table) : table_(std::move(table)) {}

  Result<void> Open(Instant, std::vector<std::string>&) override {
    open_ = true;
    return {};
  }
  bool connected() const noexcept override { return open_; }
  void Close() noexcept override { open_ = false; }
  void Interrupt() noexcept override {}  // no call waits

 protected:
  Result<Snapshot> Read(std::optional<std::int64_t> worker, Instant) override {
    MutexLock lock(table_->mu);
    Snapshot seen;
    if (table_->clock != nullptr) seen.registry_ms = table_->clock->WallMillis();
    for (const auto& [number, row] : table_->rows) {
      if (!worker || *worker == number) seen.rows.push_back(row);
    }
    return seen;
  }
  Result<bool> Insert(const WorkerRow& row, Instant) override {
    MutexLock lock(table_->mu);
    return table_->rows.emplace(row.record.worker, row).second;
  }
  Result<bool> Replace(const WorkerRecord& from, const WorkerRow& to, Instant) override {
    MutexLock lock(table_->mu);
    const auto at = table_->rows.find(from.worker);
    if (at == table_->rows.end()) return false;
    const WorkerRecord& now = at->second.record;
    if (now.owner != from.owner || now.generation != from.generation ||
        now.limit_ms != from.limit_ms)
      return false;
    at->second = to;
    return true;
  }
  std::string Where() const override { return "memory: the workers of " + table_->cluster; }

 private:
  const std::shared_ptr<Table> table_;
  bool open_ = false;
};

}  // namespace

RegistryFactory MakeMemoryRegistry(std::string cluster, const Clock* clock) {
  auto table = std::make_shared<Table>();
  table->cluster = std::move(cluster);
  table->clock = clock;
  return [table = std::move(table)]() -> std::unique_ptr<RegistryDriver> {
    return std::make_unique<MemoryRegistry>(table);
  };
}

}  // namespace leaf
