#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "core/segment/segment_store.h"

namespace leaf {

/// Stands between callbacks that may come late and the objects they use. Thread-safe.
class CallbackGate {
 public:
  /// False: closed; nothing may be touched any more. True: Leave must follow.
  bool Enter() {
    MutexLock lock(mu_);
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void Leave() {
    MutexLock lock(mu_);
    if (--inside_ == 0) empty_.NotifyAll();
  }
  /// Lets nobody in any more and waits until everybody has left.
  void Close() {
    MutexLock lock(mu_);
    closed_ = true;
    while (inside_ > 0) empty_.Wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar empty_;
  int inside_ GUARDED_BY(mu_) = 0;
  bool closed_ GUARDED_BY(mu_) = false;
};

/// A callback that runs `then` unless the gate was closed before it comes.
template <typename T, typename Then>
Done<T> Through(std::shared_ptr<CallbackGate> gate, Then then) {
  return [gate = std::move(gate), then = std::move(then)](Result<T> result) mutable {
    if (!gate->Enter()) return;
    then(std::move(result));
    gate->Leave();
  };
}

}  // namespace leaf
