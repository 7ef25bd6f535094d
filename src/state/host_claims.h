#pragma once

#include <map>
#include <string>

#include "base/mutex.h"
#include "core/snowflake/worker_registry.h"

namespace leaf {

/// Claims by abstract unix sockets `@leafd-<cluster>-<worker>`: the kernel gives a name to one
/// process of a network namespace at a time and takes it back when the process ends, however it
/// ends.
class SocketClaims final : public HostClaims {
 public:
  explicit SocketClaims(std::string cluster);
  ~SocketClaims() override;
  SocketClaims(const SocketClaims&) = delete;
  SocketClaims& operator=(const SocketClaims&) = delete;

  bool Take(std::int64_t worker) override;
  void Release(std::int64_t worker) noexcept override;

 private:
  const std::string cluster_;
  Mutex mu_;
  std::map<std::int64_t, int> sockets_ GUARDED_BY(mu_);  ///< worker -> descriptor
};

}  // namespace leaf
