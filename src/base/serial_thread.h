#pragma once

#include <functional>
#include <memory>

namespace leaf {

/// Runs jobs one after another, in the order posted, on a thread of its own. Thread-safe.
class SerialThread {
 public:
  SerialThread();
  /// Jobs that have not begun are dropped; one that is under way is waited for, a second at most,
  /// then left alone: what it uses must be its own.
  ~SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

  void Post(std::function<void()> job);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leaf
