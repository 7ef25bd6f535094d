#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "core/segment/waiter_queue.h"

namespace leaf {

/// What a step under a tag's lock leaves to be done once the lock is released: nobody is called,
/// and nothing is written, under a lock.
struct After {
  /// The waiter, which is in no queue, has its result.
  void Finish(Waiter& waiter, Result<Ranges> result) {
    waiter.result = std::move(result);
    waiter.parking.place.store(nullptr, std::memory_order_release);
    ready.PushBack(waiter);
  }

  WaiterQueue ready;    ///< to be posted
  bool send = false;    ///< a tag has become due for a flight
  bool wake = false;    ///< the agenda has an earlier time
  bool probe = false;   ///< the tag's row is to be looked up for what it has left
  bool raise = false;   ///< the tag's row is to be raised
  std::string warning;  ///< to be logged; empty: nothing
};

}  // namespace leaf
