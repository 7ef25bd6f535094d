#include "core/segment/segment_store.h"

namespace leaf {

std::string_view DurabilityName(Durability level) noexcept {
  switch (level) {
    case Durability::kVolatile:
      return "volatile";
    case Durability::kProcess:
      return "process";
    case Durability::kPower:
      return "power";
    case Durability::kReplicated:
      return "replicated";
  }
  return "unknown";
}

}  // namespace leaf
