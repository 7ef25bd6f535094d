#include "rpc/grpc_connection.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "rpc/http2_session.h"

namespace leaf::rpc {
namespace {

constexpr int kPieces = 64;  // of a buffer's size, read in one go

Error Unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }

}  // namespace

/// One call of a Run.
struct GrpcConnection::Flight {
  Instant deadline;
  Http2Session::Exchange* exchange = nullptr;  ///< none: it was not begun
  bool given_up = false;

  bool open() const noexcept { return exchange != nullptr && !exchange->closed && !given_up; }
};

GrpcConnection::GrpcConnection(Clock& clock, std::size_t max_message)
    : max_message_(max_message), stream_(clock) {}

GrpcConnection::~GrpcConnection() { Close(); }

Result<void> GrpcConnection::Connect(const HostPort& endpoint, const TlsContext* tls,
                                     Instant deadline) {
  LEAF_ASSERT(!connected());
  stream_.TakeInterrupt();
  LEAF_RETURN_IF_ERROR(stream_.Connect(endpoint, tls, deadline));
  authority_ = ToString(endpoint);
  encrypted_ = tls != nullptr;
  session_ = std::make_unique<Http2Session>(max_message_);
  Result<void> greeted = TurnUntil([this] { return session_->greeted(); }, deadline);
  if (!greeted.ok()) Close();
  return greeted;
}

void GrpcConnection::Close() noexcept {
  if (session_ != nullptr && stream_.open()) {
    session_->SendGoodbye();
    const Result<std::string_view> last = session_->Produce();
    if (last.ok()) stream_.Queue(*last);
    // A courtesy: who does not hear it sees the connection end.
    [[maybe_unused]] const Result<void> said = stream_.Flush();
  }
  stream_.Cut();
  session_.reset();
}

Result<void> GrpcConnection::Send() {
  for (;;) {
    LEAF_ASSIGN_OR_RETURN(const std::string_view bytes, session_->Produce());
    if (bytes.empty()) return stream_.Flush();
    stream_.Queue(bytes);
  }
}

Result<void> GrpcConnection::Turn() {
  LEAF_RETURN_IF_ERROR(Send());
  std::array<char, 16384> piece;
  unread_ = true;
  // Bounded: a server that never stops talking must not keep us from looking at the clock.
  for (int i = 0; i < kPieces && unread_; ++i) {
    LEAF_ASSIGN_OR_RETURN(const std::size_t got, stream_.Read(piece));
    if (got > 0) {
      LEAF_RETURN_IF_ERROR(session_->Consume({piece.data(), got}));
    } else {
      unread_ = false;
    }
  }
  // Reading gives cause for answers and makes room for more.
  LEAF_RETURN_IF_ERROR(Send());
  if (!session_->over()) return {};
  if (!session_->greeted())
    return Unavailable("the server does not speak HTTP/2, so it speaks no gRPC");
  return Unavailable("the server ended the connection" +
                     (session_->farewell().empty() ? "" : ": " + session_->farewell()));
}

template <typename Done>
Result<void> GrpcConnection::TurnUntil(Done done, Instant deadline) {
  for (;;) {
    const Result<void> turn = Turn();
    if (done()) return {};
    if (!turn.ok()) return turn;
    if (unread_ && stream_.Now() < deadline) continue;
    switch (stream_.Wait(deadline)) {
      case ByteStream::Wake::kReady:
        break;
      case ByteStream::Wake::kDeadline:
        return Unavailable("no answer in time");
      case ByteStream::Wake::kInterrupted:
        return Unavailable("interrupted");
    }
  }
}

void GrpcConnection::Begin(const GrpcCall& call, Flight& flight, std::string& why) {
  const Instant now = stream_.Now();
  flight.deadline = call.deadline;
  if (!connected()) why = "not connected";
  if (connected() && call.deadline <= now) why = "the deadline passed before it was sent";
  if (!why.empty()) return;
  // The server shall give up before we do.
  const Duration left = std::min<Duration>(call.deadline - now, std::chrono::hours(1)) / 20 * 19;
  const std::int64_t timeout_us =
      std::chrono::duration_cast<std::chrono::microseconds>(left).count();
  const auto begun =
      session_->Begin(call, authority_, encrypted_, std::max<std::int64_t>(timeout_us, 1));
  if (begun.ok()) {
    flight.exchange = *begun;
  } else {
    why = begun.error().message;
  }
}

// Until every call has ended or its time has passed. Why some have not ended; "" if all have.
std::string GrpcConnection::Await(std::span<Flight> flights) {
  std::string why;
  for (;;) {
    Instant next = kNever;
    for (const Flight& flight : flights) {
      if (flight.open()) next = std::min(next, flight.deadline);
    }
    const auto settled = [&] {
      return std::none_of(flights.begin(), flights.end(),
                          [](const Flight& flight) { return flight.open(); });
    };
    if (settled()) return why;
    const Result<void> turned = TurnUntil(settled, next);
    if (turned.ok()) return why;
    why = turned.error().message;
    if (stream_.Now() < next) return why;
    for (Flight& flight : flights) {
      if (!flight.open() || flight.deadline > next) continue;
      session_->Cancel(*flight.exchange);
      flight.given_up = true;
    }
  }
}

void GrpcConnection::Run(std::span<const GrpcCall> calls, std::span<GrpcReply> replies) {
  LEAF_ASSERT(calls.size() == replies.size());
  std::vector<Flight> flights(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    replies[i] = {};
    Begin(calls[i], flights[i], replies[i].message);
  }
  if (!connected()) return;
  const std::string why = Await(flights);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (flights[i].exchange != nullptr)
      replies[i] = Http2Session::Conclude(*flights[i].exchange, why);
  }
  if (why.empty()) {
    session_->Forget();
  } else {
    Close();
  }
}

bool GrpcConnection::Stale() noexcept {
  if (stream_.TakeInterrupt() || !connected()) return true;
  return !Turn().ok() || session_->going_away();
}

Result<void> GrpcConnection::Ping(Instant deadline) {
  LEAF_ASSERT(connected());
  session_->SendPing();
  Result<void> alive = TurnUntil([this] { return session_->ping_answered(); }, deadline);
  if (alive.ok()) return alive;
  Close();
  return Unavailable("the connection is gone: " + alive.error().message);
}

}  // namespace leaf::rpc
