// Lock order: mu_ alone. Driver calls, answers and log lines happen outside of it; only Interrupt,
// which never blocks, is called under it, because that pins the call it is meant for.
//
// A session's thread runs Next -> Open | Call | Close in a loop. The supervisor never runs driver
// calls, so that nothing can hold up the deadlines. A session that does not end its call within
// kGrace of its interrupt is abandoned: taken out of sessions_, its answers given as unknown, its
// thread left to end alone. Whether the store is away is a fact of all sessions together: a failed
// connect refuses callers only while no session is open.
#include "store/blocking_impl.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "base/random.h"
#include "store/refusals.h"

namespace leaf {
namespace {

constexpr Duration kLongest = std::chrono::minutes(1);  // of a wait; then it looks again
constexpr Duration kSweepEvery = std::chrono::milliseconds(5);
constexpr Duration kFirstBackoff = std::chrono::milliseconds(50);
constexpr int kTellPause = 10;  // in the longest back-offs
constexpr Duration kShutdown = std::chrono::milliseconds(500);

Duration Until(Instant due, Instant now) {
  return due <= now ? Duration(0) : std::min(due - now, kLongest);
}

std::string Millis(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) +
         " ms";
}

}  // namespace

BlockingStore::Impl::Impl(Options options, Factory factory, Clock& clock)
    : options_(std::move(options)), factory_(std::move(factory)), clock_(clock) {}

void BlockingStore::Impl::Start() {
  try {
    std::thread([self = shared_from_this()] { self->Supervise(); }).detach();
  } catch (const std::system_error&) {
    LEAF_ASSERT(false && "no thread for the store's supervisor");
  }
  MutexLock lock(mu_);
  supervised_ = true;
  if (sessions_.empty()) Spawn();  // else the supervisor was faster
}

Instant BlockingStore::Impl::Due(Instant deadline) const noexcept {
  return deadline == kNever ? clock_.Now() + options_.timeout : deadline;
}

Error BlockingStore::Impl::Away(std::string why) const {
  const std::string kind = options_.kind + ": ";
  return {Code::kUnavailable, why.starts_with(kind) ? std::move(why) : kind + why};
}

// --- Callers.

void BlockingStore::Impl::Submit(std::vector<JobPtr> jobs) {
  MutexLock lock(mu_);
  const Instant now = clock_.Now();
  for (JobPtr& job : jobs) {
    if (Error error = Refusal(*job, now); !error.message.empty()) {
      answers_.push_back({std::move(job), std::move(error), false});
      WakeAt(now);
      continue;
    }
    earliest_ = std::min(earliest_, job->deadline);
    WakeAt(job->deadline);
    (job->reserves() ? reserves_ : calls_).push_back(std::move(job));
    work_.NotifyOne();
  }
  Grow(now);
}

Error BlockingStore::Impl::Refusal(const StoreJob& job, Instant now) const {
  if (job.deadline <= now) return Away("the deadline passed before the call began");
  if (sessions_.empty() && !CanSpawn()) {
    return Away(std::to_string(stuck_) + " calls do not return from the store; no more are begun");
  }
  // Of a store that is weak, a session can have ended since: then no connect has failed.
  if (!AnyOpen() && now < retry_at_) return Away(away_.empty() ? last_error_ : away_);
  if (job.reserves() && !weak_.empty()) return Away(weak_);
  if (reserves_.size() + calls_.size() >= static_cast<std::size_t>(options_.max_queued)) {
    return Away("too many calls wait for the store");
  }
  return {};
}

StoreStatus BlockingStore::Impl::Status() const {
  MutexLock lock(mu_);
  StoreStatus status;
  status.kind = options_.kind;
  status.up = up_;
  status.durability = info_.durability;
  status.identity = info_.identity;
  status.last_error = last_error_;
  status.warnings = info_.warnings;
  status.calls = count_;
  status.failures = failures_;
  status.changes = turn_;
  status.sessions = std::count_if(sessions_.begin(), sessions_.end(),
                                  [](const SessionPtr& s) { return s->open; });
  return status;
}

