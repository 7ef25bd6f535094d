// Edge-triggered: a socket is registered once, for everything, and never again; `readable_`
// remembers an edge that came while reading was stopped. A short read means that the socket is
// empty, and saves the call that would only say so.

#include "frontend/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "frontend/reactor.h"

namespace leaf {
namespace {

constexpr std::uint32_t kMinProgress = 4096;  // bytes a header_timeout, of a body or an answer
constexpr std::uint32_t kDiscardMax = 256 * 1024;
constexpr Duration kLingerTime = std::chrono::seconds(1);
constexpr Duration kDrainGrace = std::chrono::seconds(1);

bool TryAgain(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void Free(std::string& text) noexcept { std::string().swap(text); }

}  // namespace

Connection::Connection(Reactor& reactor, Fd fd, const Peer& peer)
    : reactor_(reactor), fd_(std::move(fd)), peer_(peer) {}
Connection::~Connection() = default;

void Connection::SetRefusal(std::string bytes) {
  refused_ = closing_ = true;
  pending_ = std::move(bytes);
}

void Connection::Run() { reactor_.Adopt(*this); }

void Connection::OnEvents(std::uint32_t events) {
  if (closed()) return;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    Close();
    return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) readable_ = true;
  const bool half_closed = (events & EPOLLRDHUP) != 0 && !peer_done_;
  if (half_closed) peer_done_ = true;
  if (half_closed && waiting_ && pending_.empty()) {
    std::string& out = reactor_.out();
    out.clear();
    lane_->HalfClosed(out);
    Send(out);
  }
  Work();
}

void Connection::Resume() noexcept {
  resumed_ = true;
  reactor_.Again(*this);
}

void Connection::Work() {
  if (closed()) return;
  if (phase_ == Phase::kLinger) {
    Discard();
    return;
  }
  if (!pending_.empty() && !SendPending()) return;
  std::string& out = reactor_.out();
  out.clear();
  if (waiting_ && resumed_) {
    waiting_ = resumed_ = false;
    Follow(lane_->Resume(out));
    phase_ = Phase::kIdle;
    backlog_ = !waiting_ && !input_.empty();
  }
  if (!waiting_ && !closing_) {
    if (backlog_) {
      FeedInput(out);
    } else if (readable_) {
      Receive(out);
    }
  }
  Send(out);
  Settle();
}

void Connection::Receive(std::string& out) {
  const std::span<char> buffer = reactor_.buffer();
  const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) {
    if (!TryAgain(errno)) Close();
    readable_ = errno == EINTR;
    return;
  }
  if (got == 0) {
    eof_ = peer_done_ = true;
    readable_ = false;
    return;
  }
  const auto size = static_cast<std::size_t>(got);
  // Behind a short read there can be nothing but the end.
  readable_ = size == buffer.size() || peer_done_;
  progress_ += static_cast<std::uint32_t>(size);
  if (input_.empty()) {
    Feed(buffer.data(), size, out);
  } else {
    input_.append(buffer.data(), size);
    FeedInput(out);
  }
}

void Connection::Feed(char* data, std::size_t size, std::string& out) {
  if (lane_ == nullptr) lane_ = reactor_.lanes().Open(std::string_view(data, size), *this);
  const LaneProgress progress = lane_->Read(data, size, out);
  if (progress.consumed != 0) phase_ = Phase::kIdle;
  if (progress.consumed < size) input_.assign(data + progress.consumed, size - progress.consumed);
  Follow(progress.next);
}

void Connection::FeedInput(std::string& out) {
  const LaneProgress progress = lane_->Read(input_.data(), input_.size(), out);
  if (progress.consumed != 0) phase_ = Phase::kIdle;
  if (progress.consumed == input_.size()) {
    Free(input_);
  } else {
    input_.erase(0, progress.consumed);
  }
  Follow(progress.next);
}

void Connection::Follow(LaneNext next) {
  served_ = true;
  waiting_ = next == LaneNext::kWait;
  closing_ = next == LaneNext::kClose;
  backlog_ = !input_.empty() && next != LaneNext::kRead;
  if (waiting_ && peer_done_) lane_->HalfClosed(reactor_.out());
}

