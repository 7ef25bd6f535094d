// Lock order: mu_ alone. Driver calls and answers happen outside of it; only Interrupt, which never
// blocks, is called under it, because that pins the call it is meant for.
//
// One session's thread takes the calls in order. The supervisor never runs driver calls, so nothing
// can hold up the deadlines: it refuses what waits too long, interrupts the call that is late, and
// answers for a session that does not return all the same. Such a session is abandoned: its thread
// is left to end alone, touches only Impl, and what it brings is dropped.
#include "registry/blocking_registry.h"

#include <algorithm>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "base/mutex.h"

namespace leaf {
namespace {

constexpr Duration kGrace = std::chrono::milliseconds(50);  // for an interrupted call to return
constexpr Duration kShutdown = std::chrono::milliseconds(500);
constexpr Duration kLongest = std::chrono::minutes(1);

/// A call without its types.
struct Job {
  Instant deadline;
  /// Runs the call; what it returns gives the answer.
  std::function<std::function<void()>(RegistryDriver&, std::string& failure)> run;
  std::function<void(Error)> fail;
};
using JobPtr = std::shared_ptr<Job>;

}  // namespace

class BlockingRegistry::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Options options, RegistryFactory factory, Clock& clock)
      : options_(std::move(options)), factory_(std::move(factory)), clock_(clock) {}

  template <typename T, typename F>
  void Submit(Instant deadline, Done<T> done, F call);
  void Shutdown();
  RegistryStatus Status() const;
  const RegistryTraits& traits() const noexcept { return options_.traits; }

 private:
  struct Session {
    std::unique_ptr<RegistryDriver> driver;  // set by its thread; used by others only while busy
    JobPtr job;                              // the call under way
    bool busy = false, interrupted = false, abandoned = false, ended = false;
  };
  using SessionPtr = std::shared_ptr<Session>;
  struct Late {
    JobPtr job;
    std::string why;
  };

  void Enqueue(JobPtr job);
  bool Spawn() REQUIRES_LOCK(mu_);
  void StartSupervisor() REQUIRES_LOCK(mu_);
  void Work(SessionPtr session);
  JobPtr Take(Session& session);
  std::function<void()> Call(Session& session, const JobPtr& job, std::string& failure);
  void Answer(Session& session, const std::function<void()>& answer, const std::string& failure);
  void Supervise();
  Instant Sweep(Instant now) REQUIRES_LOCK(mu_);
  void Watch(Instant now) REQUIRES_LOCK(mu_);
  Error Unavailable(const std::string& why) const {
    const std::string kind = options_.kind + ": ";
    return {Code::kUnavailable, why.starts_with(kind) ? why : kind + why};
  }

  const Options options_;
  const RegistryFactory factory_;
  Clock& clock_;  // the caller's: not read once closed_

  mutable Mutex mu_;
  CondVar work_, tick_, done_;
  std::deque<JobPtr> queue_ GUARDED_BY(mu_);
  std::vector<Late> late_ GUARDED_BY(mu_);  // for the supervisor to answer
  SessionPtr session_ GUARDED_BY(mu_);      // the one in service
  int stuck_ GUARDED_BY(mu_) = 0, calling_ GUARDED_BY(mu_) = 0;
  bool supervised_ GUARDED_BY(mu_) = false, closed_ GUARDED_BY(mu_) = false;
  bool up_ GUARDED_BY(mu_) = false;
  std::string last_error_ GUARDED_BY(mu_);
  std::vector<std::string> warnings_ GUARDED_BY(mu_);
  std::uint64_t calls_ GUARDED_BY(mu_) = 0, failures_ GUARDED_BY(mu_) = 0;
};

// --- Callers.

template <typename T, typename F>
void BlockingRegistry::Impl::Submit(Instant deadline, Done<T> done, F call) {
  auto job = std::make_shared<Job>();
  job->deadline = std::min(deadline, clock_.Now() + kLongest);
  auto shared = std::make_shared<Done<T>>(std::move(done));
  job->fail = [shared](Error error) { (*shared)(std::move(error)); };
  job->run = [shared, call = std::move(call), until = job->deadline](RegistryDriver& driver,
                                                                     std::string& failure) mutable {
    auto result = std::make_shared<Result<T>>(call(driver, until));
    // kConflict and kNotFound are answers of a registry that works.
    if (!result->ok() && result->error().code == Code::kUnavailable)
      failure = result->error().message;
    return [shared, result] { (*shared)(std::move(*result)); };
  };
  Enqueue(std::move(job));
}

