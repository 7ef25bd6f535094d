#include "core/snowflake/layout.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace leaf {
namespace {

constexpr int kAllBits = 63, kMaxWorkerBits = 20, kMaxSequenceBits = 22;
constexpr std::int64_t kMaxTickMs = 60'000;
/// 9999-12-31: what the end of a layout may be, so that no arithmetic on times overflows.
constexpr std::int64_t kMaxEndMs = 253'402'300'800'000;

std::int64_t LowBits(std::int64_t value, int bits) noexcept {
  return value & ((std::int64_t{1} << bits) - 1);
}

/// Exactly three numbers between slashes.
std::optional<std::array<int, 3>> ParseBits(std::string_view text) noexcept {
  std::array<int, 3> bits{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '/')) return std::nullopt;
    if (at == end || *at < '0' || *at > '9') return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, bits[i]);
    if (error != std::errc()) return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(bits) : std::nullopt;
}

}  // namespace

std::optional<Layout> FindLayout(std::string_view name) noexcept {
  if (name == kLeafLayout.name) return kLeafLayout;
  if (name == kJs53Layout.name) return kJs53Layout;
  return std::nullopt;
}

Result<Layout> CustomLayout(std::string_view bits, std::int64_t epoch_ms, std::int64_t tick_ms) {
  const auto bad = [](std::string text) { return Error{Code::kInvalidArgument, std::move(text)}; };
  const auto parsed = ParseBits(bits);
  if (!parsed)
    return bad("bits must be TIME/WORKER/SEQUENCE, three whole numbers, such as 41/10/12");
  const auto [time, worker, sequence] = *parsed;
  if (time < 1 || worker < 1 || sequence < 1 || worker > kMaxWorkerBits ||
      sequence > kMaxSequenceBits || time > kAllBits - worker - sequence) {
    return bad(
        "bits must be at least 1 each, the worker at most 20, the sequence at most 22, all "
        "together at most 63");
  }
  if (tick_ms < 1 || tick_ms > kMaxTickMs) return bad("the tick must be from 1 ms to 1 min");
  if (epoch_ms < 0 || epoch_ms >= kMaxEndMs)
    return bad("the epoch must be milliseconds since 1970, not negative");
  Layout layout{"custom", epoch_ms, time, worker, sequence, tick_ms};
  if ((kMaxEndMs - epoch_ms) / tick_ms < (std::int64_t{1} << time))
    return bad("the layout would end after the year 9999: take fewer bits for the time");
  return layout;
}

std::string LayoutText(const Layout& layout) {
  std::string text = std::to_string(layout.time_bits) + "/" + std::to_string(layout.worker_bits) +
                     "/" + std::to_string(layout.sequence_bits) + "@" +
                     std::to_string(layout.epoch_ms);
  if (layout.tick_ms != 1) text += "/" + std::to_string(layout.tick_ms) + "ms";
  return text;
}

SnowflakeParts Decode(const Layout& layout, std::int64_t id) noexcept {
  SnowflakeParts parts;
  // An arithmetic shift: the time of a negative id lies before the epoch. Nothing overflows, as at
  // least the worker's and the sequence's bits are shifted out and CustomLayout bounds the rest;
  // only a number with more time bits than its layout has could.
  const std::int64_t ticks = id >> (layout.worker_bits + layout.sequence_bits);
  std::int64_t ms = 0;
  if (__builtin_mul_overflow(ticks, layout.tick_ms, &ms) ||
      __builtin_add_overflow(ms, layout.epoch_ms, &ms)) {
    ms = ticks < 0 ? std::numeric_limits<std::int64_t>::min()
                   : std::numeric_limits<std::int64_t>::max();
  }
  parts.time_ms = ms;
  parts.worker = LowBits(id >> layout.sequence_bits, layout.worker_bits);
  parts.sequence = LowBits(id, layout.sequence_bits);
  return parts;
}

}  // namespace leaf
