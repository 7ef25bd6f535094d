// How a tag gets its next lease: due -> queued -> flying -> granted, refused or lost.
//
// One flight a tag. Past its deadline its outcome is unknown, its ids count as burnt, and a late
// answer finds that its number is known no more. A failure starts a back-off, which requests cannot
// shorten.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/segment/backoff.h"
#include "core/segment/checked.h"
#include "core/segment/engine_impl.h"
#include "core/segment/errors.h"

namespace leaf {
namespace {

constexpr int kTellAt = 3, kTellEvery = 64;  // failures in a row
constexpr Duration kTellPause = std::chrono::seconds(10);

}  // namespace

void Engine::Impl::RefillDue(Tag& tag) {
  After after;
  {
    MutexLock lock(LockOf(tag));
    // A grant may have come since the caller won the right to ask.
    if (tag.refill_at.load(std::memory_order_relaxed) != kMaxEnd || !tag.use) return;
    tag.use->wanted = true;
    Want(tag, after);
  }
  Run(&tag, after);
}

void Engine::Impl::Want(Tag& tag, After& after) {
  TagUse& use = *tag.use;
  if (tag.absent || tag.regressed || tag.exhausted || closing()) return;
  const bool urgent = !use.waiters.empty();
  if (use.phase == Phase::kQueued && use.waiters.size() == 1) flights_.Queue(tag, urgent);
  if (use.phase != Phase::kRest || use.retry_at != kNever) return;
  use.phase = Phase::kQueued;
  flights_.Queue(tag, urgent);
  after.send = true;
}

Demand Engine::Impl::DemandOf(const Tag& tag) const {
  const TagUse& use = *tag.use;
  Demand demand;
  demand.row_step = std::max<std::int64_t>(tag.row_step, 1);
  demand.last_count = use.last_count;
  demand.leases = use.leases;
  demand.last_lease = use.last_lease;
  demand.parked = use.waiters.ids();
  demand.held = Left(tag);
  return demand;
}

std::int64_t Engine::Impl::LeaseCount(const Tag& tag, Instant now) const {
  const TagUse& use = *tag.use;
  const Demand demand = DemandOf(tag);
  const std::int64_t step = demand.row_step;
  std::int64_t count = use.cautious ? step : std::max(policy_.NextCount(demand, now), step);
  if (use.last_count > 0) {
    count = std::min(count, std::max(MultiplyCapped(use.last_count, 4), step));
  }
  // What a crash may lose bounds look-ahead; burnt ids count, but cannot push it below one step.
  const std::int64_t most = std::max(options_.waste, MultiplyCapped(step, 2));
  const std::int64_t room = std::max<std::int64_t>(most - demand.held, 0);
  count = std::min(count, std::min(room, std::max(room - std::min(room, use.burnt_run), step)));
  return count;
}

bool Engine::Impl::StartFlight(Tag& tag, Instant now, Ask& ask, After& after) {
  MutexLock lock(LockOf(tag));
  TagUse& use = *tag.use;
  if (use.phase != Phase::kQueued) return false;  // queued twice, and started already
  use.phase = Phase::kRest;
  if (closing() || (!use.wanted && !use.moving && use.waiters.empty())) return false;
  const bool moving = HasToMove(tag);  // then what is granted only shows where the row is
  const std::int64_t look_ahead = moving ? 1 : LeaseCount(tag, now);
  std::int64_t count = moving ? 1 : std::max(look_ahead, use.waiters.ids());
  if (use.end_limit > 0) count = std::min(count, use.end_limit);
  if (count == 0) return false;

  use.phase = Phase::kFlying;
  use.flight = flights_.Depart(tag);
  use.flight_count = count;
  use.flight_policy = moving ? use.last_count : std::min(look_ahead, count);
  use.flight_deadline = now + options_.store_timeout;
  Schedule(tag, after);
  ask = {use.flight, tag.name(), count, use.flight_deadline};
  return true;
}

void Engine::Impl::Send() {
  if (!flights_.BeginSending()) return;
  do {
    const Instant now = clock_.Now();
    std::vector<Ask> asks;
    After after;
    while (Tag* tag = flights_.TakeDue()) {
      Ask ask;
      if (StartFlight(*tag, now, ask, after)) {
        asks.push_back(ask);
      } else {
        flights_.FreePlace();
      }
    }
    if (after.wake) agenda_.Wake();
    if (!asks.empty()) store_.Reserve(asks, sink_);
  } while (!flights_.EndSending());
}

void Engine::Impl::OnGrant(const Grant& grant) {
  Tag* tag = flights_.Land(grant.flight);
  if (tag == nullptr) {
    stale_grants_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const bool granted = grant.outcome == Outcome::kGranted;
  Lineage::Heard heard;
  if (granted) heard = lineage_.Hear(grant.store_id, grant.store_turn);
  const bool another = heard.word == Lineage::Word::kAnother;
  if (another) store_changes_.fetch_add(1, std::memory_order_relaxed);
  const Instant now = clock_.Now();
  After after;
  {
    MutexLock lock(LockOf(*tag));
    if (tag->use->flight != grant.flight) {
      stale_grants_.fetch_add(1, std::memory_order_relaxed);
    } else if (granted && heard.generation != lineage_.current()) {
      // Also if the takeover was heard of since: MoveAll may have passed by this tag already.
      Grant late = grant;
      late.outcome = Outcome::kUnknown;
      late.error = {Code::kUnavailable, "another store has taken over from the one that granted"};
      Settle(*tag, late, 0, now, after);
      Schedule(*tag, after);
    } else {
      Settle(*tag, grant, heard.generation, now, after);
      Schedule(*tag, after);
    }
  }
  flights_.FreePlace();
  after.send = true;
  Run(tag, after);
  if (another) MoveAll();
}

void Engine::Impl::Settle(Tag& tag, const Grant& grant, std::uint32_t generation, Instant now,
                          After& after) {
  TagUse& use = *tag.use;
  LEAF_ASSERT(use.phase == Phase::kFlying);
  use.phase = Phase::kRest;
  use.flight = 0;
  use.flight_deadline = kNever;
  switch (grant.outcome) {
    case Outcome::kGranted:
      return Accept(tag, grant, generation, now, after);
    case Outcome::kRefused:
      return Refused(tag, grant.error, now, after);
    case Outcome::kUnknown:
      return Lost(tag, grant.error.message, now, after);
  }
}

void Engine::Impl::Accept(Tag& tag, const Grant& grant, std::uint32_t generation, Instant now,
                          After& after) {
  TagUse& use = *tag.use;
  const Range range = grant.range;
  if (range.first < 0 || range.last <= range.first || range.size() != use.flight_count) {
    return Lost(tag,
                "the store granted [" + std::to_string(range.first) + ", " +
                    std::to_string(range.last) + ") where " + std::to_string(use.flight_count) +
                    " ids were asked for; they are not used",
                now, after);
  }
  if (grant.row_step) tag.row_step = *grant.row_step;
  tag.row_max = range.last;
  tag.seen = std::max(tag.seen, range.last);
  tag.pass = list_.pass();
  use.failures = 0;
  use.end_limit = 0;
  if (range.first < tag.mark) return WentBack(tag, range, after);
  if (HasToMove(tag, generation)) return MoveOver(tag, range, generation, after);
  tag.generation = generation & Lineage::kMost;

  LEAF_ASSERT(use.reserve.empty() || use.reserve.back().last <= range.first);
  use.leases = std::min(use.leases + 1, Demand::kManyLeases);
  if (use.refills == 0) use.mark_before = tag.mark;
  ++use.refills;
  use.leased = AddCapped(use.leased, range.size());
  use.last_count = use.flight_policy;
  use.last_lease = now;
  use.last_lease_count = range.size();
  use.largest = std::max({use.largest, range.size(), LeasedByOthers(tag, range)});
  use.burnt_run = 0;
  use.cautious = use.wanted = false;
  use.leased_here = true;
  use.last_error.clear();
  tag.mark = range.last;
  Record(tag);

  use.reserve.push_back(range);
  const std::int64_t refill_at = policy_.RefillAt(range, DemandOf(tag));
  tag.refill_at.store(refill_at, std::memory_order_relaxed);
  const std::int64_t served_to = ServeWaiters(tag, after);
  if (served_to > refill_at) {
    tag.refill_at.store(kMaxEnd, std::memory_order_relaxed);
    use.wanted = true;
  }
  if (use.wanted || !use.waiters.empty()) Want(tag, after);
}

void Engine::Impl::Refused(Tag& tag, const Error& error, Instant now, After& after) {
  if (error.code == Code::kNotFound) return MarkAbsent(tag, after);
  TagUse& use = *tag.use;
  if (error.code == Code::kExhausted && use.end_limit == 0) {
    use.phase = Phase::kProbing;
    after.probe = true;
    return;
  }
  // Another server took some of the last ids between our look at the row and our asking for them.
  if (error.code == Code::kExhausted) use.end_limit = 0;
  ++use.refill_failures;
  RetryLater(tag, error.message, now, after);
}

void Engine::Impl::Lost(Tag& tag, std::string reason, Instant now, After& after) {
  TagUse& use = *tag.use;
  Burn(use, use.flight_count, Discard::kBurnt);
  use.burnt_run = AddCapped(use.burnt_run, use.flight_count);
  use.cautious = true;
  ++use.refill_failures;
  RetryLater(tag, std::move(reason), now, after);
}

void Engine::Impl::RetryLater(Tag& tag, std::string reason, Instant now, After& after) {
  TagUse& use = *tag.use;
  use.last_error = std::move(reason);
  ++use.failures;
  use.retry_at = now + Backoff(use.failures, options_.backoff_min, options_.backoff_max, random_);
  // Once it is more than a hiccup, and again while it lasts; not a line for each of ten thousand
  // tags, when they fail together.
  if (use.failures != kTellAt && use.failures % kTellEvery != 0) return;
  Instant told = told_.load(std::memory_order_relaxed);
  if (told != Instant::min() && now - told < kTellPause) return;
  if (!told_.compare_exchange_strong(told, now, std::memory_order_relaxed)) return;
  after.warning = "tag \"" + std::string(tag.name()) + "\" could not be leased " +
                  std::to_string(use.failures) + " times in a row: " + use.last_error;
}

void Engine::Impl::Burn(TagUse& use, std::int64_t count, Discard reason) {
  use.leased = AddCapped(use.leased, count);
  use.discarded[static_cast<int>(reason)] += static_cast<std::uint64_t>(count);
}

void Engine::Impl::GiveUpFlight(Tag& tag, After& after) {
  TagUse& use = *tag.use;
  if (use.phase == Phase::kFlying) {
    Burn(use, use.flight_count, Discard::kBurnt);
    if (flights_.Land(use.flight) != nullptr) flights_.FreePlace();
    after.send = true;  // another tag may wait for the place
    use.flight = 0;
    use.flight_deadline = kNever;
  }
  use.phase = Phase::kRest;
  use.retry_at = kNever;
  use.wanted = false;
  use.moving_to = 0;
}

bool Engine::Impl::OnDue(Tag& tag, Instant now) {
  After after;
  {
    MutexLock lock(LockOf(tag));
    TagUse& use = *tag.use;
    if (use.agenda_at > now) return false;  // an earlier entry has seen to it
    use.agenda_at = kNever;
    if (use.phase == Phase::kFlying && use.flight_deadline <= now &&
        flights_.Land(use.flight) != nullptr) {
      flights_.FreePlace();
      after.send = true;
      use.phase = Phase::kRest;
      use.flight = 0;
      use.flight_deadline = kNever;
      Lost(tag, "the store did not answer in time", now, after);
    }
    ExpireWaiters(tag, now, after);
    if (use.retry_at <= now) {
      use.retry_at = kNever;
      if (use.phase == Phase::kRest && ((tag.regressed && !tag.raised) || use.moving_to != 0)) {
        use.phase = Phase::kRaising;
        after.raise = true;
      } else if (use.moving || use.wanted || !use.waiters.empty()) {
        Want(tag, after);
      }
    }
    Schedule(tag, after);
  }
  // What many tags are due for at once goes to the store in one call.
  const bool send = std::exchange(after.send, false);
  Run(&tag, after);
  return send;
}

void Engine::Impl::Record(const Tag& tag) {
  journal_.Record(tag.name(), Mark{tag.mark, tag.seen, tag.regressed, tag.generation,
                                   lineage_.NameOf(tag.generation)});
}

}  // namespace leaf
