#include "frontend/http1_lane.h"

#include <atomic>
#include <utility>

#include "base/assert.h"
#include "codec/http1/errors.h"

namespace leaf {
namespace {

constexpr std::size_t kYieldAt = 64 * 1024;  // bytes written before the connection sends them
constexpr std::size_t kSpareMax = 64;

// The code under which the metrics count a service's answer.
int CodeOfStatus(int status) noexcept {
  if (status < 400) return RequestStats::kOk;
  switch (status) {
    case 401:
      return static_cast<int>(Code::kUnauthenticated);
    case 403:
      return static_cast<int>(Code::kPermissionDenied);
    case 404:
      return static_cast<int>(Code::kNotFound);
    case 409:
      return static_cast<int>(Code::kConflict);
    case 410:
      return static_cast<int>(Code::kExhausted);
    case 429:
      return static_cast<int>(Code::kOverloaded);
    case 503:
      return static_cast<int>(Code::kUnavailable);
    default:
      return static_cast<int>(status < 500 ? Code::kInvalidArgument : Code::kInternal);
  }
}

http1::Response NoAnswer() {
  return http1::Problem(500, Error{Code::kInternal, "the request was dropped without an answer"});
}

}  // namespace

// A late answer on its way to the reactor.
class ReplyTask final : public Task {
 public:
  ReplyTask(std::shared_ptr<DeferredSlot> slot, http1::Response response)
      : slot_(std::move(slot)), response_(std::move(response)) {}
  void Run() override {
    const std::unique_ptr<ReplyTask> self(this);
    if (slot_->lane != nullptr) slot_->lane->Deliver(std::move(response_));
  }

 private:
  std::shared_ptr<DeferredSlot> slot_;
  http1::Response response_;
};

namespace {

class LaterReply final : public http1::Later {
 public:
  LaterReply(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<DeferredSlot> slot)
      : mailbox_(std::move(mailbox)), slot_(std::move(slot)) {}
  ~LaterReply() override {
    if (!replied_.load()) Reply(NoAnswer());
  }
  LaterReply(const LaterReply&) = delete;
  LaterReply& operator=(const LaterReply&) = delete;

  void Reply(http1::Response response) override {
    if (replied_.exchange(true)) return;
    auto task = std::make_unique<ReplyTask>(slot_, std::move(response));
    if (mailbox_->Post(*task)) (void)task.release();
  }

 private:
  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<DeferredSlot> slot_;
  std::atomic<bool> replied_{false};
};

}  // namespace

// The services' view of one request.
class Http1Exchange final : public http1::Exchange {
 public:
  Http1Exchange(const http1::Request& request, Http1Lane& lane, std::string& out)
      : request_(request), lane_(lane), out_(out) {}
  const http1::Request& request() const noexcept override { return request_; }
  bool peer_is_local() const noexcept override { return lane_.host_.peer_is_local(); }
  void Reply(http1::Response response) override {
    LEAF_ASSERT(!answered());
    replied_ = true;
    lane_.Write(response, out_);
  }
  std::shared_ptr<http1::Later> Defer() override {
    LEAF_ASSERT(!answered());
    lane_.slot_ = std::make_shared<DeferredSlot>();
    lane_.slot_->lane = &lane_;
    return std::make_shared<LaterReply>(lane_.lanes_.mailbox_, lane_.slot_);
  }
  bool answered() const noexcept { return replied_ || lane_.slot_ != nullptr; }

