#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "registry/claim.h"
#include "registry/registry_driver.h"

namespace leaf {

/// A registry of rows that anyone may take: the protocol of claims and extensions over three
/// primitives, each of them one statement. Every write compares the whole row with what was read
/// (owner, generation, limit), so one that was abandoned and lands late either finds what it was
/// meant for or does nothing. Confined as RegistryDriver is.
class RowRegistry : public RegistryDriver {
 public:
  Result<WorkerRight> Claim(const ClaimAsk& ask) final;
  Result<WorkerRight> Extend(const WorkerRight& right, std::int64_t limit_ms, std::int64_t lease_ms,
                             Instant deadline) final;
  Result<WorkerRight> Lower(const WorkerRight& right, std::int64_t limit_ms,
                            Instant deadline) final;
  Result<std::vector<WorkerRecord>> List(Instant deadline) final;
  Result<WorkerRecord> Retire(std::int64_t worker, Instant deadline) final;
  Result<std::optional<std::int64_t>> Now(Instant deadline) final;

 protected:
  struct Snapshot {
    std::vector<WorkerRow> rows;              ///< by worker
    std::optional<std::int64_t> registry_ms;  ///< read with the rows
  };
  /// All rows of the cluster, or that of one worker, and the registry's clock.
  virtual Result<Snapshot> Read(std::optional<std::int64_t> worker, Instant deadline) = 0;
  /// False: there is such a row, or the write lost a race; read again.
  virtual Result<bool> Insert(const WorkerRow& row, Instant deadline) = 0;
  /// False: the row is not `from` any more; read again.
  virtual Result<bool> Replace(const WorkerRecord& from, const WorkerRow& to, Instant deadline) = 0;
  /// "table leafd_worker of ...", for messages.
  virtual std::string Where() const = 0;

 private:
  Result<std::optional<WorkerRight>> TryClaim(const ClaimAsk& ask);
  template <typename F>
  Result<WorkerRight> Move(const WorkerRight& right, Instant deadline, F limit_for);
  Error Late(const char* what) const;
};

/// Whether a row, as it was read from a place where hands can write, makes sense: an error that
/// names it and says how to mend it.
Result<void> CheckRow(const WorkerRecord& record, const std::string& where);

/// A row as a database tells it, by (worker, generation, owner, identity, limit_ms) as text.
/// Errors as CheckRow.
Result<void> ReadRow(std::span<const std::optional<std::string>> cells, const std::string& where,
                     WorkerRow& row);
/// False: the cell is NULL or holds no integer.
bool ReadInteger(const std::optional<std::string>& cell, std::int64_t& number);

}  // namespace leaf
