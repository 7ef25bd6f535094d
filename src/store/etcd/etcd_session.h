#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/segment/segment_store.h"
#include "leaf/result.h"
#include "rpc/grpc_channel.h"
#include "store/etcd/etcd_settings.h"

namespace leaf {

namespace etcdpb {
class RangeRequest;
class RangeResponse;
class ResponseHeader;
class StatusResponse;
class TxnRequest;
class TxnResponse;
}  // namespace etcdpb

/// One call of the service KV.
struct EtcdCall {
  const char* path = "";  ///< kEtcdRange, kEtcdTxn
  std::string request;
  Instant deadline = kNever;
};
inline constexpr const char* kEtcdRange = "/etcdserverpb.KV/Range";
inline constexpr const char* kEtcdTxn = "/etcdserverpb.KV/Txn";

/// What became of it.
struct EtcdAnswer {
  enum class End : std::uint8_t {
    kDone,
    kRefused,  ///< nothing happened and nothing will
    kUnknown,
  };
  End end = End::kRefused;
  Error error;  ///< unless done
  std::string body;
};

/// A session with a cluster: connected with one member, authenticated, judged. It never repeats a
/// call that may have happened. Errors are kUnavailable. Confined to one thread at a time, save
/// Interrupt.
class EtcdSession {
 public:
  /// What Open found.
  struct Facts {
    std::uint64_t cluster_id = 0;
    std::int64_t revision = 0;  ///< of the cluster, during Open
    Durability durability = Durability::kPower;
    std::string identity;  ///< "etcd:" and the cluster's id
    std::vector<std::string> warnings;
    bool lists_members = true;  ///< this user may read the list of members
  };

  /// `keys` is the prefix below which this session must be able to read and write, "/leafd/x/".
  EtcdSession(EtcdSettings settings, std::string keys, Clock& clock);

  /// Connects with the first member that can serve: it has a leader and is no learner, there is no
  /// alarm, the user may do what is needed.
  Result<Facts> Open(Instant deadline);
  bool connected() const noexcept { return channel_.connected(); }
  void Close() noexcept { channel_.Close(); }
  /// Ends the session; the next begins with another member.
  void Leave() noexcept { channel_.Leave(); }
  void Interrupt() noexcept { channel_.Interrupt(); }

  /// Before a call: the session lives, as far as can be told without a trip or, after seconds of
  /// idleness, with one. On an error nothing was sent.
  Result<void> Ready(Instant deadline);
  /// Before what must be durable: a second or more after the last look, judges the member and the
  /// cluster again. A difference to what Open found ends the session.
  Result<void> Look(Instant deadline);

  /// The largest revision of the cluster that any answer told.
  std::int64_t revision() const noexcept { return revision_; }

  /// Makes all calls at once. An answer that is not clear, or that speaks against this member, ends
  /// the session. REQUIRES: equal sizes.
  void Run(std::span<const EtcdCall> calls, std::span<EtcdAnswer> answers);
  /// Reads an answer that is done; what is no such answer, or comes from another cluster than Open
  /// saw, makes it unknown and ends the session.
  bool Read(EtcdAnswer& answer, etcdpb::TxnResponse& to);
  bool Read(EtcdAnswer& answer, etcdpb::RangeResponse& to);

  /// One call; an error does not tell whether a change has happened.
  Result<etcdpb::TxnResponse> Txn(const etcdpb::TxnRequest& request, Instant deadline);
  Result<etcdpb::RangeResponse> Range(const etcdpb::RangeRequest& request, Instant deadline);

 private:
  using Verdict = rpc::GrpcChannel::Verdict;

  Verdict Examine(Instant deadline);
  std::optional<Error> Authenticate(Instant deadline, bool& hopeless);
  Verdict JudgeMember(const rpc::GrpcReply& reply);
  Verdict JudgeMembers(const rpc::GrpcReply& reply);
  Verdict JudgeRights(const rpc::GrpcReply& reply);
  std::string ProbeRequest() const;

  rpc::GrpcCall Plain(const char* path, std::string request, Instant deadline) const;
  rpc::GrpcReply RunOne(const rpc::GrpcCall& call);
  void Renew(std::span<const EtcdCall> calls, std::span<rpc::GrpcReply> replies);
  EtcdAnswer AnswerFrom(rpc::GrpcReply reply, bool& leave) const;
  template <typename Response>
  bool ReadAs(EtcdAnswer& answer, Response& to);
  template <typename Request, typename Response>
  Result<Response> CallAs(const char* path, const Request& request, Instant deadline);
  Error Said(const rpc::GrpcReply& reply) const;

  const EtcdSettings settings_;
  const std::string keys_;
  Clock& clock_;
  rpc::GrpcChannel channel_;
  std::string token_;
  Facts facts_;
  std::int64_t revision_ = 0;
  Instant last_look_{}, last_use_{};
};

}  // namespace leaf
