#include "core/snowflake/right_keeper.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/failpoint.h"
#include "base/iso_time.h"
#include "base/log.h"
#include "core/segment/backoff.h"
#include "core/snowflake/millis.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;

/// How often the wall clock is looked at.
constexpr Duration kLook = milliseconds(100);
/// How often at most a reason that has changed is logged.
constexpr Duration kComplaint = std::chrono::seconds(10);
/// How long after its deadline an answer is still waited for.
constexpr Duration kGrace = milliseconds(200);
/// What does not last as long is no trouble that a person should hear of.
constexpr Duration kTroubleLasts = std::chrono::seconds(1);

std::string Nonce(Random& random) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int word = 0; word < 2; ++word) {
    std::uint64_t bits = random.Next();
    for (int i = 0; i < 16; ++i, bits >>= 4) text += kDigits[bits & 15];
  }
  return text;
}

}  // namespace

RightKeeper::RightKeeper(const SnowflakeOptions& options, const Ports& ports,
                         Generator<>& generator)
    : options_(options),
      ports_(ports),
      traits_(ports.registry.traits()),
      generator_(generator),
      owner_(Nonce(ports.random)),
      wall_({options.drift, options.lease, false}, ports.clock.Now(), ports.clock.WallMillis()) {}

Result<void> RightKeeper::Load() {
  const MutexLock lock(mu_);
  if (ports_.order != nullptr) {
    const auto last = ports_.order->Last();
    if (last) order_floor_ = *last + 1;
  }
  if (traits_.bound) {
    LEAF_ASSERT(ports_.journal != nullptr);
    LEAF_ASSIGN_OR_RETURN(const auto found, ports_.journal->Load());
    if (found && found->same_place) {
      journal_ = found->record;
    } else if (found) {
      log::Warn(
          "the journal of the worker's right was written elsewhere or before a reboot: it proves "
          "nothing here",
          {{"worker", found->record.worker}});
    }
  }
  const std::int64_t time = wall_.Millis(ports_.clock.Now());
  if (time >= options_.layout.end_ms() - kTenYearsMs) {
    log::Warn(
        time >= options_.layout.end_ms() ? "the snowflake layout has ended"
                                         : "the snowflake layout ends within ten years",
        {{"layout", LayoutText(options_.layout)}, {"end", IsoTime(options_.layout.end_ms())}});
  }
  return {};
}

void RightKeeper::Run(Effects& effects) {
  for (const auto& effect : effects) effect();
}

std::int64_t RightKeeper::LimitTick(std::int64_t limit_ms) const noexcept {
  const Layout& layout = options_.layout;
  return std::min(layout.TickFrom(limit_ms), std::int64_t{1} << layout.time_bits);
}

/// How far a wall clock is believed because ids have gone there: to the largest time that this
/// server minted, also before a restart. While the clock is so far behind it that nothing is minted
/// it may also have gone on since; a lease is room for the time that the server was down.
std::int64_t RightKeeper::Reached(Instant now) {
  const std::int64_t minted =
      opened_ ? options_.layout.MillisOf(generator_.last_tick()) : order_floor_;
  if (minted != minted_) {
    minted_ = minted;
    minted_at_ = now;
  }
  if (wall_.Millis(now) + ToMillis(options_.drift) >= minted) return minted;
  return minted + ToMillis(now - minted_at_) + ToMillis(options_.lease);
}

/// The time that is minted by now: minted time may be ahead of the clock, but how far it pulls the
/// limits is bounded, so that a bad order word or clock poisons nothing.
std::int64_t RightKeeper::Front(Instant now) const {
  const std::int64_t time = wall_.Millis(now);
  if (!opened_) return time;
  const std::int64_t minted = options_.layout.MillisOf(generator_.last_tick());
  return std::clamp(minted, time, time + ToMillis(options_.drift));
}

std::int64_t RightKeeper::EffectiveLimit() const {
  if (!right_) return 0;
  if (!traits_.bound) return right_->limit_ms;
  return journal_ ? std::min(right_->limit_ms, journal_->short_ms) : 0;
}

