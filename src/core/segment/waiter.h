#pragma once

#include <atomic>
#include <cstdint>

#include "base/executor.h"
#include "base/time.h"
#include "core/segment/range.h"
#include "core/snowflake/minted.h"
#include "leaf/result.h"

namespace leaf {

class WaiterQueue;

/// A request that may have to wait for ids. It lives in the requester's connection, is linked into
/// the tag's queue while parked, and is posted to `home` exactly once with `result` set.
class Waiter : public Task {
 public:
  explicit Waiter(Executor& executor) : home(executor) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  Executor& home;
  std::int64_t count = 1;            ///< ids wanted, > 0; set before parking
  bool one_piece = false;            ///< the ids must be consecutive
  Result<Ranges> result = Ranges{};  ///< valid when Run is entered
  Minted minted;                     ///< of a snowflake request, if result is no error

  /// The engine's alone. All but `place` is guarded by the lock of the place.
  struct Parking {
    std::atomic<const void*> place{nullptr};  ///< where it is parked; nullptr: nowhere
    WaiterQueue* queue = nullptr;
    Waiter* previous = nullptr;
    Waiter* next = nullptr;
    Instant deadline = kNever;
  };
  Parking parking;

 protected:
  ~Waiter() = default;
};

}  // namespace leaf
