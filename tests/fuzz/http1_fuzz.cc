// libFuzzer: the verdict on any bytes does not depend on how they are cut up, and nothing is read
// beyond them. The first byte of the input seeds the cuts.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/http1_verdict.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::uint32_t state = data[0];
  const auto piece = [&](std::size_t) {
    state = state * 1664525U + 1013904223U;
    return std::size_t{1} + (state >> 24U) % 32U;
  };
  const std::string whole = leaf::Http1Verdict(bytes, [](std::size_t left) { return left; });
  const std::string pieces = leaf::Http1Verdict(bytes, piece);
  if (whole != pieces) {
    std::fprintf(stderr, "whole: %s\npieces: %s\n", whole.c_str(), pieces.c_str());
    std::abort();
  }
  return 0;
}