void BlockingStore::Impl::Abort() noexcept {
  MutexLock lock(mu_);
  const Instant now = clock_.Now();
  for (const SessionPtr& session : sessions_) {
    session->cut = true;
    if (!session->busy) continue;
    session->due = std::min(session->due, now);
    WakeAt(now);
  }
  work_.NotifyAll();
}

void BlockingStore::Impl::Shutdown() {
  std::vector<Answer> answers;
  {
    MutexLock lock(mu_);
    closing_ = true;
    answers.swap(answers_);
    const Error error = Away("the server is stopping");
    FailQueued(reserves_, error);
    FailQueued(calls_, error);
    for (Answer& answer : answers_) answers.push_back(std::move(answer));
    answers_.clear();
    for (const SessionPtr& session : sessions_) {
      if (session->busy) session->driver->Interrupt();
    }
    work_.NotifyAll();
    tick_.NotifyAll();
    const Instant until = clock_.Now() + kShutdown;
    while (!sessions_.empty() && clock_.Now() < until)
      done_.WaitFor(mu_, Until(until, clock_.Now()));
    closed_ = true;
    for (const SessionPtr& session : sessions_) {
      session->abandoned = true;
      for (const JobPtr& job : session->jobs) {
        if (!std::exchange(job->answered, true)) answers.push_back({job, error, true});
      }
    }
    sessions_.clear();
    while (delivering_ > 0 || supervised_) done_.Wait(mu_);
  }
  for (const Answer& answer : answers) answer.job->Fail(answer.error, answer.begun);
}

// --- Sessions.

void BlockingStore::Impl::Work(SessionPtr session) {
  {
    MutexLock lock(mu_);
    if (closed_) return;
    ++delivering_;  // the factory is the caller's: Shutdown waits for it
  }
  auto driver = factory_();
  {
    MutexLock lock(mu_);
    session->driver = std::move(driver);
    --delivering_;
    done_.NotifyAll();
  }
  for (;;) {
    switch (Next(*session)) {
      case Step::kOpen:
        Open(*session);
        break;
      case Step::kCall:
        Call(*session);
        break;
      case Step::kClose:
        session->driver->Close();
        Leave(*session);
        return;
    }
  }
}

BlockingStore::Impl::Step BlockingStore::Impl::Next(Session& session) {
  MutexLock lock(mu_);
  if (session.abandoned || closed_) return Step::kClose;
  const Instant idle_since = clock_.Now();
  for (;;) {
    if (session.abandoned || closed_) return Step::kClose;
    const Instant now = clock_.Now();
    if (closing_) return Leaving(session, now);
    if (session.cut) session.open = session.cut = false;
    const bool probe = !session.open || !weak_.empty();
    if (probe && now >= retry_at_) {
      Begin(session, now + options_.timeout);
      return Step::kOpen;
    }
    if (session.open) TakeJobs(session, now);
    if (session.busy) {
      Grow(now);
      return Step::kCall;
    }
    if (Idle(session, now, idle_since)) return Leaving(session, now);
  }
}

BlockingStore::Impl::Step BlockingStore::Impl::Leaving(Session& session, Instant now) {
  session.leaving = true;
  Begin(session, now + options_.timeout);
  return Step::kClose;
}

// Waits for something to do. True: this session is not needed any more.
bool BlockingStore::Impl::Idle(Session& session, Instant now, Instant idle_since) {
  const bool surplus = std::count_if(sessions_.begin(), sessions_.end(),
                                     [](const SessionPtr& s) { return !s->leaving; }) > 1;
  if (surplus && (!session.open || now - idle_since >= options_.idle)) return true;
  Instant until = surplus ? idle_since + options_.idle : kNever;
  if (!session.open || !weak_.empty()) until = std::min(until, retry_at_);
  if (session.open) ++idle_;
  work_.WaitFor(mu_, Until(until, now));
  if (session.open) --idle_;
  return false;
}

void BlockingStore::Impl::Begin(Session& session, Instant due) {
  session.busy = true;
  session.interrupted = false;
  session.begun = clock_.Now();
  session.due = session.call_due = due;
  WakeAt(due);
}