bool RightKeeper::ExtensionDue(Instant now) const {
  if (!right_ || lost_ || provisional_ || closing_) return false;
  // Also before the next report, where the lease is shorter than two of them.
  if (traits_.renew > Duration::zero() && now >= next_renewal_) return true;
  return right_->limit_ms - Front(now) <= extend_at_left_ ||
         (wall_.registry_has_clock() && wall_.in_doubt());
}

bool RightKeeper::ReadyToCall(Instant now) const {
  return call_ == Call::kNone && now >= next_call_;
}

Instant RightKeeper::Tick(Instant now) {
  Effects effects;
  Instant due;
  {
    const MutexLock lock(mu_);
    wall_seen_ = ports_.clock.WallMillis();
    wall_.Look(now, wall_seen_, Reached(now));
    if (call_ != Call::kNone && now > call_deadline_ + kGrace) {
      ++call_number_;  // a late answer is dropped
      const Call call = std::exchange(call_, Call::kNone);
      Failed({Code::kUnavailable, "the registry of workers did not answer in time"}, now);
      if (call == Call::kLower) Finish(effects);
      if (call == Call::kClaim) CarryOn(now);
    }
    if (closing_) {
      if (!finished_ && now >= close_by_) {
        log::Warn("the worker's limit was not lowered in time; it rests until then");
        Finish(effects);
      }
      if (!finished_ && call_ == Call::kNone && !saving_) StartLower(now, effects);
    } else if (ReadyToCall(now) && !at_end(now)) {
      if (!right_ || lost_ || provisional_) {
        StartClaim(now, effects);
      } else if (ExtensionDue(now)) {
        StartExtend(now, effects);
      }
    }
    if (SaveDue(now)) StartSave(now, effects);
    due = NextDue(now);
  }
  Run(effects);
  Report(now);
  return due;
}

bool RightKeeper::Closing() const {
  const MutexLock lock(mu_);
  return closing_;
}

/// Says when ids stop and when they go on, and when the host's clock is not believed.
void RightKeeper::Report(Instant now) {
  const std::string trouble = Trouble(now);
  const bool stopping = generator_.closed() && Closing();
  if (trouble.empty()) {
    if (trouble_told_) log::Info("snowflake mode hands out ids again");
    trouble_told_ = false;
    trouble_since_ = kNever;
  } else {
    trouble_since_ = std::min(trouble_since_, now);
    if (!trouble_told_ && !stopping && now - trouble_since_ >= kTroubleLasts) {
      log::Warn("snowflake mode hands out no ids", {{"reason", trouble}});
      trouble_told_ = true;
    }
  }
  const MutexLock lock(mu_);
  const bool doubt = wall_.doubt_ms() != 0 && !wall_.in_doubt();
  if (doubt && !doubt_told_) {
    log::Warn("the host's clock stepped and is not followed: the registry's clock contradicts it",
              {{"step_ms", wall_.doubt_ms()}});
  }
  doubt_told_ = doubt;
}

Instant RightKeeper::NextDue(Instant now) const {
  Instant due = now + kLook;
  if (call_ != Call::kNone) due = std::min(due, call_deadline_ + kGrace + milliseconds(1));
  if (call_ == Call::kNone && !closing_ && !at_end(now) && (!right_ || lost_ || provisional_))
    due = std::min(due, std::max(now + milliseconds(1), next_call_));
  return due;
}

std::uint64_t RightKeeper::Begin(Call call, Instant now) {
  call_ = call;
  call_sent_ = now;
  call_deadline_ = now + options_.call_timeout;
  return ++call_number_;
}

void RightKeeper::StartClaim(Instant now, Effects& effects) {
  ClaimAsk ask;
  ask.owner = owner_;
  ask.identity = options_.identity;
  ask.workers = options_.layout.workers();
  ask.layout = LayoutText(options_.layout);
  ask.now_ms = wall_.Millis(now);
  ask.lease_ms = ToMillis(options_.lease);
  ask.excluded = excluded_;
  ask.journal = journal_;
  if (ask.now_ms < options_.layout.epoch_ms) {
    Failed({Code::kUnavailable, "this host's clock says " + IsoTime(ask.now_ms) +
                                    ", which is before the layout's epoch; set it"},
           now);
    return;
  }
  const std::uint64_t number = Begin(Call::kClaim, now);
  ask.deadline = call_deadline_;
  claimed_before_ = claimed_from_;
  claimed_from_ = std::max(claimed_from_, ask.now_ms);
  effects.emplace_back([this, number, ask = std::move(ask)] {
    LEAF_FAILPOINT("snowflake.before_claim");
    ports_.registry.Claim(ask, [this, number](Result<WorkerRight> result) {
      LEAF_FAILPOINT("snowflake.after_claim");
      OnAnswer(number, std::move(result));
    });
  });
}

