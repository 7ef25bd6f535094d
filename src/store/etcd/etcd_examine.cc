// What a session finds out about the member it is connected with, and about the cluster. Three
// questions travel together: the member's state, the list of members, and a transaction that can
// change nothing, because it asks for a key with a negative version, but that etcd lets through
// only for a user who may read and write all our keys, and only while the cluster can write.

#include <etcd.pb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "store/etcd/etcd_errors.h"
#include "store/etcd/etcd_session.h"
#include "store/etcd/etcd_value.h"

namespace leaf {
namespace {

using rpc::GrpcCall;
using rpc::GrpcReply;
using rpc::GrpcStatus;
using Verdict = rpc::GrpcChannel::Verdict;
using Kind = Verdict::Kind;

constexpr const char* kStatus = "/etcdserverpb.Maintenance/Status";
constexpr const char* kMemberList = "/etcdserverpb.Cluster/MemberList";
constexpr const char* kAuthenticate = "/etcdserverpb.Auth/Authenticate";

constexpr Duration kLookEvery = std::chrono::seconds(1);

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

bool Succeeded(const GrpcReply& reply) {
  return reply.end == GrpcReply::End::kAnswered && reply.status == GrpcStatus::kOk;
}

bool Denied(const GrpcReply& reply) {
  return reply.end == GrpcReply::End::kAnswered && (reply.status == GrpcStatus::kPermissionDenied ||
                                                    reply.status == GrpcStatus::kUnauthenticated ||
                                                    reply.status == GrpcStatus::kInvalidArgument);
}

std::string Identity(std::uint64_t cluster_id) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), cluster_id, 16).ptr;
  return "etcd:" + std::string(digits.data(), end);
}

Error Alarm(const std::string& error) {
  const bool full = error.find("NOSPACE") != std::string::npos;
  return Unavailable("alarm: " + error +
                     MeaningOf(full ? GrpcStatus::kResourceExhausted : GrpcStatus::kDataLoss,
                               full ? "space exceeded" : "corrupt")
                         .advice);
}

}  // namespace

Result<EtcdSession::Facts> EtcdSession::Open(Instant deadline) {
  Close();
  if (settings_.tls.mode != rpc::TlsSettings::Mode::kDisabled) {
    // Read anew each time: certificates are replaced while servers run.
    LEAF_ASSIGN_OR_RETURN(std::shared_ptr<const rpc::TlsContext> tls,
                          rpc::TlsContext::Make(settings_.tls));
    channel_.SetTls(std::move(tls));
  }
  LEAF_RETURN_IF_ERROR(channel_.Open(deadline, [this](Instant until) { return Examine(until); }));
  last_look_ = last_use_ = clock_.Now();
  return facts_;
}

// Sets token_. An error, and whether another member would say the same.
std::optional<Error> EtcdSession::Authenticate(Instant deadline, bool& hopeless) {
  token_.clear();
  etcdpb::AuthenticateRequest request;
  request.set_name(settings_.user);
  request.set_password(settings_.password);
  const GrpcReply reply = RunOne(Plain(kAuthenticate, request.SerializeAsString(), deadline));
  hopeless = false;
  etcdpb::AuthenticateResponse response;
  if (Succeeded(reply) && response.ParseFromString(reply.body)) {
    token_ = response.token();
    return std::nullopt;
  }
  if (reply.end == GrpcReply::End::kAnswered && reply.status == GrpcStatus::kFailedPrecondition) {
    facts_.warnings.push_back("etcd has authentication switched off (" + reply.message +
                              "): user '" + settings_.user +
                              "' is not looked at, and everyone may change the ids");
    return std::nullopt;
  }
  hopeless = Denied(reply);
  Error error = Said(reply);
  error.message = "user '" + settings_.user + "': " + error.message;
  return error;
}

std::string EtcdSession::ProbeRequest() const {
  etcdpb::TxnRequest request;
  etcdpb::Compare* const never = request.add_compare();
  never->set_result(etcdpb::Compare::LESS);
  never->set_target(etcdpb::Compare::VERSION);
  never->set_key(keys_);
  never->set_version(0);
  etcdpb::PutRequest* const put = request.add_success()->mutable_request_put();
  put->set_key(keys_);
  etcdpb::RangeRequest* const range = request.add_failure()->mutable_request_range();
  range->set_key(keys_);
  range->set_range_end(PrefixEnd(keys_));
  range->set_limit(1);
  range->set_keys_only(true);
  return request.SerializeAsString();
}

