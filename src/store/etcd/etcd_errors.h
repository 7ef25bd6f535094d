#pragma once

#include <string_view>

#include "rpc/grpc.h"

namespace leaf {

/// What an error of etcd's means for the one who asked.
struct EtcdMeaning {
  bool definite = false;    ///< what was asked for has not happened and will not
  bool leave = false;       ///< another member may do better; this session is over
  bool token = false;       ///< authenticate again and repeat
  const char* advice = "";  ///< for people, to follow the server's words
};

/// Judges by code and words. When in doubt: not definite, and the session is over.
EtcdMeaning MeaningOf(rpc::GrpcStatus status, std::string_view message) noexcept;

}  // namespace leaf
