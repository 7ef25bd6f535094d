#pragma once

#include <cstdint>
#include <string_view>

namespace leaf {

/// FNV-1a, 64 bits (Fowler, Noll, Vo): for names of files and checksums against accidents, not
/// against people.
constexpr std::uint64_t Fnv1a(std::string_view bytes) noexcept {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace leaf
