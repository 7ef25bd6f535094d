#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/time.h"
#include "config/config.h"
#include "core/snowflake/snowflake_engine.h"
#include "leaf/result.h"
#include "state/host_claims.h"
#include "state/order_file.h"
#include "state/right_file.h"

namespace leaf {

/// Snowflake mode put together: registry, files, engine. For the control loop's thread, but for
/// engine().
class SnowflakeMode {
 public:
  /// Starts nothing but the registry's thread. An error is one of the configuration or the state
  /// folder. `wake` is called from any thread when Tick should run.
  static Result<std::unique_ptr<SnowflakeMode>> Make(const Config& config, Clock& clock,
                                                     std::function<void()> wake);

  SnowflakeEngine& engine() noexcept { return *engine_; }
  WorkerRegistry& registry() noexcept { return *registry_; }

  Instant Tick(Instant now) { return engine_->Tick(now); }
  /// Lowers the limit; `closed` tells when it is done. Needs Tick meanwhile.
  void Close(std::function<void()> wake);
  bool closed() const noexcept { return closed_.load(); }
  /// Nothing is called any more after this.
  void EndRegistry() noexcept { registry_.reset(); }

 private:
  SnowflakeMode() = default;

  // The engine ends first, but the registry's threads before it: EndRegistry.
  std::unique_ptr<OrderFile> order_;
  std::unique_ptr<RightFile> journal_;
  std::unique_ptr<SocketClaims> host_;
  std::unique_ptr<WorkerRegistry> registry_;
  std::unique_ptr<SnowflakeEngine> engine_;
  std::atomic<bool> closed_{false};
};

}  // namespace leaf