 private:
  const http1::Request& request_;
  Http1Lane& lane_;
  std::string& out_;
  bool replied_ = false;
};

bool Mailbox::Post(Task& task) noexcept {
  const MutexLock lock(mu_);
  if (home_ != nullptr) home_->Post(task);
  return home_ != nullptr;
}

void Mailbox::Close() noexcept {
  const MutexLock lock(mu_);
  home_ = nullptr;
}

ParkedIds::ParkedIds(Http1Lanes& lanes) : Waiter(lanes.state_.home), lanes_(lanes) {}

void ParkedIds::Run() {
  --lanes_.waiting_;
  if (lane != nullptr) {
    lane->ready_ = true;
    lane->host_.Resume();
    return;
  }
  std::unique_ptr<ParkedIds> self(this);
  lanes_.GiveUp(*self);
  lanes_.GiveParked(std::move(self));
}

Http1Lanes::Http1Lanes(ReactorState& state, Options options)
    : state_(state),
      options_(std::move(options)),
      mailbox_(std::make_shared<Mailbox>(state.home)),
      next_parked_(TakeParked()) {}

Http1Lanes::~Http1Lanes() { mailbox_->Close(); }

std::unique_ptr<Lane> Http1Lanes::Open(std::string_view, LaneHost& host) {
  return std::make_unique<Http1Lane>(*this, host);
}

std::string Http1Lanes::Refusal(std::string_view reason) {
  const http1::Response response =
      http1::Problem(503, Error{Code::kOverloaded, std::string(reason)});
  std::string out;
  http1::AppendResponse(out, response, {.date = state_.date_line, .keep_alive = false});
  return out;
}

std::unique_ptr<ParkedIds> Http1Lanes::TakeParked() {
  if (spare_.empty()) return std::make_unique<ParkedIds>(*this);
  std::unique_ptr<ParkedIds> parked = std::move(spare_.back());
  spare_.pop_back();
  return parked;
}

void Http1Lanes::GiveParked(std::unique_ptr<ParkedIds> parked) {
  parked->lane = nullptr;
  if (spare_.size() < kSpareMax) spare_.push_back(std::move(parked));
}

// Ids that came for a client that has left become a gap that the engine knows of.
void Http1Lanes::GiveUp(ParkedIds& parked) noexcept { options_.ids->GiveUp(parked.reply, parked); }

Http1Lane::Http1Lane(Http1Lanes& lanes, LaneHost& host) : lanes_(lanes), host_(host) {
  lanes_.state_.stats.Connected(Protocol::kHttp, 1);
}

Http1Lane::~Http1Lane() {
  lanes_.state_.stats.Connected(Protocol::kHttp, -1);
  if (slot_ != nullptr) slot_->lane = nullptr;
  if (parked_ == nullptr) return;
  if (ready_) {
    lanes_.GiveUp(*parked_);
    lanes_.GiveParked(std::move(parked_));
  } else if (lanes_.options_.ids->Cancel(parked_->reply, *parked_)) {
    --lanes_.waiting_;
    lanes_.GiveParked(std::move(parked_));
  } else {
    parked_.release()->lane = nullptr;  // its Run is on the way and ends it
  }
}

ReactorTurn Http1Lane::Turn() const noexcept {
  ReactorState& state = lanes_.state_;
  return {*state.reader, state.stats, state.now, state.date_line};
}

LaneProgress Http1Lane::Read(char* data, std::size_t size, std::string& out) {
  std::uint64_t answered = 0;
  const LaneProgress progress = ReadBatch(data, size, out, answered);
  if (answered != 0) {
    ReactorState& state = lanes_.state_;
    state.stats.Took(Protocol::kHttp, state.clock.Now() - state.now, answered);
  }
  return progress;
}

LaneProgress Http1Lane::ReadBatch(char* data, std::size_t size, std::string& out,
                                  std::uint64_t& answered) {
  http1::Request& request = lanes_.request_;
  std::size_t at = 0;
  while (at < size) {
    switch (parser_.Parse(data + at, size - at, lanes_.options_.limits, request)) {
      case http1::Parser::Step::kMore:
        if (parser_.TakeContinue()) out.append("HTTP/1.1 100 Continue\r\n\r\n");
        return {at, LaneNext::kRead};
      case http1::Parser::Step::kRefused:
        Refuse(parser_.status(), parser_.reason(), parser_.below_api(), out);
        return {size, LaneNext::kClose};
      case http1::Parser::Step::kRequest:
        at += parser_.consumed();
        break;
    }
    const LaneNext next = Answer(request, out);
    if (next != LaneNext::kWait) ++answered;
    if (next != LaneNext::kRead) return {at, next};
    if (out.size() >= kYieldAt) return {at, LaneNext::kYield};
  }
  return {at, LaneNext::kRead};
}

LaneNext Http1Lane::Answer(http1::Request& request, std::string& out) {
  if (lanes_.state_.draining) request.keep_alive = false;
  keep_alive_ = request.keep_alive;
  minor_ = request.minor;
  if (lanes_.options_.ids == nullptr) return AskServices(request, out);
  // What a request needs to wait is lent by the reactor, so that one that does not costs nothing.
  std::unique_ptr<ParkedIds>& waiter = lanes_.next_parked_;
  switch (lanes_.options_.ids->Handle(request, Turn(), *waiter, waiter->reply, out)) {
    case IdsHandler::Next::kAnswered:
      return keep_alive_ ? LaneNext::kRead : LaneNext::kClose;
    case IdsHandler::Next::kParked:
      parked_ = std::exchange(waiter, lanes_.TakeParked());
      parked_->lane = this;
      ready_ = false;
      ++lanes_.waiting_;
      return LaneNext::kWait;
    case IdsHandler::Next::kNotMine:
      break;
  }
  return AskServices(request, out);
}

LaneNext Http1Lane::AskServices(const http1::Request& request, std::string& out) {
  head_ = request.method == http1::Method::kHead;
  started_ = lanes_.state_.now;
  Http1Exchange exchange(request, *this, out);
  for (http1::Service* service : lanes_.options_.services) {
    if (service->Handle(exchange)) break;
  }
  if (slot_ != nullptr) return LaneNext::kWait;
  if (!exchange.answered()) exchange.Reply(NoAnswer());
  return keep_alive_ ? LaneNext::kRead : LaneNext::kClose;
}

LaneNext Http1Lane::Resume(std::string& out) {
  half_closed_ = false;
  const bool draining = lanes_.state_.draining;
  if (ready_) {
    ready_ = false;
    if (draining) keep_alive_ = parked_->reply.keep_alive = false;
    lanes_.options_.ids->Finish(parked_->reply, *parked_, Turn(), out);
    lanes_.GiveParked(std::move(parked_));
  } else if (late_ != nullptr) {
    if (draining) keep_alive_ = false;
    slot_.reset();
    lanes_.state_.stats.Took(Protocol::kHttp, lanes_.state_.now - started_, 1);
    Write(*std::exchange(late_, nullptr), out);
  } else {
    return LaneNext::kWait;
  }
  return keep_alive_ ? LaneNext::kRead : LaneNext::kClose;
}

void Http1Lane::Deliver(http1::Response response) {
  late_ = std::make_unique<http1::Response>(std::move(response));
  host_.Resume();
}

void Http1Lane::Write(const http1::Response& response, std::string& out) {
  if (response.close) keep_alive_ = false;
  http1::AppendResponse(
      out, response,
      {.date = lanes_.state_.date_line, .keep_alive = keep_alive_, .minor = minor_, .head = head_});
  lanes_.state_.stats.Count(Protocol::kHttp, CodeOfStatus(response.status));
}

void Http1Lane::Refuse(int status, std::string_view reason, bool below_api, std::string& out) {
  const bool as_problem = below_api || lanes_.options_.ids == nullptr;
  http1::Response response =
      as_problem ? http1::Problem(status, Error{Code::kInvalidArgument, std::string(reason)})
                 : http1::LeafBadPath();
  response.status = status;
  response.close = true;
  head_ = false;
  Write(response, out);
}

void Http1Lane::TimedOut(std::string& out) {
  Refuse(408, "the request did not come in time", false, out);
}

// A client that closed altogether looks exactly like one that only has nothing more to say; only
// writing tells them apart, and an interim answer is one that every HTTP/1.1 client must skip.
void Http1Lane::HalfClosed(std::string& out) {
  if (minor_ == 0 || half_closed_) return;
  half_closed_ = true;
  out.append("HTTP/1.1 100 Continue\r\n\r\n");
}

}  // namespace leaf