void BlockingStore::Impl::TakeJobs(Session& session, Instant now) {
  const bool calls = !calls_.empty() && (reserves_.empty() || calls_turn_);
  Jobs& queue = calls ? calls_ : reserves_;
  const std::size_t most = calls ? 1 : static_cast<std::size_t>(batch_limit_);
  Instant due = Instant::min();
  session.jobs.clear();
  while (!queue.empty() && session.jobs.size() < most) {
    JobPtr job = std::move(queue.front());
    queue.pop_front();
    if (job->deadline <= now) {
      answers_.push_back({std::move(job), Away("no session was free before the deadline"), false});
      WakeAt(now);
      continue;
    }
    due = std::max(due, job->deadline);
    session.jobs.push_back(std::move(job));
  }
  if (session.jobs.empty()) return;
  calls_turn_ = !calls;
  count_ += 1;
  Begin(session, std::min(due, now + options_.timeout));
}

void BlockingStore::Impl::Open(Session& session) {
  session.driver->Close();
  Result<StoreInfo> info = session.driver->Open(session.call_due);
  {
    MutexLock lock(mu_);
    session.busy = false;
    if (session.abandoned || closing_) return;
    if (session.interrupted && info.ok())
      info = Error{Code::kUnavailable, "no connection within " + Millis(options_.timeout)};
    session.open = info.ok();
    if (info.ok()) {
      session.heard = clock_.Now();
      session.store_id = IdentityHash(info->identity);
      Opened(session, std::move(*info));
    } else {
      OpenFailed(info.error());
    }
  }
  LogTurn();
}

void BlockingStore::Impl::Opened(Session& session, StoreInfo info) {
  if (!info_.identity.empty() && info.identity != info_.identity) TakenOver(session);
  session.turn = turn_;
  info_ = std::move(info);
  batch_limit_ = std::max(1, session.driver->batch_limit());
  weak_.clear();
  away_.clear();
  if (info_.durability >= options_.min_durability) {
    up_ = true;
    backoff_ = Duration(0);
    last_error_.clear();
    return;
  }
  weak_ = refusal::TooWeak("the store", info_.durability, options_.min_durability).message;
  for (const std::string& warning : info_.warnings) weak_ += "; " + warning;
  last_error_ = weak_;
  up_ = false;
  retry_at_ = clock_.Now() + Backoff();
  FailQueued(reserves_, Away(weak_));
}

// A change of identity is confirmed once no session with the former store is used any more: what
// comes from them now belongs to an earlier turn.
void BlockingStore::Impl::TakenOver(const Session& session) {
  ++turn_;
  for (const SessionPtr& other : sessions_) {
    if (other.get() != &session && (other->open || other->busy)) other->cut = true;
  }
  work_.NotifyAll();
}

void BlockingStore::Impl::OpenFailed(const Error& error) {
  ++failures_;
  last_error_ = error.message;
  retry_at_ = clock_.Now() + Backoff();
  if (AnyOpen()) return;
  up_ = false;
  away_ = error.message;
  FailQueued(reserves_, Away(away_));
  FailQueued(calls_, Away(away_));
}

void BlockingStore::Impl::Call(Session& session) {
  RunJobs(*session.driver, session.jobs, session.store_id, session.turn, session.call_due);
  std::vector<JobPtr> answered;
  {
    MutexLock lock(mu_);
    answered = CallEnded(session);
    ++delivering_;
  }
  for (const JobPtr& job : answered) job->Deliver();
  answered.clear();
  {
    MutexLock lock(mu_);
    --delivering_;
    done_.NotifyAll();
  }
  LogTurn();
}

// The jobs whose answers this session's thread shall deliver.
std::vector<JobPtr> BlockingStore::Impl::CallEnded(Session& session) {
  std::vector<JobPtr> jobs = std::exchange(session.jobs, {});
  session.busy = false;
  if (session.abandoned || closed_) return {};
  session.open = session.driver->connected() && !session.interrupted;
  if (!AnyOpen()) up_ = false;
  const Instant now = clock_.Now();
  if (session.open) session.heard = now;
  if (!session.open) DoubtIdle(session.begun);
  std::vector<JobPtr> answered;
  bool failed = false;
  for (JobPtr& job : jobs) {
    const Error* failure = job->failure();
    if (failure != nullptr && failure->code == Code::kUnavailable) {
      failed = true;
      last_error_ = failure->message;
      const bool again = !session.driver->connected() && job->repeatable() && !job->retried;
      if (again && !closing_ && now < job->deadline) {
        Again(std::move(job));
        continue;
      }
    }
    job->answered = true;
    answered.push_back(std::move(job));
  }
  if (failed) ++failures_;
  return answered;
}

