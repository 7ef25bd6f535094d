#include "core/segment/store_calls.h"

#include <vector>

namespace leaf {

Error StoreCalls::NoAnswer() {
  return {Code::kUnavailable,
          "the store gave no answer in time; what was asked may have happened or may yet happen"};
}

void StoreCalls::Enter(Instant deadline, std::shared_ptr<Call> call) {
  {
    MutexLock lock(mu_);
    calls_.emplace(deadline, std::move(call));
  }
  agenda_.Need(deadline);
}

Instant StoreCalls::Tick(Instant now) {
  std::vector<std::shared_ptr<Call>> due;
  Instant next = kNever;
  {
    MutexLock lock(mu_);
    const auto end = calls_.upper_bound(now);
    for (auto it = calls_.begin(); it != end; ++it) due.push_back(std::move(it->second));
    calls_.erase(calls_.begin(), end);
    if (!calls_.empty()) next = calls_.begin()->first;
  }
  for (const auto& call : due) call->Expire();
  return next;
}

}  // namespace leaf
