#include "core/snowflake/snowflake_engine.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "core/segment/waiter_queue.h"
#include "core/snowflake/generator.h"
#include "core/snowflake/millis.h"
#include "core/snowflake/right_keeper.h"

namespace leaf {
namespace {

using Verdict = Generator<>::Verdict;

/// A request for more is a batch: it may use half of the drift only, so that it leaves single ids
/// their half, and waits behind them.
constexpr std::int64_t kSingles = 16;

}  // namespace

class SnowflakeEngine::Impl {
 public:
  Impl(SnowflakeOptions options, const Ports& ports)
      : options_(std::move(options)),
        clock_(ports.clock),
        order_(ports.order != nullptr ? &ports.order->word() : nullptr),
        drift_ticks_(ToMillis(options_.drift) / options_.layout.tick_ms),
        generator_(options_.layout, ports.random.Next()),
        keeper_(options_, ports, generator_) {
    keeper_.SetChanged([this] { Wake(); });
  }

  const SnowflakeOptions& options() const noexcept { return options_; }
  Result<void> Load() { return keeper_.Load(); }
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }

  bool TryMint(std::int64_t n, Instant now, Minted& out) noexcept;
  bool MintOrPark(Waiter& waiter, Instant now, Result<Minted>& out);
  bool Cancel(Waiter& waiter) noexcept;
  Instant Tick(Instant now);
  SnowflakeView View() const;
  void Close(std::function<void()> done);

 private:
  void Wake() {
    if (wake_) wake_();
  }
  /// How far n ids may end ahead of the clock, in ticks; a batch has room for itself at least.
  std::int64_t Ahead(std::int64_t n) const noexcept {
    if (n <= kSingles) return drift_ticks_;
    return std::max(drift_ticks_ / 2, (n >> options_.layout.sequence_bits) + 1);
  }
  Verdict Mint(std::int64_t n, Instant now, Minted& out) noexcept;
  /// What the clock has to say for n more ids to be minted.
  std::int64_t ClockNeeded(std::int64_t n) const noexcept {
    const std::int64_t ticks = (n >> options_.layout.sequence_bits) + 1;
    return options_.layout.MillisOf(generator_.last_tick() + ticks - Ahead(n));
  }
  /// The error of a request that will not be served in time; nullopt: it is worth waiting.
  std::optional<Error> Hopeless(std::int64_t n, Verdict verdict, Instant now) const;
  /// Returns when the clock will be where the first one left may be served.
  Instant Serve(WaiterQueue& queue, Instant now) REQUIRES_LOCK(mu_);
  void Answer(Waiter& waiter, Error error) REQUIRES_LOCK(mu_);
  void Expire(WaiterQueue& queue, Instant now) REQUIRES_LOCK(mu_);
  void Leave(Waiter& waiter) REQUIRES_LOCK(mu_);
  WaiterQueue& QueueOf(std::int64_t n) REQUIRES_LOCK(mu_) {
    return n <= kSingles ? singles_ : batches_;
  }
  Error Unavailable(Instant now) const {
    std::string why = keeper_.Trouble(now);
    if (why.empty()) why = "more ids are asked for than time goes on: none were left in time";
    return {Code::kUnavailable, std::move(why)};
  }

  const SnowflakeOptions options_;
  Clock& clock_;
  std::atomic<std::int64_t>* const order_;
  const std::int64_t drift_ticks_;
  Generator<> generator_;
  RightKeeper keeper_;
  std::function<void()> wake_;

  /// Waiters of each kind, so that newcomers do not pass them. Written under mu_.
  std::atomic<std::int64_t> parked_singles_{0}, parked_{0};
  alignas(64) std::atomic<std::uint64_t> issued_{0};
  std::atomic<std::uint64_t> waits_{0};

  Mutex mu_;
  WaiterQueue singles_ GUARDED_BY(mu_), batches_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;
};