void RightKeeper::StartExtend(Instant now, Effects& effects) {
  const std::uint64_t number = Begin(Call::kExtend, now);
  const std::int64_t lease = ToMillis(options_.lease);
  effects.emplace_back([this, number, right = *right_, limit = Front(now) + lease, lease,
                        deadline = call_deadline_] {
    LEAF_FAILPOINT("snowflake.before_extend");
    ports_.registry.Extend(right, limit, lease, deadline,
                           [this, number](Result<WorkerRight> result) {
                             LEAF_FAILPOINT("snowflake.after_extend");
                             OnAnswer(number, std::move(result));
                           });
  });
}

void RightKeeper::StartLower(Instant now, Effects& effects) {
  if (!right_ || lost_ || provisional_) {
    Finish(effects);
    return;
  }
  if (traits_.bound && !spent_) {
    StartSpend(effects);
    return;
  }
  const std::uint64_t number = Begin(Call::kLower, now);
  std::int64_t limit = right_->floor_ms;
  if (opened_ && last_tick_ >= 0) limit = options_.layout.MillisOf(last_tick_ + 1);
  limit = std::min(std::max(limit, right_->floor_ms), right_->limit_ms);
  effects.emplace_back([this, number, right = *right_, limit, deadline = call_deadline_] {
    LEAF_FAILPOINT("snowflake.before_lower");
    ports_.registry.Lower(right, limit, deadline, [this, number](Result<WorkerRight> result) {
      OnAnswer(number, std::move(result));
    });
  });
}

void RightKeeper::OnAnswer(std::uint64_t number, Result<WorkerRight> result) {
  const Instant now = ports_.clock.Now();
  Effects effects;
  {
    const MutexLock lock(mu_);
    if (number != call_number_ || call_ == Call::kNone) return;
    // Later than Tick would have waited, had it run: the registry's clock says nothing about now.
    if (now > call_deadline_ + kGrace) return;
    const Call call = std::exchange(call_, Call::kNone);
    if (result.ok() && result->registry_ms) {
      wall_seen_ = ports_.clock.WallMillis();
      wall_.Confirm(*result->registry_ms, call_sent_, now, wall_seen_);
    }
    if (call == Call::kClaim) OnClaimed(std::move(result), now, effects);
    if (call == Call::kExtend) OnExtended(std::move(result), now, effects);
    if (call == Call::kLower) OnLowered(std::move(result), now, effects);
  }
  Run(effects);
  changed_();
}

void RightKeeper::OnClaimed(Result<WorkerRight> result, Instant now, Effects& effects) {
  if (!result.ok()) {
    excluded_.clear();  // the other process may have ended
    // Refused before anything was written: that time is no one's floor.
    if (result.error().message.find("clock_ahead") != std::string::npos)
      claimed_from_ = claimed_before_;
    Failed(result.error(), now);
    if (result.error().code == Code::kUnavailable) CarryOn(now);
    if (result.error().code == Code::kConflict) {
      if (provisional_) Lose(result.error().message, now, effects);
      Disown(effects);
    }
    return;
  }
  if (closing_) {
    // The worker that a lost right, or the journal's word alone, has minted with until now?
    if (opened_ && right_ && right_->worker == result->worker) {
      const std::int64_t unused = options_.layout.MillisOf(last_tick_ + 1);
      result->floor_ms = std::min(std::max(result->floor_ms, unused), result->limit_ms);
    }
    GiveBack(*result, now, effects);
    return;
  }
  if (result->worker < 0 || result->worker >= options_.layout.workers()) {
    Failed({Code::kInternal, "the registry gave worker " + std::to_string(result->worker) +
                                 ", which the layout cannot hold"},
           now);
    return;
  }
  if (WasGivenBack(*result)) {
    excluded_.push_back(result->worker);
    Failed({Code::kUnavailable, "worker " + std::to_string(result->worker) +
                                    " was given back, and rests until its limit"},
           now);
    next_call_ = now;
    return;
  }
  if (!HoldOnHost(result->worker)) {
    excluded_.push_back(result->worker);
    Failed({Code::kUnavailable, "worker " + std::to_string(result->worker) +
                                    " is in use by another process of this host"},
           now);
    GiveBack(*result, now, effects);
    if (!traits_.bound) next_call_ = now;
    return;
  }
  ++claims_;
  Succeeded();
  Accept(std::move(result).value(), now);
}

