#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leaf/result.h"

namespace leaf {

/// How a snowflake id is cut: time above worker above sequence; the sign bit stays 0. Time counts
/// ticks since the epoch.
struct Layout {
  std::string_view name;
  std::int64_t epoch_ms = 0;
  int time_bits = 0, worker_bits = 0, sequence_bits = 0;
  std::int64_t tick_ms = 1;

  /// Workers are 0 to workers() - 1.
  std::int64_t workers() const noexcept { return std::int64_t{1} << worker_bits; }
  /// The first millisecond that no id can carry any more.
  std::int64_t end_ms() const noexcept {
    return epoch_ms + (std::int64_t{1} << time_bits) * tick_ms;
  }
  /// The tick that holds `ms` >= epoch_ms.
  std::int64_t TickOf(std::int64_t ms) const noexcept { return (ms - epoch_ms) / tick_ms; }
  /// The first tick that begins at or after `ms`; 0 for what lies before the epoch.
  std::int64_t TickFrom(std::int64_t ms) const noexcept {
    return ms <= epoch_ms ? 0 : (ms - epoch_ms + tick_ms - 1) / tick_ms;
  }
  std::int64_t MillisOf(std::int64_t tick) const noexcept { return epoch_ms + tick * tick_ms; }

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// 41/10/12 from 1288834974657 (2010-11-04T01:42:54.657Z): Twitter's and Leaf's. Ends 2080-07-10
/// 17:30:30 UTC.
inline constexpr Layout kLeafLayout{"leaf", 1288834974657, 41, 10, 12};
/// 41/5/7 from 2020-01-01: every id below 2^53.
inline constexpr Layout kJs53Layout{"js53", 1577836800000, 41, 5, 7};

struct SnowflakeParts {
  std::int64_t time_ms = 0;  ///< since 1970
  std::int64_t worker = 0;
  std::int64_t sequence = 0;
};

/// nullopt for an unknown name.
std::optional<Layout> FindLayout(std::string_view name) noexcept;

/// A layout named "custom". `bits` is "TIME/WORKER/SEQUENCE", each at least 1, 63 at most together,
/// the worker at most 20 and the sequence at most 22. kInvalidArgument says which bound was broken.
Result<Layout> CustomLayout(std::string_view bits, std::int64_t epoch_ms, std::int64_t tick_ms);

/// "41/10/12@1288834974657", with "/10ms" behind it if the tick is not 1 ms: what two servers of
/// one cluster must have in common, in one word.
std::string LayoutText(const Layout& layout);

/// The fields of any 64-bit number; a negative one yields a time before the epoch, as Leaf's
/// decoder does.
SnowflakeParts Decode(const Layout& layout, std::int64_t id) noexcept;

}  // namespace leaf