Verdict SnowflakeEngine::Impl::Mint(std::int64_t n, Instant now, Minted& out) noexcept {
  const Layout& layout = options_.layout;
  const std::int64_t ms = keeper_.Millis(now);
  const Verdict verdict =
      generator_.Mint(n, ms < layout.epoch_ms ? 0 : layout.TickOf(ms), Ahead(n), out);
  if (verdict != Verdict::kMinted) return verdict;
  issued_.fetch_add(static_cast<std::uint64_t>(n), std::memory_order_relaxed);
  if (order_ != nullptr) {
    const std::uint64_t last = out.first + static_cast<std::uint64_t>(n) - 1;
    const std::int64_t minted =
        layout.MillisOf(static_cast<std::int64_t>(last >> layout.sequence_bits)) + layout.tick_ms -
        1;
    std::int64_t noted = order_->load(std::memory_order_relaxed);
    while (noted < minted &&
           !order_->compare_exchange_weak(noted, minted, std::memory_order_relaxed)) {
    }
  }
  return verdict;
}

bool SnowflakeEngine::Impl::TryMint(std::int64_t n, Instant now, Minted& out) noexcept {
  const auto& before = n <= kSingles ? parked_singles_ : parked_;
  if (before.load(std::memory_order_relaxed) != 0) return false;
  return Mint(n, now, out) == Verdict::kMinted;
}

std::optional<Error> SnowflakeEngine::Impl::Hopeless(std::int64_t n, Verdict verdict,
                                                     Instant now) const {
  const Layout& layout = options_.layout;
  const std::int64_t ms = keeper_.Millis(now);
  const std::int64_t ticks = (n >> layout.sequence_bits) + 1;
  const std::int64_t last = generator_.last_tick();
  const std::int64_t ends = std::int64_t{1} << layout.time_bits;
  if (ms >= layout.end_ms() || (verdict == Verdict::kLimit && last + ticks >= ends)) {
    return Error{Code::kExhausted, "the layout " + LayoutText(layout) + " has ended"};
  }
  if (verdict == Verdict::kClosed) return std::nullopt;
  // Also where the right ends below what was minted: after a restart under a clock that went back.
  if (ClockNeeded(n) - ms <= ToMillis(options_.wait)) return std::nullopt;
  return Unavailable(now);
}

bool SnowflakeEngine::Impl::MintOrPark(Waiter& waiter, Instant now, Result<Minted>& out) {
  const MutexLock lock(mu_);
  if (closed_) {
    out = Error{Code::kUnavailable, "this server is stopping"};
    return true;
  }
  const Layout& layout = options_.layout;
  if ((waiter.count >> layout.sequence_bits) * layout.tick_ms >= ToMillis(options_.lease)) {
    out = Error{
        Code::kInvalidArgument,
        "so many ids at once take longer than snowflake.lease in the layout " + LayoutText(layout)};
    return true;
  }
  WaiterQueue& queue = QueueOf(waiter.count);
  Verdict verdict = Verdict::kAhead;
  if (singles_.empty() && queue.empty()) {
    Minted minted;
    verdict = Mint(waiter.count, now, minted);
    if (verdict == Verdict::kMinted) {
      out = minted;
      return true;
    }
    if (auto error = Hopeless(waiter.count, verdict, now)) {
      out = *std::move(error);
      return true;
    }
  }
  if (singles_.size() + batches_.size() >= options_.max_waiters) {
    out = Error{Code::kOverloaded, std::to_string(options_.max_waiters) +
                                       " requests wait already: " + keeper_.Trouble(now)};
    return true;
  }
  waiter.parking.deadline = now + options_.wait;
  waiter.parking.place.store(this, std::memory_order_relaxed);
  queue.PushBack(waiter);
  parked_.fetch_add(1, std::memory_order_relaxed);
  if (waiter.count <= kSingles) parked_singles_.fetch_add(1, std::memory_order_relaxed);
  waits_.fetch_add(1, std::memory_order_relaxed);
  if (queue.size() == 1) Wake();  // Tick has to know a new due time
  return false;
}

void SnowflakeEngine::Impl::Leave(Waiter& waiter) {
  waiter.parking.place.store(nullptr, std::memory_order_relaxed);
  parked_.fetch_sub(1, std::memory_order_relaxed);
  if (waiter.count <= kSingles) parked_singles_.fetch_sub(1, std::memory_order_relaxed);
}

bool SnowflakeEngine::Impl::Cancel(Waiter& waiter) noexcept {
  const MutexLock lock(mu_);
  if (waiter.parking.queue == nullptr) return false;
  waiter.parking.queue->Remove(waiter);
  Leave(waiter);
  return true;
}

