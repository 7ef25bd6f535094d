#include "leaf/result.h"

namespace leaf {

std::string_view CodeName(Code code) noexcept {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kUnauthenticated:
      return "unauthenticated";
    case Code::kPermissionDenied:
      return "permission_denied";
    case Code::kNotFound:
      return "not_found";
    case Code::kConflict:
      return "conflict";
    case Code::kDisabled:
      return "disabled";
    case Code::kExhausted:
      return "exhausted";
    case Code::kOverloaded:
      return "overloaded";
    case Code::kRegressed:
      return "regressed";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kInternal:
      return "internal";
  }
  return "internal";
}

}  // namespace leaf