// This session has to reopen first and may fail to; another one may take the job meanwhile.
void BlockingStore::Impl::Again(JobPtr job) {
  job->retried = true;
  earliest_ = std::min(earliest_, job->deadline);
  WakeAt(job->deadline);
  (job->reserves() ? reserves_ : calls_).push_front(std::move(job));
  work_.NotifyOne();
}

// What ended or silenced one connection (a restart of the store, a firewall that forgot it) has hit
// those that were not heard since: each would cost a caller its timeout in turn, and hide that the
// store is away.
void BlockingStore::Impl::DoubtIdle(Instant since) {
  for (const SessionPtr& session : sessions_) {
    if (session->open && !session->busy && session->heard < since) session->cut = true;
  }
  work_.NotifyAll();
}

// The thread's last act; its session is closed.
void BlockingStore::Impl::Leave(Session& session) {
  {
    MutexLock lock(mu_);
    session.busy = session.open = false;  // nobody interrupts it from here on
  }
  session.driver.reset();
  MutexLock lock(mu_);
  std::erase_if(sessions_, [&](const SessionPtr& s) { return s.get() == &session; });
  if (session.abandoned) --stuck_;
  if (!closing_) {
    if (sessions_.empty()) Spawn();
    tick_.NotifyOne();
  }
  done_.NotifyAll();
}

bool BlockingStore::Impl::AnyOpen() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const SessionPtr& s) { return s->open && !s->cut; });
}

bool BlockingStore::Impl::CanSpawn() const {
  return !closing_ && stuck_ < options_.max_stuck &&
         sessions_.size() < static_cast<std::size_t>(options_.max_sessions);
}

bool BlockingStore::Impl::Spawn() {
  if (!CanSpawn()) return false;
  auto session = std::make_shared<Session>();
  sessions_.push_back(session);
  try {
    std::thread([self = shared_from_this(), session] { self->Work(session); }).detach();
  } catch (const std::system_error& error) {
    sessions_.pop_back();
    last_error_ = std::string("no thread for a session: ") + error.what();
    return false;
  }
  return true;
}

// One more session if all are taken; one at a time, and none while connecting fails.
void BlockingStore::Impl::Grow(Instant now) {
  const auto limit = static_cast<std::size_t>(batch_limit_);
  const std::size_t waiting = calls_.size() + (reserves_.size() + limit - 1) / limit;
  if (waiting <= static_cast<std::size_t>(idle_) || now < retry_at_) return;
  if (std::all_of(sessions_.begin(), sessions_.end(), [](const SessionPtr& s) { return s->open; }))
    Spawn();
}

Duration BlockingStore::Impl::Backoff() {
  backoff_ = std::min(std::max(backoff_ * 2, kFirstBackoff), options_.retry_max);
  const auto half = static_cast<std::uint64_t>(backoff_.count() / 2);
  return Duration(static_cast<Duration::rep>(half + SystemRandom().Below(half + 1)));
}

void BlockingStore::Impl::FailQueued(Jobs& queue, const Error& error) {
  for (JobPtr& job : queue) answers_.push_back({std::move(job), error, false});
  queue.clear();
  if (!answers_.empty()) tick_.NotifyOne();
}

void BlockingStore::Impl::WakeAt(Instant due) {
  if (due >= wake_) return;
  wake_ = due;
  tick_.NotifyOne();
}