void SnowflakeEngine::Impl::Answer(Waiter& waiter, Error error) {
  Leave(waiter);
  waiter.result = std::move(error);
  waiter.home.Post(waiter);
}

Instant SnowflakeEngine::Impl::Serve(WaiterQueue& queue, Instant now) {
  while (Waiter* waiter = queue.front()) {
    Minted minted;
    const Verdict verdict = Mint(waiter->count, now, minted);
    if (verdict == Verdict::kMinted) {
      queue.Remove(*waiter);
      Leave(*waiter);
      waiter->minted = minted;
      waiter->result = Ranges{};
      waiter->home.Post(*waiter);
      continue;
    }
    if (verdict == Verdict::kAhead) {
      const std::int64_t left = ClockNeeded(waiter->count) - keeper_.Millis(now);
      return now + std::chrono::milliseconds(std::max<std::int64_t>(1, left));
    }
    // The right is being claimed or extended; who waits, waits until its deadline.
    auto error = Hopeless(waiter->count, verdict, now);
    if (!error) return kNever;
    queue.Remove(*waiter);
    Answer(*waiter, *std::move(error));
  }
  return kNever;
}

void SnowflakeEngine::Impl::Expire(WaiterQueue& queue, Instant now) {
  while (Waiter* waiter = queue.front()) {
    if (waiter->parking.deadline > now) return;
    queue.Remove(*waiter);
    Answer(*waiter, Unavailable(now));
  }
}

Instant SnowflakeEngine::Impl::Tick(Instant now) {
  Instant due = keeper_.Tick(now);
  const MutexLock lock(mu_);
  for (WaiterQueue* queue : {&singles_, &batches_}) {
    if (queue == &singles_ || singles_.empty()) due = std::min(due, Serve(*queue, now));
    Expire(*queue, now);
    if (const Waiter* waiter = queue->front()) due = std::min(due, waiter->parking.deadline);
  }
  return due;
}

SnowflakeView SnowflakeEngine::Impl::View() const {
  SnowflakeView view;
  keeper_.Fill(view, clock_.Now());
  view.issued = issued_.load(std::memory_order_relaxed);
  view.waits = waits_.load(std::memory_order_relaxed);
  view.parked = parked_.load(std::memory_order_relaxed);
  return view;
}

void SnowflakeEngine::Impl::Close(std::function<void()> done) {
  {
    const MutexLock lock(mu_);
    closed_ = true;
    for (WaiterQueue* queue : {&singles_, &batches_}) {
      while (Waiter* waiter = queue->PopFront())
        Answer(*waiter, {Code::kUnavailable, "this server is stopping"});
    }
  }
  keeper_.Close(std::move(done));
}

SnowflakeEngine::SnowflakeEngine(SnowflakeOptions options, Ports ports)
    : impl_(std::make_unique<Impl>(std::move(options), ports)),
      registry_(ports.registry),
      clock_(ports.clock) {}
SnowflakeEngine::~SnowflakeEngine() = default;
Result<void> SnowflakeEngine::Load() { return impl_->Load(); }
const SnowflakeOptions& SnowflakeEngine::options() const noexcept { return impl_->options(); }
bool SnowflakeEngine::TryMint(std::int64_t n, Instant now, Minted& out) noexcept {
  return impl_->TryMint(n, now, out);
}
bool SnowflakeEngine::MintOrPark(Waiter& waiter, Instant now, Result<Minted>& out) {
  return impl_->MintOrPark(waiter, now, out);
}
bool SnowflakeEngine::Cancel(Waiter& waiter) noexcept { return impl_->Cancel(waiter); }
Instant SnowflakeEngine::Tick(Instant now) { return impl_->Tick(now); }
void SnowflakeEngine::SetWake(std::function<void()> wake) { impl_->SetWake(std::move(wake)); }
SnowflakeView SnowflakeEngine::View() const { return impl_->View(); }
void SnowflakeEngine::Close(std::function<void()> done) { impl_->Close(std::move(done)); }

void SnowflakeEngine::Workers(Done<std::vector<WorkerRecord>> done) {
  registry_.List(clock_.Now() + impl_->options().call_timeout, std::move(done));
}

void SnowflakeEngine::Retire(std::int64_t worker, Done<WorkerRecord> done) {
  registry_.Retire(worker, clock_.Now() + impl_->options().call_timeout, std::move(done));
}

}  // namespace leaf
