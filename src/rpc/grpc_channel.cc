#include "rpc/grpc_channel.h"

#include <utility>

#include "base/assert.h"

namespace leaf::rpc {

using Kind = GrpcChannel::Verdict::Kind;

GrpcChannel::GrpcChannel(Options options, Clock& clock)
    : options_(std::move(options)), clock_(clock), connection_(clock, options_.max_message) {
  LEAF_ASSERT(!options_.endpoints.empty());
}

// A server that does not even greet gets its share of the time. One that does gets more to be
// looked at, because that may take a while (a password is slow to check) and most likely it is
// good.
GrpcChannel::Verdict GrpcChannel::Try(std::size_t left, Instant deadline, const Examine& examine) {
  const Instant begin = clock_.Now();
  const Duration share = (deadline - begin) / static_cast<std::int64_t>(left);
  const Result<void> connected = connection_.Connect(endpoint(), tls_.get(), begin + share);
  if (!connected.ok()) return {Kind::kNext, connected.error()};
  const Instant now = clock_.Now();
  return examine(left == 1 ? deadline : now + (deadline - now) / 2);
}

Result<void> GrpcChannel::Open(Instant deadline, const Examine& examine) {
  LEAF_ASSERT(!connected());
  std::string lacked;
  for (std::size_t left = options_.endpoints.size(); left > 0; --left) {
    Verdict verdict = Try(left, deadline, examine);
    if (verdict.kind == Kind::kUsable) return {};
    if (verdict.kind == Kind::kStop) {
      Close();
      return std::move(verdict.error);
    }
    lacked += (lacked.empty() ? "" : "; ") + ToString(endpoint()) + ": " + verdict.error.message;
    Leave();
  }
  return Error{Code::kUnavailable, lacked};
}

void GrpcChannel::Leave() noexcept {
  Close();
  at_ = (at_ + 1) % options_.endpoints.size();
}

}  // namespace leaf::rpc
