#include "core/segment/flights.h"

#include "base/assert.h"

namespace leaf {

void Flights::Queue(Tag& tag, bool urgent) {
  MutexLock lock(mu_);
  (urgent ? urgent_ : calm_).push_back(&tag);
}

bool Flights::CanSend() const { return places_ < most_ && !(urgent_.empty() && calm_.empty()); }

bool Flights::BeginSending() {
  MutexLock lock(mu_);
  if (sending_) {
    asked_again_ = true;
    return false;
  }
  sending_ = CanSend();
  return sending_;
}

bool Flights::EndSending() {
  MutexLock lock(mu_);
  if (asked_again_ && CanSend()) {
    asked_again_ = false;
    return false;
  }
  asked_again_ = false;
  sending_ = false;
  return true;
}

Tag* Flights::TakeDue() {
  MutexLock lock(mu_);
  if (!CanSend()) return nullptr;
  std::deque<Tag*>& queue = urgent_.empty() ? calm_ : urgent_;
  Tag* tag = queue.front();
  queue.pop_front();
  ++places_;
  return tag;
}

Flight Flights::Depart(Tag& tag) {
  MutexLock lock(mu_);
  flying_.emplace(++last_, &tag);
  return last_;
}

Tag* Flights::Land(Flight flight) {
  MutexLock lock(mu_);
  const auto it = flying_.find(flight);
  if (it == flying_.end()) return nullptr;
  Tag* tag = it->second;
  flying_.erase(it);
  return tag;
}

void Flights::FreePlace() {
  MutexLock lock(mu_);
  LEAF_ASSERT(places_ > 0);
  --places_;
}

int Flights::under_way() const {
  MutexLock lock(mu_);
  return places_;
}

}  // namespace leaf
