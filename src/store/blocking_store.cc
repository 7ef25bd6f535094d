#include "store/blocking_store.h"

#include <utility>

#include "store/blocking_impl.h"

namespace leaf {

BlockingStore::BlockingStore(Options options, Factory factory, Clock& clock)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(factory), clock)) {
  impl_->Start();
}

BlockingStore::~BlockingStore() { impl_->Shutdown(); }

void BlockingStore::Reserve(std::span<const Ask> asks, GrantSink& sink) {
  std::vector<JobPtr> jobs;
  jobs.reserve(asks.size());
  for (const Ask& ask : asks)
    jobs.push_back(std::make_shared<ReserveJob>(ask, impl_->Due(ask.deadline), sink));
  impl_->Submit(std::move(jobs));
}

void BlockingStore::Find(std::string tag, Instant deadline, Done<std::optional<Row>> done) {
  impl_->Submit({std::make_shared<CallJob<std::optional<Row>>>(
      impl_->Due(deadline), true,
      [tag = std::move(tag)](SegmentDriver& d, Instant due) { return d.Find(tag, due); },
      std::move(done))});
}

void BlockingStore::List(std::string after, int limit, Instant deadline,
                         Done<std::vector<Row>> done) {
  impl_->Submit({std::make_shared<CallJob<std::vector<Row>>>(
      impl_->Due(deadline), true,
      [after = std::move(after), limit](SegmentDriver& d, Instant due) {
        return d.List(after, limit, due);
      },
      std::move(done))});
}

void BlockingStore::Create(std::string tag, std::int64_t step, std::int64_t max_id,
                           Instant deadline, Done<Row> done) {
  impl_->Submit({std::make_shared<CallJob<Row>>(
      impl_->Due(deadline), false,
      [tag = std::move(tag), step, max_id](SegmentDriver& d, Instant due) {
        return d.Create(tag, step, max_id, due);
      },
      std::move(done))});
}

void BlockingStore::SetStep(std::string tag, std::int64_t step, Instant deadline, Done<Row> done) {
  impl_->Submit({std::make_shared<CallJob<Row>>(
      impl_->Due(deadline), false,
      [tag = std::move(tag), step](SegmentDriver& d, Instant due) {
        return d.SetStep(tag, step, due);
      },
      std::move(done))});
}

void BlockingStore::Delete(std::string tag, Instant deadline, Done<Row> done) {
  impl_->Submit({std::make_shared<CallJob<Row>>(
      impl_->Due(deadline), false,
      [tag = std::move(tag)](SegmentDriver& d, Instant due) { return d.Delete(tag, due); },
      std::move(done))});
}

void BlockingStore::Raise(std::string tag, std::int64_t not_below, std::int64_t add,
                          Instant deadline, Done<std::int64_t> done) {
  impl_->Submit({std::make_shared<CallJob<std::int64_t>>(
      impl_->Due(deadline), false,
      [tag = std::move(tag), not_below, add](SegmentDriver& d, Instant due) {
        return d.Raise(tag, not_below, add, due);
      },
      std::move(done))});
}

void BlockingStore::HandBack(std::string tag, Range tail, std::uint64_t store_id, Instant deadline,
                             Done<bool> done) {
  impl_->Submit({std::make_shared<CallJob<bool>>(
      impl_->Due(deadline), false,
      [tag = std::move(tag), tail](SegmentDriver& d, Instant due) {
        return d.HandBack(tag, tail, due);
      },
      std::move(done), store_id)});
}

StoreStatus BlockingStore::Status() const { return impl_->Status(); }

void BlockingStore::Abort() noexcept { impl_->Abort(); }

BlockingStore::Options BlockingOptions(const StoreOptions& options) {
  BlockingStore::Options result;
  result.kind = options.kind;
  result.timeout = options.timeout;
  result.min_durability = options.min_durability;
  // SQLite writes one transaction at a time; a second session lets a long list pass by.
  if (options.kind == "sqlite") result.max_sessions = 2;
  if (options.kind == "memory") result.max_sessions = 1;
  return result;
}

}  // namespace leaf
