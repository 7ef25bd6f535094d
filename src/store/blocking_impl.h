#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "store/blocking_store.h"
#include "store/store_job.h"

namespace leaf {

/// The threads and the state of a BlockingStore, kept alive by them: a thread that is stuck in a
/// driver may outlive the store, and then touches only this. Thread-safe.
class BlockingStore::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Options options, Factory factory, Clock& clock);

  void Start();
  void Submit(std::vector<JobPtr> jobs);
  StoreStatus Status() const;
  void Abort() noexcept;
  /// Answers everything. Nothing of the caller's is touched after it.
  void Shutdown();

  /// When a call that may wait until `deadline` is due at the latest.
  Instant Due(Instant deadline) const noexcept;

 private:
  struct Session;
  using SessionPtr = std::shared_ptr<Session>;
  using Jobs = std::deque<JobPtr>;
  enum class Step { kOpen, kCall, kClose };
  struct Answer {
    JobPtr job;
    Error error;
    bool begun = false;
  };

  // Workers, one thread a session.
  void Work(SessionPtr session);
  Step Next(Session& session);
  void Open(Session& session);
  void Call(Session& session);
  void Leave(Session& session);
  Step Leaving(Session& session, Instant now) REQUIRES_LOCK(mu_);
  bool Idle(Session& session, Instant now, Instant idle_since) REQUIRES_LOCK(mu_);
  void Begin(Session& session, Instant due) REQUIRES_LOCK(mu_);
  void Opened(Session& session, StoreInfo info) REQUIRES_LOCK(mu_);
  void TakenOver(const Session& session) REQUIRES_LOCK(mu_);
  void OpenFailed(const Error& error) REQUIRES_LOCK(mu_);
  void TakeJobs(Session& session, Instant now) REQUIRES_LOCK(mu_);
  std::vector<JobPtr> CallEnded(Session& session) REQUIRES_LOCK(mu_);
  void Again(JobPtr job) REQUIRES_LOCK(mu_);
  void DoubtIdle(Instant since) REQUIRES_LOCK(mu_);

  // The supervisor: deadlines, stuck threads, refusals.
  void Supervise();
  void Collect(Instant now) REQUIRES_LOCK(mu_);
  void Sweep(Jobs& queue, Instant now) REQUIRES_LOCK(mu_);
  void Watch(const SessionPtr& session, Instant now) REQUIRES_LOCK(mu_);
  void Abandon(const SessionPtr& session) REQUIRES_LOCK(mu_);

  // Both.
  bool CanSpawn() const REQUIRES_LOCK(mu_);
  bool Spawn() REQUIRES_LOCK(mu_);
  void Grow(Instant now) REQUIRES_LOCK(mu_);
  bool AnyOpen() const REQUIRES_LOCK(mu_);
  Error Refusal(const StoreJob& job, Instant now) const REQUIRES_LOCK(mu_);
  void FailQueued(Jobs& queue, const Error& error) REQUIRES_LOCK(mu_);
  void WakeAt(Instant due) REQUIRES_LOCK(mu_);
  Duration Backoff() REQUIRES_LOCK(mu_);
  Error Away(std::string why) const;
  void LogTurn();

  // Constant.
  const Options options_;
  const Factory factory_;
  Clock& clock_;  // the caller's: not read once closed_

  mutable Mutex mu_;
  CondVar work_;  // workers
  CondVar tick_;  // the supervisor
  CondVar done_;  // Shutdown

  Jobs reserves_ GUARDED_BY(mu_);
  Jobs calls_ GUARDED_BY(mu_);
  Instant earliest_ GUARDED_BY(mu_) = kNever;  // not above any queued deadline
  bool calls_turn_ GUARDED_BY(mu_) = false;
  std::vector<Answer> answers_ GUARDED_BY(mu_);  // for the supervisor to deliver
  Instant wake_ GUARDED_BY(mu_) = kNever;

  std::vector<SessionPtr> sessions_ GUARDED_BY(mu_);  // stuck ones are not in it
  int idle_ GUARDED_BY(mu_) = 0;
  int stuck_ GUARDED_BY(mu_) = 0;
  int batch_limit_ GUARDED_BY(mu_) = 1;
  int delivering_ GUARDED_BY(mu_) = 0;
  bool closing_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;
  bool supervised_ GUARDED_BY(mu_) = false;

  Instant retry_at_ GUARDED_BY(mu_) = Instant::min();
  Duration backoff_ GUARDED_BY(mu_){0};
  bool up_ GUARDED_BY(mu_) = false;
  bool told_ GUARDED_BY(mu_) = false;     // an outage or a start was logged
  bool told_up_ GUARDED_BY(mu_) = false;  // what was logged last
  std::string told_reason_ GUARDED_BY(mu_);
  Instant told_at_ GUARDED_BY(mu_) = Instant::min();
  std::string weak_ GUARDED_BY(mu_);  // why reservations are refused though the store answers
  std::string away_ GUARDED_BY(mu_);  // why the last connect failed
  std::string last_error_ GUARDED_BY(mu_);
  StoreInfo info_ GUARDED_BY(mu_);
  std::uint32_t turn_ GUARDED_BY(mu_) = 0;  // of info_.identity: how often it was another one
  std::uint64_t count_ GUARDED_BY(mu_) = 0, failures_ GUARDED_BY(mu_) = 0;
};

struct BlockingStore::Impl::Session {
  std::unique_ptr<SegmentDriver>
      driver;                  // set and reset by its thread; used by others only while busy
  std::uint64_t store_id = 0;  // its thread's
  std::uint32_t turn = 0;      // its thread's: of the store, when it was opened
  Instant call_due = kNever;   // its thread's: what the call under way was given
  // Guarded by the store's lock.
  bool open = false;
  bool busy = false;         // a driver call is under way, due at `due`
  bool interrupted = false;  // that call was told to end
  bool cut = false;          // to be opened again before the next call
  bool leaving = false;      // not needed any more
  bool abandoned = false;    // stuck; its answers are given, its thread only has to end
  Instant due = kNever;
  Instant begun = Instant::min();  // the call under way, or the last one
  Instant heard = Instant::min();  // the store's last word on this connection
  std::vector<JobPtr> jobs;
};

}  // namespace leaf
