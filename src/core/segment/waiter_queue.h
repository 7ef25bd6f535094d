#pragma once

#include <cstdint>

#include "base/assert.h"
#include "core/segment/checked.h"
#include "core/segment/waiter.h"

namespace leaf {

/// Waiters in order, linked through themselves. Thread-compatible; it does not move.
class WaiterQueue {
 public:
  WaiterQueue() = default;
  WaiterQueue(const WaiterQueue&) = delete;
  WaiterQueue& operator=(const WaiterQueue&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  std::int64_t size() const noexcept { return size_; }
  Waiter* front() const noexcept { return first_; }
  static Waiter* next(const Waiter& waiter) noexcept { return waiter.parking.next; }

  /// Ids that all of them want together; at most kMaxEnd.
  std::int64_t ids() const noexcept {
    std::int64_t sum = 0;
    for (const Waiter* w = first_; w != nullptr; w = next(*w)) sum = AddCapped(sum, w->count);
    return sum;
  }

  /// REQUIRES: in no queue.
  void PushBack(Waiter& waiter) noexcept { LinkBehind(last_, waiter); }

  /// Before those with a later deadline: one that waited elsewhere first keeps the place that its
  /// arrival gave it. REQUIRES: in no queue; the queue is in order of deadline.
  void Insert(Waiter& waiter) noexcept {
    Waiter* previous = last_;
    while (previous != nullptr && previous->parking.deadline > waiter.parking.deadline) {
      previous = previous->parking.previous;
    }
    LinkBehind(previous, waiter);
  }

  /// REQUIRES: in this queue.
  void Remove(Waiter& waiter) noexcept {
    LEAF_ASSERT(waiter.parking.queue == this);
    Waiter* previous = waiter.parking.previous;
    Waiter* next = waiter.parking.next;
    (previous != nullptr ? previous->parking.next : first_) = next;
    (next != nullptr ? next->parking.previous : last_) = previous;
    waiter.parking.queue = nullptr;
    --size_;
  }

  /// The first one, out of the queue; nullptr if there is none.
  Waiter* PopFront() noexcept {
    Waiter* waiter = first_;
    if (waiter != nullptr) Remove(*waiter);
    return waiter;
  }

 private:
  void LinkBehind(Waiter* previous, Waiter& waiter) noexcept {
    LEAF_ASSERT(waiter.parking.queue == nullptr);
    Waiter* next = previous != nullptr ? previous->parking.next : first_;
    waiter.parking.queue = this;
    waiter.parking.previous = previous;
    waiter.parking.next = next;
    (previous != nullptr ? previous->parking.next : first_) = &waiter;
    (next != nullptr ? next->parking.previous : last_) = &waiter;
    ++size_;
  }

  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace leaf
