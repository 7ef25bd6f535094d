// How calls are made and what their answers mean; etcd_examine.cc has what a session finds out
// about the member and the cluster.

#include "store/etcd/etcd_session.h"

#include <etcd.pb.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "store/etcd/etcd_errors.h"
#include "store/refusals.h"

namespace leaf {
namespace {

using rpc::GrpcCall;
using rpc::GrpcReply;

constexpr Duration kIdle = std::chrono::seconds(5);  // then a sign of life is asked for
constexpr Duration kPingMax = std::chrono::milliseconds(300);

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

}  // namespace

EtcdSession::EtcdSession(EtcdSettings settings, std::string keys, Clock& clock)
    : settings_(std::move(settings)),
      keys_(std::move(keys)),
      clock_(clock),
      channel_({.endpoints = settings_.endpoints}, clock) {}

Result<void> EtcdSession::Ready(Instant deadline) {
  if (!connected()) return Unavailable("not connected");
  const Instant now = clock_.Now();
  if (now >= deadline) return refusal::Late("etcd");
  if (channel_.Stale()) {
    Leave();
    return Unavailable("the member had closed the idle connection");
  }
  if (now - last_use_ >= kIdle) {
    const Result<void> alive = channel_.Ping(now + std::min(kPingMax, (deadline - now) / 3));
    if (!alive.ok()) {
      Leave();
      return alive;
    }
  }
  last_use_ = clock_.Now();
  return {};
}

GrpcCall EtcdSession::Plain(const char* path, std::string request, Instant deadline) const {
  GrpcCall call;
  call.path = path;
  call.request = std::move(request);
  call.deadline = deadline;
  // A member without a leader says so at once, before it does anything.
  call.metadata.emplace_back("hasleader", "true");
  if (!token_.empty()) call.metadata.emplace_back("token", token_);
  return call;
}

GrpcReply EtcdSession::RunOne(const GrpcCall& call) {
  GrpcReply reply;
  channel_.Run({&call, 1}, {&reply, 1});
  return reply;
}

Error EtcdSession::Said(const GrpcReply& reply) const {
  std::string message = ToString(channel_.endpoint()) + ": " + reply.message;
  if (reply.end == GrpcReply::End::kAnswered)
    message += MeaningOf(reply.status, reply.message).advice;
  return Unavailable(std::move(message));
}

void EtcdSession::Run(std::span<const EtcdCall> calls, std::span<EtcdAnswer> answers) {
  LEAF_ASSERT(calls.size() == answers.size());
  std::vector<GrpcCall> plain;
  plain.reserve(calls.size());
  for (const EtcdCall& call : calls) plain.push_back(Plain(call.path, call.request, call.deadline));
  std::vector<GrpcReply> replies(calls.size());
  channel_.Run(plain, replies);
  Renew(calls, replies);
  bool leave = false;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    answers[i] = AnswerFrom(std::move(replies[i]), leave);
    leave = leave || answers[i].end == EtcdAnswer::End::kUnknown;
  }
  if (leave || !connected()) Leave();
}

// A token ends after some minutes, and when its member restarts. What was refused for that has not
// been done: with a new token it is asked for again, once.
void EtcdSession::Renew(std::span<const EtcdCall> calls, std::span<GrpcReply> replies) {
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].end == GrpcReply::End::kAnswered &&
        MeaningOf(replies[i].status, replies[i].message).token)
      which.push_back(i);
  }
  if (which.empty() || settings_.user.empty()) return;
  bool hopeless = false;
  if (Authenticate(calls[which.front()].deadline, hopeless)) return;
  std::vector<GrpcCall> again;
  for (const std::size_t i : which)
    again.push_back(Plain(calls[i].path, calls[i].request, calls[i].deadline));
  std::vector<GrpcReply> later(again.size());
  channel_.Run(again, later);
  for (std::size_t i = 0; i < which.size(); ++i) replies[which[i]] = std::move(later[i]);
}

EtcdAnswer EtcdSession::AnswerFrom(GrpcReply reply, bool& leave) const {
  EtcdAnswer answer;
  if (reply.end == GrpcReply::End::kAnswered) {
    if (reply.status == rpc::GrpcStatus::kOk) {
      answer.end = EtcdAnswer::End::kDone;
      answer.body = std::move(reply.body);
      return answer;
    }
    const EtcdMeaning meaning = MeaningOf(reply.status, reply.message);
    answer.end = meaning.definite ? EtcdAnswer::End::kRefused : EtcdAnswer::End::kUnknown;
    leave = leave || meaning.leave || meaning.token;
  } else {
    answer.end = reply.end == GrpcReply::End::kNotSent ? EtcdAnswer::End::kRefused
                                                       : EtcdAnswer::End::kUnknown;
  }
  answer.error = Said(reply);
  return answer;
}

template <typename Response>
bool EtcdSession::ReadAs(EtcdAnswer& answer, Response& to) {
  if (answer.end != EtcdAnswer::End::kDone) return false;
  const bool read = to.ParseFromString(answer.body);
  if (read && to.header().cluster_id() == facts_.cluster_id) {
    revision_ = std::max(revision_, to.header().revision());
    return true;
  }
  answer.end = EtcdAnswer::End::kUnknown;
  answer.error = Unavailable(ToString(channel_.endpoint()) +
                             (read ? ": this is another cluster than the one examined"
                                   : ": the answer is none of etcd's"));
  Leave();
  return false;
}

bool EtcdSession::Read(EtcdAnswer& answer, etcdpb::TxnResponse& to) { return ReadAs(answer, to); }
bool EtcdSession::Read(EtcdAnswer& answer, etcdpb::RangeResponse& to) { return ReadAs(answer, to); }

template <typename Request, typename Response>
Result<Response> EtcdSession::CallAs(const char* path, const Request& request, Instant deadline) {
  const EtcdCall call{path, request.SerializeAsString(), deadline};
  EtcdAnswer answer;
  Run({&call, 1}, {&answer, 1});
  Response response;
  if (ReadAs(answer, response)) return response;
  return answer.error;
}

Result<etcdpb::TxnResponse> EtcdSession::Txn(const etcdpb::TxnRequest& request, Instant deadline) {
  return CallAs<etcdpb::TxnRequest, etcdpb::TxnResponse>(kEtcdTxn, request, deadline);
}

Result<etcdpb::RangeResponse> EtcdSession::Range(const etcdpb::RangeRequest& request,
                                                 Instant deadline) {
  return CallAs<etcdpb::RangeRequest, etcdpb::RangeResponse>(kEtcdRange, request, deadline);
}

}  // namespace leaf
