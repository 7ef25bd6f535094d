#include "store/store_job.h"

#include <algorithm>
#include <span>

#include "base/assert.h"

namespace leaf {

bool ReserveJob::repeatable() const noexcept {
  return grant_.outcome == Outcome::kRefused && grant_.error.code == Code::kUnavailable;
}

void ReserveJob::Run(SegmentDriver&, std::uint64_t, Instant) { LEAF_ASSERT(false); }

const Error* ReserveJob::failure() const noexcept {
  return grant_.outcome == Outcome::kGranted ? nullptr : &grant_.error;
}

void ReserveJob::Deliver() { sink_->OnGrant(grant_); }

void ReserveJob::Fail(const Error& error, bool begun) {
  Grant grant;
  grant.flight = flight_;
  grant.outcome = begun ? Outcome::kUnknown : Outcome::kRefused;
  grant.error = error;
  sink_->OnGrant(grant);
}

void RunJobs(SegmentDriver& driver, const std::vector<JobPtr>& jobs, std::uint64_t store_id,
             std::uint32_t store_turn, Instant due) {
  if (!jobs.front()->reserves()) {
    jobs.front()->Run(driver, store_id, due);
    return;
  }
  std::vector<Ask> asks;
  asks.reserve(jobs.size());
  for (const JobPtr& job : jobs) {
    asks.push_back(static_cast<const ReserveJob&>(*job).ask());
    asks.back().deadline = std::min(asks.back().deadline, due);
  }
  std::vector<Grant> grants(asks.size());
  driver.Reserve(asks, grants);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Grant& grant = grants[i];
    grant.flight = asks[i].flight;
    // A range of another size than asked for would be our own driver's fault, and a duplicate.
    LEAF_ASSERT(grant.outcome != Outcome::kGranted || grant.range.size() == asks[i].count);
    if (grant.store_id == 0) grant.store_id = store_id;
    grant.store_turn = store_turn;
    static_cast<ReserveJob&>(*jobs[i]).Keep(std::move(grant));
  }
}

}  // namespace leaf
