#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "store/driver.h"
#include "store/options.h"

namespace leaf {

/// A table in this process's memory, gone with it: Durability::kVolatile. Thread-safe.
class MemoryTable {
 public:
  MemoryTable();

  /// Puts a row as a hand would, whatever its values.
  void Put(std::string tag, std::int64_t max_id, std::int64_t step);
  std::optional<Row> Get(std::string_view tag);
  const std::string& identity() const noexcept { return identity_; }

 private:
  friend class MemoryDriver;
  const std::string identity_;
  Mutex mu_;
  std::map<std::string, Row, std::less<>> rows_ GUARDED_BY(mu_);
};

/// Sessions on a table of their own. For tests and for trying leafd out; it is never away.
Result<DriverFactory> MakeMemoryFactory(const StoreOptions& options);
/// Sessions on `table`.
DriverFactory MakeMemoryFactory(std::shared_ptr<MemoryTable> table);

}  // namespace leaf