void BlockingRegistry::Impl::Enqueue(JobPtr job) {
  MutexLock lock(mu_);
  StartSupervisor();
  if (job->deadline <= clock_.Now()) {
    late_.push_back({std::move(job), "the deadline passed before the call began"});
  } else if (queue_.size() >= static_cast<std::size_t>(options_.max_queued)) {
    late_.push_back({std::move(job), "too many calls wait for the registry"});
  } else if (session_ == nullptr && !Spawn()) {
    late_.push_back({std::move(job), std::to_string(stuck_) +
                                         " calls do not return from the registry; no more are "
                                         "begun"});
  } else {
    queue_.push_back(std::move(job));
    work_.NotifyAll();
  }
  tick_.NotifyAll();
}

void BlockingRegistry::Impl::StartSupervisor() {
  if (supervised_) return;
  try {
    std::thread([self = shared_from_this()] { self->Supervise(); }).detach();
  } catch (const std::system_error&) {
    LEAF_ASSERT(false && "no thread for the registry's supervisor");
  }
  supervised_ = true;
}

bool BlockingRegistry::Impl::Spawn() {
  if (stuck_ > options_.max_stuck) return false;
  auto session = std::make_shared<Session>();
  try {
    std::thread([self = shared_from_this(), session] { self->Work(session); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  session_ = std::move(session);
  return true;
}

RegistryStatus BlockingRegistry::Impl::Status() const {
  MutexLock lock(mu_);
  return {options_.kind, up_, last_error_, warnings_, calls_, failures_};
}

void BlockingRegistry::Impl::Shutdown() {
  std::vector<JobPtr> unanswered;
  {
    MutexLock lock(mu_);
    closed_ = true;
    for (JobPtr& job : queue_) unanswered.push_back(std::move(job));
    queue_.clear();
    for (Late& late : late_) unanswered.push_back(std::move(late.job));
    late_.clear();
    if (session_ && session_->busy && session_->job) session_->driver->Interrupt();
    work_.NotifyAll();
    tick_.NotifyAll();
    const Instant until = clock_.Now() + kShutdown;
    for (Instant now = clock_.Now(); session_ && !session_->ended && now < until;
         now = clock_.Now())
      done_.WaitFor(mu_, until - now);
    if (session_) {
      session_->abandoned = true;
      if (session_->job) unanswered.push_back(std::move(session_->job));
      session_.reset();
    }
    while (calling_ > 0 || supervised_) done_.Wait(mu_);
  }
  for (const JobPtr& job : unanswered) job->fail(Unavailable("the server is stopping"));
}

// --- The session.

void BlockingRegistry::Impl::Work(SessionPtr session) {
  {
    MutexLock lock(mu_);
    if (closed_) {
      session->ended = true;
      done_.NotifyAll();
      return;
    }
    ++calling_;  // the factory is the caller's: Shutdown waits for it
  }
  auto driver = factory_();
  {
    MutexLock lock(mu_);
    session->driver = std::move(driver);
    --calling_;
    done_.NotifyAll();
  }
  while (const JobPtr job = Take(*session)) {
    std::string failure;
    const std::function<void()> answer = Call(*session, job, failure);
    Answer(*session, answer, failure);
  }
  session->driver->Close();
  MutexLock lock(mu_);
  session->driver.reset();
  session->ended = true;
  if (session->busy && session->abandoned) --stuck_;
  done_.NotifyAll();
}

JobPtr BlockingRegistry::Impl::Take(Session& session) {
  MutexLock lock(mu_);
  for (;;) {
    if (session.abandoned || closed_) return nullptr;
    if (!queue_.empty()) break;
    work_.Wait(mu_);
  }
  session.job = std::move(queue_.front());
  queue_.pop_front();
  session.busy = true;
  session.interrupted = false;
  ++calls_;
  tick_.NotifyAll();
  return session.job;
}

std::function<void()> BlockingRegistry::Impl::Call(Session& session, const JobPtr& job,
                                                   std::string& failure) {
  RegistryDriver& driver = *session.driver;
  if (!driver.connected()) {
    driver.Close();
    std::vector<std::string> warnings;
    const Result<void> opened = driver.Open(job->deadline, warnings);
    if (!opened.ok()) {
      failure = opened.error().message;
      return [job, error = Unavailable(failure)] { job->fail(error); };
    }
    MutexLock lock(mu_);
    if (!session.abandoned) warnings_ = std::move(warnings);
  }
  return job->run(driver, failure);
}

void BlockingRegistry::Impl::Answer(Session& session, const std::function<void()>& answer,
                                    const std::string& failure) {
  {
    MutexLock lock(mu_);
    if (session.abandoned) return;  // answered already
    session.job.reset();
    session.busy = false;
    up_ = failure.empty();
    if (!up_) {
      ++failures_;
      last_error_ = failure;
    }
    ++calling_;
    done_.NotifyAll();
  }
  answer();
  MutexLock lock(mu_);
  --calling_;
  done_.NotifyAll();
}

// --- The supervisor.

void BlockingRegistry::Impl::Supervise() {
  for (;;) {
    std::vector<Late> late;
    {
      MutexLock lock(mu_);
      while (!closed_) {
        const Instant now = clock_.Now();
        Watch(now);
        const Instant next = Sweep(now);
        if (!late_.empty()) break;
        tick_.WaitFor(mu_, std::clamp(next - now, Duration(1'000'000), kLongest));
      }
      if (closed_) {
        supervised_ = false;
        done_.NotifyAll();
        return;
      }
      late.swap(late_);
      ++calling_;
    }
    for (const Late& each : late) each.job->fail(Unavailable(each.why));
    MutexLock lock(mu_);
    --calling_;
    done_.NotifyAll();
  }
}

// Moves what waited too long to late_. When to look again.
Instant BlockingRegistry::Impl::Sweep(Instant now) {
  Instant next = now + kLongest;
  std::deque<JobPtr> waiting;
  for (JobPtr& job : queue_) {
    if (job->deadline <= now) {
      late_.push_back({std::move(job), "the registry was busy until the deadline"});
      continue;
    }
    next = std::min(next, job->deadline);
    waiting.push_back(std::move(job));
  }
  queue_.swap(waiting);
  if (session_ && session_->busy) {
    const Instant due = session_->job->deadline;
    next = std::min(next, session_->interrupted ? due + kGrace : due);
  }
  return next;
}

void BlockingRegistry::Impl::Watch(Instant now) {
  if (!session_ || !session_->busy || session_->job->deadline > now) return;
  if (!session_->interrupted) {
    session_->interrupted = true;
    session_->driver->Interrupt();
  }
  if (session_->job->deadline + kGrace > now) return;
  session_->abandoned = true;
  ++stuck_;
  ++failures_;
  up_ = false;
  last_error_ = "a call does not return";
  late_.push_back({std::move(session_->job),
                   "no answer in time, and the call does not return; it may still happen"});
  session_.reset();
  if (queue_.empty() || Spawn()) return;
  for (JobPtr& job : queue_) late_.push_back({std::move(job), last_error_});
  queue_.clear();
}

// --- The port.

BlockingRegistry::BlockingRegistry(Options options, RegistryFactory factory, Clock& clock)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(factory), clock)) {}

BlockingRegistry::~BlockingRegistry() { impl_->Shutdown(); }

RegistryTraits BlockingRegistry::traits() const noexcept { return impl_->traits(); }

void BlockingRegistry::Claim(ClaimAsk ask, Done<WorkerRight> done) {
  const Instant deadline = ask.deadline;
  impl_->Submit<WorkerRight>(deadline, std::move(done),
                             [ask = std::move(ask)](RegistryDriver& driver, Instant until) mutable {
                               ask.deadline = until;
                               return driver.Claim(ask);
                             });
}

void BlockingRegistry::Extend(WorkerRight right, std::int64_t limit_ms, std::int64_t lease_ms,
                              Instant deadline, Done<WorkerRight> done) {
  impl_->Submit<WorkerRight>(
      deadline, std::move(done),
      [right = std::move(right), limit_ms, lease_ms](RegistryDriver& driver, Instant until) {
        return driver.Extend(right, limit_ms, lease_ms, until);
      });
}

void BlockingRegistry::Lower(WorkerRight right, std::int64_t limit_ms, Instant deadline,
                             Done<WorkerRight> done) {
  impl_->Submit<WorkerRight>(
      deadline, std::move(done),
      [right = std::move(right), limit_ms](RegistryDriver& driver, Instant until) {
        return driver.Lower(right, limit_ms, until);
      });
}

void BlockingRegistry::List(Instant deadline, Done<std::vector<WorkerRecord>> done) {
  impl_->Submit<std::vector<WorkerRecord>>(
      deadline, std::move(done),
      [](RegistryDriver& driver, Instant until) { return driver.List(until); });
}

void BlockingRegistry::Retire(std::int64_t worker, Instant deadline, Done<WorkerRecord> done) {
  impl_->Submit<WorkerRecord>(
      deadline, std::move(done),
      [worker](RegistryDriver& driver, Instant until) { return driver.Retire(worker, until); });
}

RegistryStatus BlockingRegistry::Status() const { return impl_->Status(); }

}  // namespace leaf
