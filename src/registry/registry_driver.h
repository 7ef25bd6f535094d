#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/snowflake/worker_registry.h"

namespace leaf {

/// One session with a registry, by blocking calls. BlockingRegistry turns it into a WorkerRegistry.
///
/// Confined to one thread at a time, save Interrupt. No call throws. Semantics and errors as in
/// WorkerRegistry. Every call ends by its deadline as well as it can; a session reports connected()
/// == false after a failure that leaves its state in doubt, and is then opened anew. No driver
/// repeats by itself what may have happened.
class RegistryDriver {
 public:
  virtual ~RegistryDriver() = default;

  /// Connects and checks what it needs (table, permissions). Findings for people go into
  /// `warnings`. An error says what is wrong and how to mend it; for a missing table it holds the
  /// DDL.
  virtual Result<void> Open(Instant deadline, std::vector<std::string>& warnings) = 0;
  virtual bool connected() const noexcept = 0;
  virtual void Close() noexcept = 0;

  virtual Result<WorkerRight> Claim(const ClaimAsk& ask) = 0;
  virtual Result<WorkerRight> Extend(const WorkerRight& right, std::int64_t limit_ms,
                                     std::int64_t lease_ms, Instant deadline) = 0;
  virtual Result<WorkerRight> Lower(const WorkerRight& right, std::int64_t limit_ms,
                                    Instant deadline) = 0;
  virtual Result<std::vector<WorkerRecord>> List(Instant deadline) = 0;
  virtual Result<WorkerRecord> Retire(std::int64_t worker, Instant deadline) = 0;

  /// Milliseconds since 1970 by the registry's own clock; nullopt if it has none, or tells it only
  /// to one who writes.
  virtual Result<std::optional<std::int64_t>> Now(Instant /*deadline*/) {
    return std::optional<std::int64_t>();
  }

  /// Makes a call under way on another thread end soon. Any thread; never blocks.
  virtual void Interrupt() noexcept = 0;
};

/// Makes one more session, not yet opened. Thread-safe.
using RegistryFactory = std::function<std::unique_ptr<RegistryDriver>()>;

}  // namespace leaf
