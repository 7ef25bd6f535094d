#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace leaf::rpc {

/// gRPC's status codes, by their numbers on the wire.
enum class GrpcStatus : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// The trailer's text as a status; a number that gRPC does not define is kUnknown, as gRPC wants.
/// nullopt: it is no number.
std::optional<GrpcStatus> ParseGrpcStatus(std::string_view text);

/// Decodes %XX of grpc-message; what is no such escape stays as it is.
std::string DecodeGrpcMessage(std::string_view text);

/// A message as it travels: five bytes before it.
std::string FrameGrpcMessage(std::string_view message);
/// What kept `body` from being exactly one message without compression; "" if it is one.
std::string_view GrpcFrameFault(std::string_view body);
inline constexpr std::size_t kGrpcFrame = 5;

/// One call with one request and one answer.
struct GrpcCall {
  std::string path;                                           ///< "/etcdserverpb.KV/Txn"
  std::string request;                                        ///< the message, encoded
  std::vector<std::pair<std::string, std::string>> metadata;  ///< names in lower case
  Instant deadline = kNever;
};

/// What became of a call.
struct GrpcReply {
  enum class End : std::uint8_t {
    kNotSent,   ///< the server has certainly not worked on it
    kAnswered,  ///< the server's own word: `status`, with `body` if that is kOk
    kUnknown,   ///< it may have been worked on, or may be yet
  };
  End end = End::kNotSent;
  GrpcStatus status = GrpcStatus::kUnavailable;
  std::string message;  ///< the server's, or why there is no answer
  std::string body;     ///< the message, encoded
};

}  // namespace leaf::rpc
