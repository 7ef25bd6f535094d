#include "core/segment/lookups.h"

#include <algorithm>
#include <utility>

#include "core/segment/backoff.h"
#include "core/segment/errors.h"

namespace leaf {

Lookups::Lookups(const EngineOptions& options, SegmentStore& store, StoreCalls& calls,
                 Agenda& agenda, Clock& clock, Random& random, WaitingRoom& room, Host& host)
    : options_(options),
      store_(store),
      calls_(calls),
      agenda_(agenda),
      clock_(clock),
      random_(random),
      room_(room),
      host_(host),
      negative_(options.negative_ttl),
      tokens_(options.lookups_per_second) {}

bool Lookups::Park(std::string_view name, Waiter& waiter, Instant deadline, Instant now,
                   Result<Ranges>& out) {
  const std::string key(name);
  bool begin = false;
  {
    MutexLock lock(mu_);
    if (closed_) {
      out = ShuttingDown();
      return true;
    }
    auto it = entries_.find(name);
    if (it == entries_.end() && !Admit(key, now, out)) return true;
    if (!room_.Enter()) {
      out = TooManyWaiters();
      return true;
    }
    if (it == entries_.end()) {
      it = entries_.try_emplace(key).first;
      it->second.calling = begin = true;
      started_.fetch_add(1, std::memory_order_relaxed);
    }
    waiter.parking.deadline = deadline;
    waiter.parking.place.store(this, std::memory_order_release);
    it->second.waiters.PushBack(waiter);
  }
  // The waiter may be gone from here on: another thread can answer it.
  agenda_.Need(deadline);
  if (begin) Find(key, false);
  return false;
}

bool Lookups::Admit(const std::string& name, Instant now, Result<Ranges>& out) {
  if (negative_.Has(name, now)) {
    out = NoSuchTag(name);
    return false;
  }
  negative_.Trim(now);
  const bool room = entries_.size() + negative_.size() <
                    static_cast<std::size_t>(std::max(options_.negative_entries, 1));
  if (!room || !tokens_.Take(now)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    out = TooManyLookups(name);
    return false;
  }
  return true;
}

bool Lookups::Cancel(Waiter& waiter) {
  MutexLock lock(mu_);
  if (waiter.parking.place.load(std::memory_order_acquire) != this) return false;
  waiter.parking.queue->Remove(waiter);
  waiter.parking.place.store(nullptr, std::memory_order_release);
  room_.Leave();
  return true;
}

void Lookups::Forget(std::string_view name) {
  MutexLock lock(mu_);
  negative_.Erase(std::string(name));
}

void Lookups::Find(const std::string& name, bool lost_race) {
  const Instant deadline = clock_.Now() + options_.store_timeout;
  store_.Find(name, deadline,
              calls_.Bound<std::optional<Row>>(
                  deadline, [this, name, lost_race](Result<std::optional<Row>> row) {
                    Found(name, lost_race, std::move(row));
                  }));
}

void Lookups::Found(const std::string& name, bool lost_race, Result<std::optional<Row>> row) {
  if (!row.ok()) return Failed(name, row.error());
  if (row->has_value()) return Resolve(name, **row);
  // It cannot be found and cannot be made: the table's collation takes another name for the same.
  if (lost_race) return Missing(name, NoSuchTag(name));
  const Result<std::int64_t> at = host_.CreateAt(name);
  if (!at.ok()) return Missing(name, at.error());
  const Instant deadline = clock_.Now() + options_.store_timeout;
  store_.Create(name, options_.step, *at, deadline,
                calls_.Bound<Row>(
                    deadline, [this, name](Result<Row> made) { Created(name, std::move(made)); }));
}

void Lookups::Created(const std::string& name, Result<Row> row) {
  if (row.ok()) return Resolve(name, *row);
  // Another server was quicker; its row is as good.
  if (row.error().code == Code::kConflict) return Find(name, true);
  Failed(name, row.error());
}

void Lookups::Resolve(const std::string& name, const Row& row) {
  if (row.tag != name) {
    return Failed(name, {Code::kUnavailable, "the store answered with the row of another tag"});
  }
  Appeared(name, host_.Know(row));
}

void Lookups::Appeared(std::string_view name, Tag& tag) {
  After after;
  {
    // Each waiter goes straight from this place to the tag, so that Cancel always finds it.
    MutexLock lock(mu_);
    const auto it = entries_.find(name);
    if (it == entries_.end()) return;
    while (Waiter* waiter = it->second.waiters.PopFront()) host_.Adopt(tag, *waiter, after);
    entries_.erase(it);
  }
  host_.Run(&tag, after);
}

void Lookups::Missing(const std::string& name, const Error& error) {
  const Instant now = clock_.Now();
  After after;
  {
    MutexLock lock(mu_);
    const auto it = entries_.find(name);
    if (it == entries_.end()) return;
    while (Waiter* waiter = it->second.waiters.PopFront()) after.Finish(*waiter, error);
    entries_.erase(it);
    negative_.Add(name, now);
  }
  host_.Run(nullptr, after);
}

void Lookups::Failed(const std::string& name, const Error& error) {
  const Instant now = clock_.Now();
  Instant retry_at = kNever;
  {
    MutexLock lock(mu_);
    const auto it = entries_.find(name);
    if (it == entries_.end()) return;
    Entry& entry = it->second;
    entry.calling = false;
    entry.last_error = error.message;
    ++entry.failures;
    entry.retry_at = retry_at =
        now + Backoff(entry.failures, options_.backoff_min, options_.backoff_max, random_);
  }
  agenda_.Need(retry_at);
}

Instant Lookups::Expire(const std::string& name, Entry& entry, Instant now, After& after) {
  while (Waiter* waiter = entry.waiters.front()) {
    if (waiter->parking.deadline > now) return waiter->parking.deadline;
    entry.waiters.Remove(*waiter);
    after.Finish(*waiter, NoIdsInTime(name, options_.wait, entry.last_error));
  }
  return kNever;
}

Instant Lookups::Tick(Instant now) {
  After after;
  std::vector<std::string> retries;
  Instant next = kNever;
  {
    MutexLock lock(mu_);
    negative_.Trim(now);
    for (auto it = entries_.begin(); it != entries_.end();) {
      Entry& entry = it->second;
      next = std::min(next, Expire(it->first, entry, now, after));
      if (!entry.calling && entry.waiters.empty()) {
        it = entries_.erase(it);
        continue;
      }
      if (!entry.calling && entry.retry_at <= now) {
        entry.calling = true;
        retries.push_back(it->first);
      } else if (!entry.calling) {
        next = std::min(next, entry.retry_at);
      }
      ++it;
    }
  }
  host_.Run(nullptr, after);
  for (const std::string& name : retries) Find(name, false);
  return next;
}

void Lookups::Close() {
  After after;
  {
    MutexLock lock(mu_);
    closed_ = true;
    for (auto& [name, entry] : entries_) {
      while (Waiter* waiter = entry.waiters.PopFront()) after.Finish(*waiter, ShuttingDown());
    }
  }
  host_.Run(nullptr, after);
}

}  // namespace leaf
