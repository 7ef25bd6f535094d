// A change goes to the cluster as a proposal. An error that is found before (permissions, size, a
// member without a leader) or by every member alike when the proposal is applied (permissions) is
// definite. One that ends the waiting for a proposal (timeouts, a leader lost, a server that stops)
// is not: the proposal may still be accepted. Nor is "space exceeded": the proposal that reaches
// the quota is applied, and answered with it (quotaApplierV3 in etcd's apply.go).

#include "store/etcd/etcd_errors.h"

namespace leaf {
namespace {

using rpc::GrpcStatus;

bool Has(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

constexpr const char* kFull =
    ". The cluster is read-only (alarm NOSPACE): its database has reached the quota. Compact and "
    "defragment it or raise --quota-backend-bytes, then run: etcdctl alarm disarm";

EtcdMeaning Unavailable(std::string_view message) noexcept {
  EtcdMeaning meaning{.leave = true};
  // Both are said before the call is looked at.
  meaning.definite =
      message == "etcdserver: no leader" || Has(message, "rpc not supported for learner");
  return meaning;
}

}  // namespace

EtcdMeaning MeaningOf(GrpcStatus status, std::string_view message) noexcept {
  switch (status) {
    case GrpcStatus::kOk:
      return {.definite = true};
    case GrpcStatus::kUnavailable:
      return Unavailable(message);
    case GrpcStatus::kUnauthenticated:
      return {.definite = true, .token = Has(message, "invalid auth token")};
    case GrpcStatus::kInvalidArgument:
      return {.definite = true,
              .token = Has(message, "revision of auth store is old"),
              .advice = Has(message, "user name is empty")
                            ? ". The cluster demands a user: etcd://USER:PASSWORD@..."
                            : ""};
    case GrpcStatus::kResourceExhausted:
      // Too many requests are turned away at the door; that passes.
      if (Has(message, "space exceeded")) return {.leave = true, .advice = kFull};
      return {.definite = Has(message, "too many requests")};
    case GrpcStatus::kDataLoss:
      return {.definite = Has(message, "corrupt"),
              .leave = true,
              .advice =
                  ". The members' data differ (alarm CORRUPT): replace the member that is "
                  "wrong, then run: etcdctl alarm disarm"};
    case GrpcStatus::kPermissionDenied:
    case GrpcStatus::kFailedPrecondition:
    case GrpcStatus::kNotFound:
    case GrpcStatus::kAlreadyExists:
    case GrpcStatus::kOutOfRange:
    case GrpcStatus::kUnimplemented:
      return {.definite = true};
    case GrpcStatus::kUnknown:
      return {.definite = message == "raft proposal dropped", .leave = true};
    case GrpcStatus::kCancelled:
    case GrpcStatus::kDeadlineExceeded:
    case GrpcStatus::kAborted:
    case GrpcStatus::kInternal:
      break;
  }
  return {.leave = true};
}

}  // namespace leaf
