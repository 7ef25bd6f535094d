#include "core/segment/agenda.h"

#include <algorithm>

namespace leaf {

bool Agenda::Promise(Instant due) {
  if (due >= promised_) return false;
  promised_ = due;
  return true;
}

bool Agenda::Add(Instant due, Tag& tag) {
  MutexLock lock(mu_);
  heap_.push({due, entered_++, &tag});
  return Promise(due);
}

void Agenda::Need(Instant due) {
  {
    MutexLock lock(mu_);
    need_ = std::min(need_, due);
    if (!Promise(due)) return;
  }
  Wake();
}

void Agenda::Begin() {
  MutexLock lock(mu_);
  promised_ = Instant::min();
  need_ = kNever;
}

Tag* Agenda::Pop(Instant now) {
  MutexLock lock(mu_);
  if (heap_.empty() || heap_.top().due > now) return nullptr;
  Tag* tag = heap_.top().tag;
  heap_.pop();
  return tag;
}

Instant Agenda::End(Instant due) {
  MutexLock lock(mu_);
  due = std::min(due, need_);
  if (!heap_.empty()) due = std::min(due, heap_.top().due);
  promised_ = due;
  return due;
}

}  // namespace leaf
