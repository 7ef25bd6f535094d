#pragma once

#include <atomic>

#include "base/executor.h"

namespace leaf {

/// Tasks on their way to one thread: any thread pushes, one takes. Lock-free; a task's own link is
/// all the memory it needs.
class Inbox {
 public:
  /// True if the inbox was empty, so that the taker may have to be woken.
  bool Push(Task& task) noexcept {
    Task* top = top_.load(std::memory_order_relaxed);
    do {
      task.next_task = top;
    } while (!top_.compare_exchange_weak(top, &task, std::memory_order_release,
                                         std::memory_order_relaxed));
    return top == nullptr;
  }

  bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }

  /// Takes all tasks, linked by next_task in the order pushed. Read a task's link before its Run.
  Task* TakeAll() noexcept {
    Task* task = top_.exchange(nullptr, std::memory_order_acquire);
    Task* first = nullptr;
    while (task != nullptr) {
      Task* const older = task->next_task;
      task->next_task = first;
      first = task;
      task = older;
    }
    return first;
  }

 private:
  std::atomic<Task*> top_{nullptr};
};

}  // namespace leaf