/// A worker that was claimed and cannot be used: nobody minted with it, so its limit goes back to
/// where it was. Nobody waits for the answer.
void RightKeeper::GiveBack(const WorkerRight& right, Instant now, Effects& effects) {
  given_back_[right.worker] = right.generation;
  effects.emplace_back([this, right, deadline = now + options_.call_timeout] {
    ports_.registry.Lower(right, right.floor_ms, deadline, [](const Result<WorkerRight>&) {});
  });
}

/// The limit of such a right may still be lowered, however late, so it must not be adopted again;
/// taken anew it has another generation. A node's version changes with each claim.
bool RightKeeper::WasGivenBack(const WorkerRight& right) const {
  const auto found = given_back_.find(right.worker);
  return !traits_.bound && found != given_back_.end() && found->second == right.generation;
}

bool RightKeeper::HoldOnHost(std::int64_t worker) {
  if (ports_.host == nullptr || worker == held_on_host_) return true;
  if (!ports_.host->Take(worker)) return false;
  if (held_on_host_ >= 0) ports_.host->Release(held_on_host_);
  held_on_host_ = worker;
  return true;
}

void RightKeeper::Accept(WorkerRight right, Instant now) {
  // A repeated claim finds what the first one wrote, and no longer the limit of the owner before;
  // that was not above the time at which this process asked, and below the new limit by a tenth of
  // a lease at least. The latter counts where the clock was a year ahead when it asked first.
  if (!traits_.bound) {
    const std::int64_t before = std::min(
        claimed_from_, right.limit_ms - std::max<std::int64_t>(1, ToMillis(options_.lease) / 10));
    right.floor_ms = std::max(right.floor_ms, before);
  }
  right_ = std::move(right);
  lost_ = provisional_ = false;
  if (right_->free_workers >= 0) free_workers_ = right_->free_workers;
  extend_at_left_ = std::max<std::int64_t>(0, right_->limit_ms - wall_.Millis(now)) / 2;
  next_renewal_ = now + traits_.renew;
  log::Info("a worker was claimed", {{"worker", right_->worker},
                                     {"generation", right_->generation},
                                     {"from", IsoTime(right_->floor_ms)},
                                     {"limit", IsoTime(right_->limit_ms)}});
  if (traits_.bound) {
    next_save_ = now;  // opened when the journal holds it
    if (opened_ && journal_ && journal_->worker != right_->worker) {
      generator_.Close();
      opened_ = false;
    }
  } else {
    Open();
  }
}

/// The registry is away at the start, and the journal proves a right that still holds.
void RightKeeper::CarryOn(Instant now) {
  if (!traits_.bound || right_ || closing_ || !journal_ || journal_->spent) return;
  if (journal_->short_ms >= journal_->limit_ms || wall_.Millis(now) >= journal_->limit_ms) return;
  if (journal_->worker < 0 || journal_->worker >= options_.layout.workers()) return;
  if (!HoldOnHost(journal_->worker)) return;
  WorkerRight right;
  right.worker = journal_->worker;
  right.generation = journal_->generation;
  right.owner = journal_->owner;
  right.floor_ms = journal_->short_ms;
  right.limit_ms = journal_->limit_ms;
  right_ = std::move(right);
  provisional_ = true;
  journal_->short_ms = right_->floor_ms;
  log::Warn("the registry of workers is away: minting goes on by this server's own journal",
            {{"worker", right_->worker}, {"limit", IsoTime(right_->limit_ms)}});
  Open();
}