void Connection::Send(std::string_view bytes) {
  if (bytes.empty() || closed()) return;
  const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0 && !TryAgain(errno)) {
    Close();
    return;
  }
  const std::size_t taken = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  if (taken < bytes.size()) pending_.assign(bytes.substr(taken));
}

// False: something is left, or the connection has ended.
bool Connection::SendPending() {
  const std::string_view rest = std::string_view(pending_).substr(sent_);
  const ssize_t sent = send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (sent < 0) {
    if (!TryAgain(errno)) Close();
    return false;
  }
  progress_ += static_cast<std::uint32_t>(sent);
  sent_ += static_cast<std::size_t>(sent);
  if (sent_ < pending_.size()) return false;
  Free(pending_);
  sent_ = 0;
  return true;
}

void Connection::Settle() {
  if (closed()) return;
  if (!pending_.empty()) {
    SetPhase(Phase::kWrite);
  } else if (closing_) {
    Linger();
  } else if (waiting_) {
    SetPhase(Phase::kWait);
    if (resumed_) reactor_.Again(*this);
  } else if (eof_ && !backlog_) {
    Close();
  } else if (backlog_ || readable_) {
    reactor_.Again(*this);
    SetPhase(input_.empty() ? Phase::kIdle : Phase::kRequest);
  } else if (!input_.empty()) {
    SetPhase(Phase::kRequest);
  } else if (reactor_.state().draining && served_) {
    Close();
  } else {
    SetPhase(Phase::kIdle);
  }
}

void Connection::SetPhase(Phase phase) {
  const Instant now = reactor_.state().now;
  if (phase == Phase::kIdle) {
    deadline_ = now + (reactor_.state().draining ? kDrainGrace : reactor_.timeouts().idle);
  } else if (phase == Phase::kWait) {
    deadline_ = kNever;
  } else if (phase != phase_) {
    deadline_ = now + (phase == Phase::kLinger ? kLingerTime : reactor_.timeouts().header);
    progress_ = 0;
  }
  phase_ = phase;
}

// Closing a socket that holds unread bytes sends a reset, which may overtake the last answer: so
// only our direction is closed, and what still comes is thrown away for a while.
void Connection::Linger() {
  if (eof_) {
    Close();
    return;
  }
  shutdown(fd_.get(), SHUT_WR);
  Free(input_);
  lane_.reset();
  SetPhase(Phase::kLinger);
  Discard();
}

void Connection::Discard() {
  const std::span<char> buffer = reactor_.buffer();
  const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got > 0) progress_ += static_cast<std::uint32_t>(got);
  const bool ended = got == 0 || (got < 0 && !TryAgain(errno));
  if (ended || progress_ > kDiscardMax) {
    Close();
  } else if (got > 0) {
    reactor_.Again(*this);
  }
}

void Connection::CheckDeadline(Instant now) {
  if (deadline_ > now || closed()) return;
  const bool moving = phase_ == Phase::kWrite || (phase_ == Phase::kRequest && lane_->in_body());
  if (moving && progress_ >= kMinProgress) {
    progress_ = 0;
    deadline_ = now + reactor_.timeouts().header;
    return;
  }
  Expire();
}

void Connection::Expire() {
  if (phase_ == Phase::kRequest) {
    std::string& out = reactor_.out();
    out.clear();
    lane_->TimedOut(out);
    closing_ = true;
    reactor_.state().stats.Refused();
    Send(out);
    Settle();
    return;
  }
  if (phase_ == Phase::kWrite) reactor_.state().stats.Refused();
  Close();
}

void Connection::Drain() {
  if (closed() || phase_ == Phase::kLinger) return;
  // A request may have arrived already: look before closing.
  readable_ = true;
  if (!served_) deadline_ = std::min(deadline_, reactor_.state().now + kDrainGrace);
  reactor_.Again(*this);
}

void Connection::Close() noexcept {
  if (closed()) return;
  lane_.reset();
  fd_.Reset();
  reactor_.Forget(*this);
}

}  // namespace leaf
