#include "frontend/reactor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace leaf {
namespace {

constexpr std::size_t kReadSize = 16 * 1024;  // bounds the work of one connection's turn
constexpr std::size_t kOutReserve = 128 * 1024;
constexpr std::size_t kOutKeep = 1024 * 1024;
constexpr std::size_t kEvents = 256;
constexpr Duration kDateAge = std::chrono::milliseconds(100);

thread_local const Reactor* running = nullptr;

// Stands in where there is no engine.
class NoReader final : public Reader {
 public:
  void Online() noexcept override {}
  void Quiesce() noexcept override {}
  void Offline() noexcept override {}
};

Duration SweepEvery(const Reactor::Timeouts& timeouts) noexcept {
  using std::chrono::milliseconds;
  return std::clamp<Duration>(std::min(timeouts.header, timeouts.idle) / 4, milliseconds(5),
                              milliseconds(1000));
}

}  // namespace

Reactor::Reactor(const Clock& clock, Engine* engine, Timeouts timeouts, const MakeLanes& make_lanes,
                 OnClosed on_closed)
    : clock_(clock),
      timeouts_(timeouts),
      on_closed_(std::move(on_closed)),
      sweep_(SweepEvery(timeouts)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      state_{.home = *this, .clock = clock, .engine = engine},
      buffer_(kReadSize) {
  out_.reserve(kOutReserve);
  lanes_ = make_lanes(state_);
  if (!epoll_ || !wake_) {
    error_ = errno;
    return;
  }
  // Edge-triggered: each write is an edge, so the counter need never be read.
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = nullptr;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) error_ = errno;
}

Reactor::~Reactor() {
  RunInbox();
  while (first_ != nullptr) first_->Close();
  lanes_.reset();  // late answers find nobody from here on
  RunInbox();
  again_.clear();
  while (dead_ != nullptr) delete std::exchange(dead_, dead_->next_);
}

Result<void> Reactor::Ready() const {
  if (error_ == 0) return {};
  return Error{Code::kUnavailable,
               "cannot make an event loop: " + std::system_category().message(error_)};
}

void Reactor::Run(const std::function<Instant()>& each_turn) {
  running = this;
  if (state_.engine != nullptr) {
    reader_ = state_.engine->AddReader();
  } else {
    reader_ = std::make_unique<NoReader>();
  }
  state_.reader = reader_.get();
  reader_->Online();
  ReadTime();
  while (!stop_.load(std::memory_order_acquire)) {
    const Instant wanted = each_turn();
    Wait(TimeoutMs(wanted));
    RunAgain();
    RunInbox();
    if (drain_.load(std::memory_order_acquire) && !state_.draining) StartDrain();
    if (state_.now >= next_sweep_) CheckDeadlines();
    Reap();
  }
  EndConnections();
  state_.reader = nullptr;
  reader_.reset();
  running = nullptr;
}

int Reactor::TimeoutMs(Instant wanted) const noexcept {
  if (!again_.empty() || !inbox_.empty()) return 0;
  const Instant due = std::min(wanted, first_ != nullptr ? next_sweep_ : kNever);
  if (due == kNever) return -1;
  const Duration left = due - state_.now;
  if (left <= Duration::zero()) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<std::int64_t>(ms, 60'000));
}

void Reactor::ReadTime() noexcept {
  state_.now = clock_.Now();
  if (state_.now < next_date_) return;
  next_date_ = state_.now + kDateAge;
  state_.date_line = state_.date.At(clock_.WallMillis());
}

void Reactor::Wait(int timeout_ms) {
  std::array<epoll_event, kEvents> events;
  if (timeout_ms != 0) reader_->Offline();
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  if (timeout_ms != 0) {
    reader_->Online();
  } else {
    reader_->Quiesce();
  }
  ReadTime();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr != nullptr) static_cast<EventSink*>(event.data.ptr)->OnEvents(event.events);
  }
  // A huge answer must not stay in memory for ever.
  if (out_.capacity() > kOutKeep) {
    std::string().swap(out_);
    out_.reserve(kOutReserve);
  }
}

void Reactor::Post(Task& task) noexcept {
  // The loop looks into its inbox before it sleeps.
  if (inbox_.Push(task) && running != this) Wake();
}

void Reactor::Wake() noexcept { eventfd_write(wake_.get(), 1); }

void Reactor::Drain() noexcept {
  drain_.store(true, std::memory_order_release);
  Wake();
}

void Reactor::Stop() noexcept {
  stop_.store(true, std::memory_order_release);
  Wake();
}

int Reactor::Watch(int fd, std::uint32_t events, EventSink& sink) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &sink;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

void Reactor::Unwatch(int fd) noexcept { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Reactor::Adopt(Connection& connection) {
  if (first_ == nullptr) next_sweep_ = state_.now + sweep_;
  connection.next_ = first_;
  if (first_ != nullptr) first_->prev_ = &connection;
  first_ = &connection;
  if (!connection.counted()) ++refusals_;
  connection.SetPhase(Connection::Phase::kIdle);
  const int error =
      Watch(connection.fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, connection);
  if (error != 0 || stop_.load(std::memory_order_relaxed)) connection.Close();
}

void Reactor::Again(Connection& connection) noexcept {
  if (std::exchange(connection.queued_, true)) return;
  again_.push_back(&connection);
}

void Reactor::Forget(Connection& connection) noexcept {
  if (connection.prev_ != nullptr) connection.prev_->next_ = connection.next_;
  if (connection.next_ != nullptr) connection.next_->prev_ = connection.prev_;
  if (first_ == &connection) first_ = connection.next_;
  connection.prev_ = nullptr;
  connection.next_ = std::exchange(dead_, &connection);
  if (connection.counted()) {
    load_.fetch_sub(1, std::memory_order_relaxed);
    on_closed_(connection.peer());
  } else {
    --refusals_;
  }
}

void Reactor::RunAgain() {
  again_now_.swap(again_);
  for (Connection* connection : again_now_) {
    connection->queued_ = false;
    connection->Work();
  }
  again_now_.clear();
}

// One round: what a task posts waits for the next turn.
void Reactor::RunInbox() {
  if (inbox_.empty()) return;
  for (Task* task = inbox_.TakeAll(); task != nullptr;) {
    Task* const next = task->next_task;
    task->Run();
    task = next;
  }
}

void Reactor::CheckDeadlines() {
  next_sweep_ = state_.now + sweep_;
  for (Connection* connection = first_; connection != nullptr;) {
    Connection* const next = connection->next_;
    connection->CheckDeadline(state_.now);
    connection = next;
  }
}

void Reactor::StartDrain() {
  state_.draining = true;
  for (Connection* connection = first_; connection != nullptr; connection = connection->next_)
    connection->Drain();
}

// Only here, where no event, task or turn of this round can still point to one.
void Reactor::Reap() noexcept {
  Connection* keep = nullptr;
  while (dead_ != nullptr) {
    Connection* const connection = std::exchange(dead_, dead_->next_);
    if (connection->queued_) {
      connection->next_ = std::exchange(keep, connection);
    } else {
      delete connection;
    }
  }
  dead_ = keep;
}

// Ids that are on their way to a request of ours need this executor until they have come.
void Reactor::EndConnections() {
  while (first_ != nullptr) first_->Close();
  RunAgain();
  RunInbox();
  while (lanes_->waiting() > 0) {
    Wait(TimeoutMs(kNever));
    RunAgain();
    RunInbox();
  }
  Reap();
}

}  // namespace leaf