void RightKeeper::Open() {
  const Layout& layout = options_.layout;
  const std::int64_t floor = std::max(right_->floor_ms, order_floor_);
  generator_.Close();
  generator_.Open(right_->worker, layout.TickFrom(floor), LimitTick(EffectiveLimit()));
  opened_ = true;
}

void RightKeeper::Apply() {
  if (opened_) generator_.Extend(right_->worker, LimitTick(EffectiveLimit()));
}

void RightKeeper::OnExtended(Result<WorkerRight> result, Instant now, Effects& effects) {
  if (!result.ok()) {
    if (result.error().code == Code::kConflict) {
      Lose(result.error().message, now, effects);
    } else {
      Failed(result.error(), now);
    }
    next_renewal_ = now;
    return;
  }
  ++extensions_;
  Succeeded();
  if (!right_) return;
  right_->generation = result->generation;
  right_->limit_ms = std::max(right_->limit_ms, result->limit_ms);
  if (result->free_workers >= 0) free_workers_ = result->free_workers;
  extend_at_left_ = std::max<std::int64_t>(0, right_->limit_ms - wall_.Millis(now)) / 2;
  next_renewal_ = now + traits_.renew;
  // Not at once again, should the registry have given less than asked for.
  next_call_ = now + kLook;
  Apply();
}

void RightKeeper::Lose(const std::string& why, Instant now, Effects& effects) {
  ++losses_;
  log::Warn("the right to a worker was lost",
            {{"worker", right_ ? right_->worker : -1}, {"reason", why}});
  trouble_ = why;
  if (traits_.foreign_writers) {
    // Whoever wrote may mint at any time, and not by our rules.
    generator_.Close();
    opened_ = false;
    right_.reset();
    provisional_ = false;
    Disown(effects);
  } else {
    lost_ = true;  // but its limit holds: whoever has it now begins above
  }
  next_call_ = now;
}

void RightKeeper::OnLowered(Result<WorkerRight> result, Instant now, Effects& effects) {
  if (!result.ok()) {
    log::Info("the worker's limit was not lowered; it rests until then",
              {{"limit", IsoTime(right_->limit_ms)}, {"reason", result.error().message}});
    Finish(effects);
    return;
  }
  right_ = std::move(result).value();
  if (!traits_.bound) {
    Finish(effects);
    return;
  }
  // The journal's last word, so that a restart need not wait.
  RightRecord record{right_->worker,   right_->generation, right_->owner,
                     right_->limit_ms, right_->limit_ms,   true};
  call_ = Call::kLower;  // its deadline bounds this too
  call_deadline_ = now + options_.call_timeout;
  Write(record, effects);
}

void RightKeeper::Failed(const Error& error, Instant now) {
  ++failures_;
  // A reason may hold a number that changes with each try.
  if (failures_in_row_++ == 0 || (trouble_ != error.message && now >= next_complaint_)) {
    log::Warn(right_ && !lost_ && !provisional_ ? "the right to a worker cannot be extended"
                                                : "no worker can be claimed",
              {{"reason", error.message}});
    next_complaint_ = now + kComplaint;
  }
  trouble_ = error.message;
  next_call_ = now + Backoff(failures_in_row_, kBackoffMin, kBackoffMax, ports_.random);
}

void RightKeeper::Succeeded() {
  if (failures_in_row_ > 0) log::Info("the registry of workers grants again");
  failures_in_row_ = 0;
  trouble_.clear();
  excluded_.clear();
}

void RightKeeper::Close(std::function<void()> done) {
  {
    const MutexLock lock(mu_);
    closing_ = true;
    close_by_ = ports_.clock.Now() + 4 * options_.call_timeout;
    done_ = std::move(done);
    last_tick_ = generator_.Close();
  }
  changed_();  // Tick lowers, once no call is under way
}

void RightKeeper::Finish(Effects& effects) {
  if (finished_) return;
  finished_ = true;
  effects.push_back(std::move(done_));
}

}  // namespace leaf
