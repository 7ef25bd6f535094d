// The clean stop: close, let flights land, write the marks, hand tails back, each tried once.

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "core/segment/engine_impl.h"
#include "core/segment/errors.h"

namespace leaf {

void Engine::Impl::Close(std::function<void()> done) {
  {
    MutexLock lock(close_mu_);
    if (closing()) {
      // The first call's done comes when all is over; this one has nothing to wait for.
    } else {
      close_done_ = std::move(done);
      done = nullptr;
    }
    closing_.store(true, std::memory_order_release);
  }
  if (done) return done();
  list_.Close();
  lookups_.Close();
  for (Tag* tag : tags_.InUse()) {
    After after;
    {
      MutexLock lock(LockOf(*tag));
      Gather(*tag);
      EndWaiters(*tag, ShuttingDown(), after);
    }
    Run(tag, after);
  }
  swept_.store(true, std::memory_order_release);
  FinishCloseIfLanded();
}

void Engine::Impl::FinishCloseIfLanded() {
  if (!swept_.load(std::memory_order_acquire) || flights_.under_way() > 0) return;
  if (landed_.exchange(true, std::memory_order_acq_rel)) return;
  for (Tag* tag : tags_.InUse()) {
    MutexLock lock(LockOf(*tag));
    CollectTail(*tag);
  }
  const Result<void> synced = journal_.Sync();
  if (!synced.ok()) {
    // A row lowered below a mark that is still the old one on disk would look as if it went back.
    log::Error("the marks could not be written, so no ids are handed back",
               {{"reason", synced.error().message}});
    MutexLock lock(close_mu_);
    tails_.clear();
  }
  HandBackNext();
}

void Engine::Impl::CollectTail(Tag& tag) {
  std::vector<Range>& reserve = tag.use->reserve;
  if (reserve.empty() || tag.regressed || tag.absent) return;
  // The row can go back only over ids that are its last, without a gap.
  Range tail = reserve.back();
  const bool at_end = tail.last == tag.mark;
  for (std::size_t i = reserve.size() - 1; i-- > 0 && reserve[i].last == tail.first;) {
    tail.first = reserve[i].first;
  }
  // Not the first id held: the row may legally go back to just above what was issued, where other
  // servers give back what lies between, or where the hand-back of an earlier stop comes late.
  tag.mark = tag.use->issued_to > 0 ? tag.use->issued_to : tag.use->mark_before;
  Record(tag);
  // The row of another store than the one that granted may be where it is by chance.
  if (at_end && tag.use->leased_here && !HasToMove(tag)) {
    MutexLock lock(close_mu_);
    tails_.push_back({&tag, tail});
  }
}

void Engine::Impl::HandBackNext() {
  std::vector<Tail> start;
  std::function<void()> done;
  {
    MutexLock lock(close_mu_);
    while (!tails_.empty() && handing_back_ < options_.max_flights) {
      start.push_back(std::move(tails_.back()));
      tails_.pop_back();
      ++handing_back_;
    }
    if (handing_back_ == 0) done = std::exchange(close_done_, nullptr);
  }
  const Instant deadline = clock_.Now() + options_.store_timeout;
  for (const Tail& tail : start) {
    store_.HandBack(std::string(tail.tag->name()), tail.ids, lineage_.store_id(), deadline,
                    calls_.Bound<bool>(
                        deadline, [this, tail](Result<bool> handed) { HandedBack(tail, handed); }));
  }
  if (done) done();
}

void Engine::Impl::HandedBack(const Tail& tail, const Result<bool>& handed) {
  if (handed.ok() && *handed) {
    MutexLock lock(LockOf(*tail.tag));
    tail.tag->row_max = tail.ids.first;
  }
  {
    MutexLock lock(close_mu_);
    --handing_back_;
    // A store that fails now would only hold up the stop; what is left becomes a gap.
    if (!handed.ok()) tails_.clear();
  }
  HandBackNext();
}

}  // namespace leaf
