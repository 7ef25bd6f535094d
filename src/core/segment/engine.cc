#include "core/segment/engine.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "core/segment/engine_impl.h"
#include "core/segment/errors.h"
#include "core/tag_name.h"

namespace leaf {

std::string_view TagStateName(TagState state) noexcept {
  switch (state) {
    case TagState::kIdle:
      return "idle";
    case TagState::kActive:
      return "active";
    case TagState::kRegressed:
      return "regressed";
    case TagState::kAbsent:
      return "absent";
  }
  return "unknown";
}

std::string_view DiscardName(Discard reason) noexcept {
  switch (reason) {
    case Discard::kBurnt:
      return "burnt";
    case Discard::kSkipped:
      return "skipped";
    case Discard::kDeleted:
      return "deleted";
    case Discard::kDropped:
      return "dropped";
    case Discard::kRegressed:
      return "regressed";
    case Discard::kFailover:
      return "failover";
    case Discard::kAbandoned:
      return "abandoned";
  }
  return "unknown";
}

Engine::Impl::Impl(const EngineOptions& options, SegmentStore& store, MarkJournal& journal,
                   const RefillPolicy& policy, Clock& clock, Random& random, GrantSink& sink)
    : options_(options),
      store_(store),
      journal_(journal),
      policy_(policy),
      clock_(clock),
      random_(random),
      sink_(sink),
      flights_(std::max(options.max_flights, 1)),
      calls_(agenda_),
      room_(options.max_waiters),
      lookups_(options_, store, calls_, agenda_, clock, random, room_, *this),
      list_(options_, store, calls_, agenda_, clock, random, *this) {}

Engine::Impl::~Impl() = default;

class Engine::Impl::ReaderImpl final : public Reader {
 public:
  explicit ReaderImpl(Impl& engine) : engine_(engine), reader_(engine.qsbr_) {
    MutexLock lock(engine_.qsbr_mu_);
    engine_.qsbr_.Add(reader_);
  }
  ~ReaderImpl() override {
    reader_.Offline();
    MutexLock lock(engine_.qsbr_mu_);
    engine_.qsbr_.Remove(reader_);
  }
  void Online() noexcept override { reader_.Online(); }
  void Quiesce() noexcept override { reader_.Quiesce(); }
  void Offline() noexcept override { reader_.Offline(); }

