#include "store/driver.h"

namespace leaf {

std::uint64_t IdentityHash(std::string_view identity) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : identity) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace leaf
