#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "leaf/result.h"
#include "store/driver.h"

namespace leaf::sqlite {

/// A row of leafd_worker as it is: worker, generation, owner, identity, limit_ms.
struct WorkerCells {
  std::string cluster;
  std::array<std::optional<std::string>, 5> cells;
};

/// What a look at a file found that a leafd may be working on.
struct Inspection {
  bool exists = false;     ///< if not, leafd makes it
  bool has_table = false;  ///< likewise
  std::string used_by;     ///< "process 12", while one has the file's lock; else empty
  bool is_wal = false;     ///< has a write-ahead log; leafd changes it if not
  StoreInfo info;          ///< identity: empty if leafd has not opened the file yet
  std::vector<Row> rows;   ///< all of them
  std::vector<UnreadableRow> unreadable;  ///< max_id or step is no integer
  std::vector<WorkerCells> workers;       ///< of all clusters
};

/// Reads the file without writing to it, by the rules of File and CheckTables; their errors, for
/// what leafd would refuse. Where there is no log it is read as it lies: whoever wrote has ended.
/// REQUIRES: this process has no SQLite connection to the file.
Result<Inspection> Inspect(const std::string& path, const std::string& table);

}  // namespace leaf::sqlite
