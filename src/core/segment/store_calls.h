#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "core/segment/agenda.h"
#include "core/segment/segment_store.h"

namespace leaf {

/// Bounds calls of the store: whatever the store does, each answer arrives exactly once, the
/// store's or, at the deadline, kUnavailable. Thread-safe; call without holding a lock.
class StoreCalls {
 public:
  explicit StoreCalls(Agenda& agenda) : agenda_(agenda) {}

  /// What to hand to the store in place of `done`.
  template <class T>
  Done<T> Bound(Instant deadline, Done<T> done) {
    auto call = std::make_shared<CallOf<T>>(std::move(done));
    Enter(deadline, call);
    return [call](Result<T> result) { call->Answer(std::move(result)); };
  }

  /// Answers what is due. When to come again.
  Instant Tick(Instant now);

 private:
  struct Call {
    virtual ~Call() = default;
    virtual void Expire() = 0;
  };
  template <class T>
  struct CallOf final : Call {
    explicit CallOf(Done<T> d) : done(std::move(d)) {}
    void Answer(Result<T> result) {
      if (ended.exchange(true, std::memory_order_acq_rel)) return;
      const Done<T> last = std::move(done);
      last(std::move(result));
    }
    void Expire() override { Answer(NoAnswer()); }

    Done<T> done;
    std::atomic<bool> ended{false};
  };
  static Error NoAnswer();
  void Enter(Instant deadline, std::shared_ptr<Call> call);

  Agenda& agenda_;
  Mutex mu_;
  std::multimap<Instant, std::shared_ptr<Call>> calls_ GUARDED_BY(mu_);  ///< ended ones too
};

}  // namespace leaf
