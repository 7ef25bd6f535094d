// What operators do to tags. Each step is a bounded call of the store, so `done` is always called.

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "core/segment/engine_impl.h"
#include "core/segment/errors.h"
#include "core/tag_name.h"

namespace leaf {

struct Engine::Impl::PutJob {
  std::string name;
  std::int64_t step;
  std::optional<std::int64_t> max_id;
  Done<Put> done;
  int turns = 0;  ///< between "it exists" and "it does not"; others may be at it too
};

void Engine::Impl::PutTag(std::string name, std::int64_t step, std::optional<std::int64_t> max_id,
                          Done<Put> done) {
  if (name.empty() || name.size() > kMaxTagBytes) {
    return done(Error{Code::kInvalidArgument, "a tag has 1 to 128 bytes"});
  }
  if (step <= 0) return done(Error{Code::kInvalidArgument, "step must be above 0"});
  if (max_id && (*max_id < 0 || *max_id == kMaxEnd)) {
    return done(Error{Code::kInvalidArgument, "max_id must be in 0 to 2^63 - 2"});
  }
  bool exists = false;
  if (const Tag* tag = tags_.Find(name)) {
    MutexLock lock(LockOf(*tag));
    exists = !tag->absent;
  }
  auto job = std::make_shared<PutJob>(PutJob{std::move(name), step, max_id, std::move(done)});
  // Changing a step takes fewer rights than creating a row: try that first where it may do.
  exists ? PutExisting(job) : PutCreate(job);
}

void Engine::Impl::PutCreate(const std::shared_ptr<PutJob>& job) {
  if (!IsPlainTag(job->name)) {
    return job->done(Error{Code::kInvalidArgument,
                           "a new tag must consist of letters, digits, '.', '_', ':' and '-'"});
  }
  std::int64_t start = job->max_id.value_or(1);
  if (const Tag* tag = tags_.Find(job->name)) {
    MutexLock lock(LockOf(*tag));
    start = std::max({start, tag->mark, tag->seen});
  }
  const Instant deadline = clock_.Now() + options_.store_timeout;
  store_.Create(job->name, job->step, start, deadline,
                calls_.Bound<Row>(deadline, [this, job](Result<Row> row) {
                  if (!row.ok() && row.error().code == Code::kConflict && ++job->turns < 3) {
                    return PutExisting(job);
                  }
                  if (!row.ok()) return job->done(row.error());
                  Know(*row);
                  lookups_.Forget(job->name);
                  job->done(Put{true, std::move(*row)});
                }));
}

void Engine::Impl::PutExisting(const std::shared_ptr<PutJob>& job) {
  if (!job->max_id) return PutStep(job);
  const Instant deadline = clock_.Now() + options_.store_timeout;
  store_.Find(
      job->name, deadline,
      calls_.Bound<std::optional<Row>>(deadline, [this, job](Result<std::optional<Row>> row) {
        if (!row.ok()) return job->done(row.error());
        if (!row->has_value() && ++job->turns < 3) return PutCreate(job);
        if (!row->has_value()) return job->done(NoSuchTag(job->name));
        if ((*row)->max_id == *job->max_id) return PutStep(job);
        job->done(Error{Code::kConflict, "tag \"" + job->name + "\" exists with max_id " +
                                             std::to_string((*row)->max_id) +
                                             "; only its step can be changed"});
      }));
}

void Engine::Impl::PutStep(const std::shared_ptr<PutJob>& job) {
  const Instant deadline = clock_.Now() + options_.store_timeout;
  store_.SetStep(job->name, job->step, deadline,
                 calls_.Bound<Row>(deadline, [this, job](Result<Row> row) {
                   if (!row.ok() && row.error().code == Code::kNotFound && ++job->turns < 3) {
                     return PutCreate(job);
                   }
                   if (!row.ok()) return job->done(row.error());
                   Know(*row);
                   lookups_.Forget(job->name);
                   job->done(Put{false, std::move(*row)});
                 }));
}

// The row is the only one that knows what other servers took. So it is looked at and remembered
// before it goes: also a deletion of unknown outcome must not let it be created lower.
void Engine::Impl::DeleteTag(std::string name, Done<Row> done) {
  const Instant deadline = clock_.Now() + options_.store_timeout;
  Done<std::optional<Row>> found = [this, name, done](Result<std::optional<Row>> row) {
    if (!row.ok()) return done(row.error());
    if (row->has_value()) Remember(**row);
    DeleteRow(name, done);
  };
  store_.Find(std::move(name), deadline,
              calls_.Bound<std::optional<Row>>(deadline, std::move(found)));
}

void Engine::Impl::DeleteRow(const std::string& name, Done<Row> done) {
  const Instant deadline = clock_.Now() + options_.store_timeout;
  Done<Row> deleted = [this, name, done = std::move(done)](Result<Row> row) {
    if (row.ok()) Remember(*row);
    Tag* tag = tags_.Find(name);
    if (tag != nullptr && (row.ok() || row.error().code == Code::kNotFound)) {
      After after;
      {
        MutexLock lock(LockOf(*tag));
        MarkAbsent(*tag, after);
      }
      Run(tag, after);
    }
    done(std::move(row));
  };
  store_.Delete(name, deadline, calls_.Bound<Row>(deadline, std::move(deleted)));
}

void Engine::Impl::Remember(const Row& row) {
  Tag& tag = tags_.FindOrAdd(row.tag);
  MutexLock lock(LockOf(tag));
  tag.seen = std::max(tag.seen, row.max_id);
  Record(tag);
}

void Engine::Impl::ResumeTag(std::string name, std::int64_t skip, Done<std::int64_t> done) {
  if (skip < 0) return done(Error{Code::kInvalidArgument, "skip must not be below 0"});
  Tag* tag = tags_.Find(name);
  std::int64_t not_below = 0;
  bool stopped = false;
  if (tag != nullptr) {
    MutexLock lock(LockOf(*tag));
    stopped = tag->regressed;
    not_below = std::max(tag->mark, tag->seen);
    if (tag->absent && !stopped) tag = nullptr;
  }
  if (tag == nullptr) return done(NoSuchTag(name));
  if (!stopped) {
    return done(Error{Code::kConflict, "tag \"" + name + "\" is not stopped"});
  }
  const Instant deadline = clock_.Now() + options_.store_timeout;
  Done<std::int64_t> raised = [this, tag, done = std::move(done)](Result<std::int64_t> max_id) {
    if (max_id.ok()) {
      MutexLock lock(LockOf(*tag));
      if (tag->regressed) regressed_.fetch_sub(1, std::memory_order_relaxed);
      tag->regressed = false;
      tag->row_max = *max_id;
      tag->seen = std::max(tag->seen, *max_id);
      if (tag->use) {
        if (tag->use->phase == Phase::kRaising) tag->use->phase = Phase::kRest;
        tag->use->retry_at = kNever;
        tag->use->failures = 0;
        tag->use->last_error.clear();
      }
      Record(*tag);
    }
    if (max_id.ok()) {
      log::Warn("a stopped tag was resumed", {{"tag", tag->name()}, {"max_id", *max_id}});
    }
    done(std::move(max_id));
  };
  store_.Raise(std::move(name), not_below, skip, deadline,
               calls_.Bound<std::int64_t>(deadline, std::move(raised)));
}

Result<std::int64_t> Engine::Impl::DropTag(std::string_view name) {
  Tag* tag = tags_.Find(name);
  if (tag == nullptr) return NoSuchTag(name);
  After after;
  std::int64_t dropped = 0;
  {
    MutexLock lock(LockOf(*tag));
    if (tag->absent) return NoSuchTag(name);
    dropped = DiscardHeld(*tag, Discard::kDropped);
    // A flight under way may have reserved before this call; its ids would come after it.
    if (tag->use && tag->use->phase == Phase::kFlying) {
      GiveUpFlight(*tag, after);
      if (!tag->use->waiters.empty()) Want(*tag, after);
    }
  }
  Run(tag, after);
  return dropped;
}

}  // namespace leaf