 private:
  Impl& engine_;
  Qsbr<>::Reader reader_;
};

std::unique_ptr<Reader> Engine::Impl::AddReader() { return std::make_unique<ReaderImpl>(*this); }

Result<void> Engine::Impl::Load() {
  auto entries = journal_.Load();
  if (!entries.ok()) return entries.error();
  for (const MarkJournal::Entry& entry : *entries) {
    Tag& tag = tags_.FindOrAdd(entry.tag);
    MutexLock lock(LockOf(tag));
    tag.mark = entry.mark.end;
    tag.seen = std::max(entry.mark.end, entry.mark.seen);
    if (entry.mark.regressed && !tag.regressed) regressed_.fetch_add(1, std::memory_order_relaxed);
    tag.regressed = entry.mark.regressed;
    tag.generation = entry.mark.generation & Lineage::kMost;
    lineage_.Remember(tag.generation, entry.mark.store);
  }
  return {};
}

Tag& Engine::Impl::Know(const Row& row) {
  Tag& tag = tags_.FindOrAdd(row.tag);
  After after;
  bool appeared = false;
  {
    MutexLock lock(LockOf(tag));
    appeared = tag.absent;
    if (appeared) {
      tag.absent = false;
      known_.fetch_add(1, std::memory_order_relaxed);
    }
    tag.row_max = row.max_id;
    tag.row_step = row.step;
    tag.pass = list_.pass();
    if (row.max_id < kMaxEnd) tag.exhausted = false;
    if (row.max_id > tag.seen) {
      tag.seen = row.max_id;
      if (tag.mark > 0) Record(tag);
    }
    // Stopped before a restart, or gone back once more: others must be kept off the ids seen here.
    if (tag.regressed && row.max_id < tag.seen) {
      TagUse& use = UseOf(tag);
      if (use.phase == Phase::kRest && use.retry_at == kNever) {
        tag.raised = false;
        use.phase = Phase::kRaising;
        after.raise = true;
      }
    }
  }
  Run(&tag, after);
  if (appeared) lookups_.Appeared(row.tag, tag);
  return tag;
}

void Engine::Impl::ForgetUnseen(std::uint32_t pass) {
  tags_.ForEach([this, pass](Tag& tag) {
    After after;
    {
      MutexLock lock(LockOf(tag));
      if (tag.absent || tag.pass >= pass) return;
      MarkAbsent(tag, after);
    }
    Run(&tag, after);
  });
}

Result<std::int64_t> Engine::Impl::CreateAt(std::string_view name) const {
  if (!options_.auto_create || !IsPlainTag(name)) return NoSuchTag(name);
  if (known_.load(std::memory_order_relaxed) >= options_.auto_create_limit) {
    return Error{Code::kNotFound,
                 NoSuchTag(name).message + ", and segment.auto_create_limit allows no further tag"};
  }
  const Tag* tag = tags_.Find(name);
  if (tag == nullptr) return std::int64_t{1};
  MutexLock lock(LockOf(*tag));
  return std::max({std::int64_t{1}, tag->mark, tag->seen});
}

void Engine::Impl::Run(Tag* tag, After& after) {
  if (!after.warning.empty()) log::Warn(after.warning);
  while (Waiter* waiter = after.ready.PopFront()) {
    room_.Leave();
    waiter->home.Post(*waiter);
  }
  if (after.probe) StartProbe(*tag);
  if (after.raise) StartRaise(*tag);
  if (after.wake) agenda_.Wake();
  if (after.send) Send();
  if (closing()) FinishCloseIfLanded();
}

bool Engine::Impl::TakeOrPark(std::string_view name, Waiter& waiter, Instant now,
                              Result<Ranges>& out) {
  LEAF_ASSERT(waiter.count > 0);
  const Instant deadline = now + options_.wait;
  if (Tag* tag = tags_.Find(name)) {
    After after;
    Taken taken;
    {
      MutexLock lock(LockOf(*tag));
      taken = TakeOrParkAt(*tag, waiter, deadline, out, after);
    }
    Run(tag, after);
    if (taken != Taken::kUnknownTag) return taken == Taken::kFinal;
  }
  return lookups_.Park(name, waiter, deadline, now, out);
}

Engine::Impl::Taken Engine::Impl::TakeOrParkAt(Tag& tag, Waiter& waiter, Instant deadline,
                                               Result<Ranges>& out, After& after) {
  const auto refuse = [&out](Error error) {
    out = std::move(error);
    return Taken::kFinal;
  };
  if (closing()) return refuse(ShuttingDown());
  if (tag.absent) return Taken::kUnknownTag;
  if (tag.regressed) return refuse(Stopped(tag));

  TagUse& use = UseOf(tag);
  Ranges ids;
  if (Serve(tag, waiter, ids)) {
    const std::int64_t end = ids.at[static_cast<std::size_t>(ids.size - 1)].last;
    if (end > tag.refill_at.load(std::memory_order_relaxed)) {
      tag.refill_at.store(kMaxEnd, std::memory_order_relaxed);
      use.wanted = true;
      Want(tag, after);
    }
    out = ids;
    return Taken::kFinal;
  }
  if (tag.exhausted) return refuse(SpaceExhausted(tag.name()));
  const bool admitted = waiter.parking.place.load(std::memory_order_relaxed) != nullptr;
  if (!admitted && !room_.Enter()) return refuse(TooManyWaiters());
  ++use.waits;
  waiter.parking.deadline = deadline;
  use.waiters.Insert(waiter);
  waiter.parking.place.store(&tag, std::memory_order_release);
  Want(tag, after);
  Schedule(tag, after);
  return Taken::kParked;
}

void Engine::Impl::Adopt(Tag& tag, Waiter& waiter, After& after) {
  Result<Ranges> out = Ranges{};
  Taken taken;
  {
    MutexLock lock(LockOf(tag));
    taken = TakeOrParkAt(tag, waiter, waiter.parking.deadline, out, after);
  }
  if (taken == Taken::kFinal) after.Finish(waiter, std::move(out));
  if (taken == Taken::kUnknownTag) after.Finish(waiter, NoSuchTag(tag.name()));
}

bool Engine::Impl::Cancel(Waiter& waiter) noexcept {
  for (;;) {
    const void* place = waiter.parking.place.load(std::memory_order_acquire);
    if (place == nullptr) return false;
    if (place == &lookups_) {
      if (lookups_.Cancel(waiter)) return true;
      continue;  // it has moved on to its tag, or out
    }
    const Tag& tag = *static_cast<const Tag*>(place);
    MutexLock lock(LockOf(tag));
    if (waiter.parking.place.load(std::memory_order_acquire) != place) continue;
    tag.use->waiters.Remove(waiter);
    waiter.parking.place.store(nullptr, std::memory_order_release);
    room_.Leave();
    return true;
  }
}

void Engine::Impl::Abandon(std::string_view name, const Ranges& ids) noexcept {
  Tag* tag = tags_.Find(name);
  if (tag == nullptr) return;
  MutexLock lock(LockOf(*tag));
  if (!tag->use) return;
  tag->use->discarded[static_cast<int>(Discard::kAbandoned)] +=
      static_cast<std::uint64_t>(ids.count());
}

void Engine::Impl::EndWaiters(Tag& tag, const Error& error, After& after) {
  while (Waiter* waiter = tag.use->waiters.PopFront()) after.Finish(*waiter, error);
}

void Engine::Impl::ExpireWaiters(Tag& tag, Instant now, After& after) {
  TagUse& use = *tag.use;
  while (Waiter* waiter = use.waiters.front()) {
    if (waiter->parking.deadline > now) return;
    use.waiters.Remove(*waiter);
    after.Finish(*waiter, NoIdsInTime(tag.name(), options_.wait, use.last_error));
  }
}

void Engine::Impl::Schedule(Tag& tag, After& after) {
  TagUse& use = *tag.use;
  Instant due = std::min(use.flight_deadline, use.retry_at);
  if (!use.waiters.empty()) due = std::min(due, use.waiters.front()->parking.deadline);
  if (due >= use.agenda_at) return;
  use.agenda_at = due;
  after.wake |= agenda_.Add(due, tag);
}

Instant Engine::Impl::Tick(Instant now) {
  agenda_.Begin();
  bool send = false;
  while (Tag* tag = agenda_.Pop(now)) send |= OnDue(*tag, now);
  Instant next = calls_.Tick(now);
  next = std::min(next, lookups_.Tick(now));
  next = std::min(next, list_.Tick(now));
  if (send) Send();
  {
    MutexLock lock(qsbr_mu_);
    if (qsbr_.Collect() > 0) next = std::min(next, now + Duration(std::chrono::seconds(1)));
  }
  if (closing()) FinishCloseIfLanded();
  return agenda_.End(next);
}

Engine::Engine(EngineOptions options, SegmentStore& store, MarkJournal& journal,
               const RefillPolicy& policy, Clock& clock, Random& random)
    : impl_(std::make_unique<Impl>(options, store, journal, policy, clock, random, *this)) {}
Engine::~Engine() = default;

Result<void> Engine::Load() { return impl_->Load(); }
std::unique_ptr<Reader> Engine::AddReader() { return impl_->AddReader(); }

Tag* Engine::Find(Reader&, std::string_view name) const noexcept { return impl_->Find(name); }

bool Engine::TryTake(Reader&, Tag& tag, std::int64_t n, Range& out) noexcept {
  Segment<>* current = tag.current.load(std::memory_order_acquire);
  if (current == nullptr) return false;
  out = current->Take(n, true);
  if (out.empty()) return false;
  std::int64_t refill_at = tag.refill_at.load(std::memory_order_relaxed);
  if (out.last > refill_at &&
      tag.refill_at.compare_exchange_strong(refill_at, kMaxEnd, std::memory_order_relaxed)) {
    impl_->RefillDue(tag);  // one taker alone gets here, once a lease
  }
  return true;
}

bool Engine::TakeOrPark(std::string_view name, Waiter& waiter, Instant now, Result<Ranges>& out) {
  return impl_->TakeOrPark(name, waiter, now, out);
}
bool Engine::Cancel(Waiter& waiter) noexcept { return impl_->Cancel(waiter); }
void Engine::Abandon(std::string_view name, const Ranges& ids) noexcept {
  impl_->Abandon(name, ids);
}
void Engine::OnGrant(const Grant& grant) { impl_->OnGrant(grant); }
Instant Engine::Tick(Instant now) { return impl_->Tick(now); }
void Engine::SetWake(std::function<void()> wake) { impl_->SetWake(std::move(wake)); }
void Engine::PutTag(std::string name, std::int64_t step, std::optional<std::int64_t> max_id,
                    Done<Put> done) {
  impl_->PutTag(std::move(name), step, max_id, std::move(done));
}
void Engine::DeleteTag(std::string name, Done<Row> done) {
  impl_->DeleteTag(std::move(name), std::move(done));
}
void Engine::ResumeTag(std::string name, std::int64_t skip, Done<std::int64_t> done) {
  impl_->ResumeTag(std::move(name), skip, std::move(done));
}
Result<std::int64_t> Engine::DropTag(std::string_view name) { return impl_->DropTag(name); }
std::optional<TagView> Engine::View(std::string_view name) const { return impl_->View(name); }
void Engine::Visit(const std::function<void(const TagView&)>& visit) const { impl_->Visit(visit); }
Engine::Totals Engine::Sum() const { return impl_->Sum(); }
void Engine::Close(std::function<void()> done) { impl_->Close(std::move(done)); }

}  // namespace leaf
