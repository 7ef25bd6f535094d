#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "store/driver.h"

namespace leaf {

/// One call of the port on its way to a driver and back. Its answer goes out once, by Deliver (what
/// Run found) or by Fail. Whoever sets `answered` under BlockingStore's lock owns the answer; Run
/// belongs to the session that took the job and touches nothing of the caller's.
class StoreJob {
 public:
  explicit StoreJob(Instant due) : deadline(due) {}
  virtual ~StoreJob() = default;

  virtual bool reserves() const noexcept { return false; }
  /// Whether a session that turned out to be cut may be replaced and the job run again.
  virtual bool repeatable() const noexcept = 0;
  /// `store_id` is that of the session. REQUIRES: !reserves().
  virtual void Run(SegmentDriver& driver, std::uint64_t store_id, Instant due) = 0;
  /// After a run: why it failed, or nullptr.
  virtual const Error* failure() const noexcept = 0;
  virtual void Deliver() = 0;
  /// `begun`: the driver may have sent something for it.
  virtual void Fail(const Error& error, bool begun) = 0;

  const Instant deadline;
  bool answered = false;  ///< guarded by BlockingStore's lock
  bool retried = false;   ///< likewise
};
using JobPtr = std::shared_ptr<StoreJob>;

/// One ask. It keeps its own copy of the tag: a stuck thread may outlive the engine.
class ReserveJob final : public StoreJob {
 public:
  ReserveJob(const Ask& ask, Instant due, GrantSink& sink)
      : StoreJob(due), tag_(ask.tag), flight_(ask.flight), count_(ask.count), sink_(&sink) {}

  Ask ask() const noexcept { return {flight_, tag_, count_, deadline}; }
  void Keep(Grant grant) { grant_ = std::move(grant); }

  bool reserves() const noexcept override { return true; }
  bool repeatable() const noexcept override;
  void Run(SegmentDriver& driver, std::uint64_t store_id, Instant due) override;
  const Error* failure() const noexcept override;
  void Deliver() override;
  void Fail(const Error& error, bool begun) override;

 private:
  const std::string tag_;
  const Flight flight_;
  const std::int64_t count_;
  GrantSink* const sink_;
  Grant grant_;
};

/// A call that is not a reservation.
template <typename T>
class CallJob final : public StoreJob {
 public:
  using Call = std::function<Result<T>(SegmentDriver&, Instant)>;

  /// `only_on`: refused by any other store; 0: all will do.
  CallJob(Instant due, bool only_reads, Call call, Done<T> done, std::uint64_t only_on = 0)
      : StoreJob(due),
        only_reads_(only_reads),
        only_on_(only_on),
        call_(std::move(call)),
        done_(std::move(done)) {}

  bool repeatable() const noexcept override { return only_reads_; }
  void Run(SegmentDriver& driver, std::uint64_t store_id, Instant due) override {
    if (only_on_ == 0 || only_on_ == store_id) {
      result_.emplace(call_(driver, due));
    } else {
      result_.emplace(Error{Code::kConflict, "another store has taken over"});
    }
  }
  const Error* failure() const noexcept override {
    return result_ && !result_->ok() ? &result_->error() : nullptr;
  }
  void Deliver() override { Answer(std::move(*result_)); }
  void Fail(const Error& error, bool begun) override {
    Answer(begun && !only_reads_ ? Error{error.code, error.message + "; it may still take effect"}
                                 : error);
  }

 private:
  // What `done_` captures is the caller's, so it ends here and not with the job.
  void Answer(Result<T> result) {
    if (const Done<T> done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  const bool only_reads_;
  const std::uint64_t only_on_;
  const Call call_;
  Done<T> done_;
  std::optional<Result<T>> result_;
};

/// Runs what a session took: one call, or a batch of reservations, by `due`.
void RunJobs(SegmentDriver& driver, const std::vector<JobPtr>& jobs, std::uint64_t store_id,
             std::uint32_t store_turn, Instant due);

}  // namespace leaf
