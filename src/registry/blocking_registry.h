#pragma once

#include <memory>
#include <string>

#include "base/time.h"
#include "registry/registry_driver.h"

namespace leaf {

/// Runs a blocking RegistryDriver on a thread of its own, behind the asynchronous port.
///
/// One session, opened with the first call and again after a failure. A call that has not begun by
/// its deadline is refused; one that passes it is interrupted and answered kUnavailable; a thread
/// that stays stuck all the same is replaced (with a session of its own), up to `max_stuck`, beyond
/// which calls are refused. Answers come from threads of the registry, never from inside a call.
/// The destructor ends within a second whatever the driver does; nothing is called after it.
/// Thread-safe.
class BlockingRegistry final : public WorkerRegistry {
 public:
  struct Options {
    std::string kind;
    RegistryTraits traits;
    int max_stuck = 4;
    int max_queued = 1000;
  };
  /// `clock` outlives the registry.
  BlockingRegistry(Options options, RegistryFactory factory, Clock& clock);
  ~BlockingRegistry() override;

  RegistryTraits traits() const noexcept override;
  void Claim(ClaimAsk ask, Done<WorkerRight> done) override;
  void Extend(WorkerRight right, std::int64_t limit_ms, std::int64_t lease_ms, Instant deadline,
              Done<WorkerRight> done) override;
  void Lower(WorkerRight right, std::int64_t limit_ms, Instant deadline,
             Done<WorkerRight> done) override;
  void List(Instant deadline, Done<std::vector<WorkerRecord>> done) override;
  void Retire(std::int64_t worker, Instant deadline, Done<WorkerRecord> done) override;
  RegistryStatus Status() const override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace leaf