Verdict EtcdSession::Examine(Instant deadline) {
  facts_ = {};
  if (!settings_.user.empty()) {
    bool hopeless = false;
    if (auto error = Authenticate(deadline, hopeless))
      return {hopeless ? Kind::kStop : Kind::kNext, std::move(*error)};
    if (!channel_.encrypted())
      facts_.warnings.push_back("the password of user '" + settings_.user +
                                "' travels to etcd in the open; set ssl-mode");
  }
  const std::array<GrpcCall, 3> calls{Plain(kStatus, "", deadline),
                                      Plain(kMemberList, "", deadline),
                                      Plain(kEtcdTxn, ProbeRequest(), deadline)};
  std::array<GrpcReply, 3> replies;
  channel_.Run(calls, replies);
  Verdict verdict = JudgeRights(replies[2]);
  if (verdict.kind == Kind::kUsable) verdict = JudgeMember(replies[0]);
  if (verdict.kind == Kind::kUsable) verdict = JudgeMembers(replies[1]);
  return verdict;
}

// The transaction: it says which cluster this is, too.
Verdict EtcdSession::JudgeRights(const GrpcReply& reply) {
  etcdpb::TxnResponse response;
  if (Succeeded(reply) && response.ParseFromString(reply.body)) {
    facts_.cluster_id = response.header().cluster_id();
    facts_.revision = revision_ = response.header().revision();
    facts_.identity = Identity(facts_.cluster_id);
    return {};
  }
  Error error = Said(reply);
  if (reply.end == GrpcReply::End::kAnswered && reply.status == GrpcStatus::kPermissionDenied) {
    error.message += ". User '" + settings_.user +
                     "' must be able to read and write the keys below " + ShownBytes(keys_) +
                     ": etcdctl role grant-permission ROLE readwrite --prefix " + ShownBytes(keys_);
  }
  // What is wrong with the rights or the space is so on every member.
  const bool everywhere = Denied(reply) || MeaningOf(reply.status, reply.message).advice[0] != '\0';
  return {everywhere ? Kind::kStop : Kind::kNext, std::move(error)};
}

Verdict EtcdSession::JudgeMember(const GrpcReply& reply) {
  const std::string where = ToString(channel_.endpoint()) + ": ";
  if (Denied(reply)) return {};  // it has just written, that must do
  etcdpb::StatusResponse status;
  if (!Succeeded(reply) || !status.ParseFromString(reply.body)) return {Kind::kNext, Said(reply)};
  if (status.header().cluster_id() != facts_.cluster_id)
    return {Kind::kNext, Unavailable(where + "two clusters answer at one address")};
  for (const std::string& error : status.errors()) {
    if (error.find("alarm:") != std::string::npos) return {Kind::kStop, Alarm(error)};
  }
  if (status.leader() == 0) return {Kind::kNext, Unavailable(where + "the member has no leader")};
  if (status.is_learner())
    return {Kind::kNext, Unavailable(where + "the member is a learner, which serves nobody")};
  return {};
}

Verdict EtcdSession::JudgeMembers(const GrpcReply& reply) {
  if (Denied(reply)) {
    facts_.lists_members = false;
    facts_.durability = Durability::kPower;
    facts_.warnings.push_back(
        "this user may not read etcd's list of members, so the cluster counts as a single member "
        "('power')");
    return {};
  }
  etcdpb::MemberListResponse list;
  if (!Succeeded(reply) || !list.ParseFromString(reply.body)) return {Kind::kNext, Said(reply)};
  const auto voters =
      std::count_if(list.members().begin(), list.members().end(),
                    [](const etcdpb::Member& member) { return !member.is_learner(); });
  facts_.durability = voters >= 2 ? Durability::kReplicated : Durability::kPower;
  return {};
}

Result<void> EtcdSession::Look(Instant deadline) {
  if (clock_.Now() - last_look_ < kLookEvery) return {};
  std::vector<GrpcCall> calls{Plain(kStatus, "", deadline)};
  if (facts_.lists_members) calls.push_back(Plain(kMemberList, "", deadline));
  std::vector<GrpcReply> replies(calls.size());
  channel_.Run(calls, replies);
  const Durability before = facts_.durability;
  Verdict verdict = JudgeMember(replies[0]);
  if (verdict.kind == Kind::kUsable && facts_.lists_members) verdict = JudgeMembers(replies[1]);
  if (verdict.kind == Kind::kUsable && facts_.durability != before)
    verdict = {Kind::kNext, Unavailable("the cluster has more or fewer members than before; it "
                                        "will be examined anew")};
  if (verdict.kind != Kind::kUsable) {
    Leave();
    return std::move(verdict.error);
  }
  last_look_ = clock_.Now();
  return {};
}

}  // namespace leaf