// One line when the store goes and one when it comes, with what its probe had to say; and when the
// reason that it cannot be used becomes another one, but not at each attempt.
void BlockingStore::Impl::LogTurn() {
  std::string error;
  StoreInfo info;
  bool up = false;
  {
    MutexLock lock(mu_);
    // Between the loss of a session and the outcome of its reopening nothing is known.
    if (closing_ || (!up_ && away_.empty() && weak_.empty())) return;
    const bool turned = !std::exchange(told_, true) || told_up_ != up_;
    const std::string& reason = weak_.empty() ? away_ : weak_;
    const Instant now = clock_.Now();
    if (!turned &&
        (up_ || reason == told_reason_ || now - told_at_ < kTellPause * options_.retry_max))
      return;
    up = told_up_ = up_;
    error = up_ ? "" : reason;
    told_reason_ = error;
    told_at_ = now;
    info = info_;
  }
  if (up) {
    log::Info("the store answers", {{"store", options_.kind},
                                    {"identity", info.identity},
                                    {"durability", DurabilityName(info.durability)}});
    for (const std::string& warning : info.warnings) log::Warn(warning, {{"store", options_.kind}});
  } else {
    log::Warn("the store cannot be used", {{"store", options_.kind}, {"error", error}});
  }
}

// --- The supervisor.

void BlockingStore::Impl::Supervise() {
  for (;;) {
    std::vector<Answer> answers;
    {
      MutexLock lock(mu_);
      while (!closing_) {
        const Instant now = clock_.Now();
        Collect(now);
        if (!answers_.empty()) break;
        tick_.WaitFor(mu_, Until(wake_, now));
      }
      if (closing_) {
        supervised_ = false;
        done_.NotifyAll();
        return;
      }
      answers.swap(answers_);
      ++delivering_;
    }
    for (const Answer& answer : answers) answer.job->Fail(answer.error, answer.begun);
    answers.clear();
    MutexLock lock(mu_);
    --delivering_;
    done_.NotifyAll();
  }
}

void BlockingStore::Impl::Collect(Instant now) {
  wake_ = now + kLongest;
  if (earliest_ <= now) {
    earliest_ = kNever;
    Sweep(reserves_, now);
    Sweep(calls_, now);
  }
  if (earliest_ != kNever) wake_ = std::min(wake_, std::max(earliest_, now + kSweepEvery));
  const std::vector<SessionPtr> sessions = sessions_;
  for (const SessionPtr& session : sessions) Watch(session, now);
  if (sessions_.empty() && !Spawn() && stuck_ < options_.max_stuck)
    wake_ = std::min(wake_, now + options_.retry_max);
}

void BlockingStore::Impl::Sweep(Jobs& queue, Instant now) {
  const Error error = Away("no session was free before the deadline");
  Jobs waiting;
  for (JobPtr& job : queue) {
    if (job->deadline > now) {
      earliest_ = std::min(earliest_, job->deadline);
      waiting.push_back(std::move(job));
    } else {
      answers_.push_back({std::move(job), error, false});
    }
  }
  queue = std::move(waiting);
}

void BlockingStore::Impl::Watch(const SessionPtr& session, Instant now) {
  if (!session->busy) return;
  if (now >= session->due && !std::exchange(session->interrupted, true))
    session->driver->Interrupt();
  const Instant given_up = session->due + kGrace;
  if (session->interrupted && now >= given_up) {
    Abandon(session);
  } else {
    wake_ = std::min(wake_, session->interrupted ? given_up : session->due);
  }
}

void BlockingStore::Impl::Abandon(const SessionPtr& session) {
  session->abandoned = true;
  ++stuck_;
  std::erase(sessions_, session);
  const Error error = Away("no answer within " + Millis(options_.timeout));
  if (session->jobs.empty()) {
    if (!session->leaving) OpenFailed(error);
  } else {
    ++failures_;
    last_error_ = error.message;
    DoubtIdle(session->begun);
    if (!AnyOpen()) up_ = false;
  }
  for (const JobPtr& job : session->jobs) {
    if (!std::exchange(job->answered, true)) answers_.push_back({job, error, true});
  }
  if (sessions_.empty() && !Spawn()) {
    const Error refusal =
        Away(std::to_string(stuck_) + " calls do not return from the store; no more are begun");
    FailQueued(reserves_, refusal);
    FailQueued(calls_, refusal);
  }
}

}  // namespace leaf
