#pragma once

#include <atomic>
#include <cstdint>

#include "base/failpoint.h"
#include "core/snowflake/layout.h"
#include "core/snowflake/minted.h"

namespace leaf {

/// Time, sequence and the right to use them, without a lock: the last place that was minted is one
/// 64-bit word (tick above sequence) that only rises, moved by compare-and-swap; worker and limit
/// are a second one. A template on the atomic so that every interleaving can be run.
///
/// - A place is claimed once, so no two calls mint the same time and sequence.
/// - A call reads the place first and the right second, and its compare-and-swap succeeds only if
///   nobody moved the place meanwhile. A new right is put in while the place says "closed", and the
///   place opens above everything that the old right minted: hence ids rise also over a change of
///   the worker, and a thread that slept through it mints nothing.
/// - A right is only ever replaced by a longer one of the same worker, or after Close; so a thread
///   that sleeps between its reads and its compare-and-swap mints below a limit that still holds.
template <template <class> class Atomic = std::atomic>
class Generator {
 public:
  enum class Verdict : std::uint8_t {
    kMinted,
    kClosed,  ///< there is no right
    kLimit,   ///< the right ends before these ids
    kAhead,   ///< minted time would run too far ahead of the clock
  };

  /// `secret` makes the low start of each tick unpredictable from outside.
  Generator(const Layout& layout, std::uint64_t secret) noexcept
      : worker_bits_(layout.worker_bits),
        sequence_bits_(layout.sequence_bits),
        secret_(secret),
        low_starts_(LowStarts(layout.sequence_bits)) {}

  /// Claims `count` > 0 places at `tick`, or behind the last one if that is later, if they end at
  /// most `ahead` ticks after `tick`. Lock-free; any thread.
  Verdict Mint(std::int64_t count, std::int64_t tick, std::int64_t ahead, Minted& out) noexcept {
    const auto now = static_cast<std::uint64_t>(tick < 0 ? 0 : tick);
    std::uint64_t last = last_.load(std::memory_order_acquire);
    for (;;) {
      if (last >= kClosed) return Verdict::kClosed;
      const std::uint64_t right = right_.load(std::memory_order_acquire);
      const bool moved_on = now > (last >> sequence_bits_);
      const std::uint64_t first = moved_on ? (now << sequence_bits_) + LowStart(now) : last + 1;
      const std::uint64_t end = first + static_cast<std::uint64_t>(count) - 1;
      const std::uint64_t end_tick = end >> sequence_bits_;
      if (end_tick >= (right >> worker_bits_)) return Verdict::kLimit;
      if (end_tick > now + static_cast<std::uint64_t>(ahead)) return Verdict::kAhead;
      LEAF_FAILPOINT("snowflake.claim_place");
      if (last_.compare_exchange_weak(last, end, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        out.first = first;
        out.count = count;
        out.worker = static_cast<std::int64_t>(right & ((std::uint64_t{1} << worker_bits_) - 1));
        return Verdict::kMinted;
      }
    }
  }

  /// Opens with a right: ticks from `floor` to below `limit` as `worker`, and above all that was
  /// minted before. REQUIRES: closed; limit <= 2^time_bits. One caller at a time, as the next two.
  void Open(std::int64_t worker, std::int64_t floor, std::int64_t limit) noexcept {
    right_.store(Pack(worker, limit), std::memory_order_release);
    const std::uint64_t place = last_.load(std::memory_order_relaxed) & ~kClosed;
    const std::uint64_t above = place == 0 ? 0 : (place >> sequence_bits_) + 1;
    std::uint64_t tick =
        above > static_cast<std::uint64_t>(floor) ? above : static_cast<std::uint64_t>(floor);
    // The place before the first of that tick, so that a carry into it starts at 0; but never the
    // very place that was closed, or a thread that read it with the old right could go on from it.
    if ((tick << sequence_bits_) <= place + 1) ++tick;
    last_.store((tick << sequence_bits_) - 1, std::memory_order_release);
  }
  /// Raises the limit. REQUIRES: the worker of the present right, a limit not below it.
  void Extend(std::int64_t worker, std::int64_t limit) noexcept {
    right_.store(Pack(worker, limit), std::memory_order_release);
  }
  /// Nothing is minted after this returns. The largest tick minted or passed over, -1 if none.
  std::int64_t Close() noexcept {
    std::uint64_t last = last_.load(std::memory_order_acquire);
    while (last < kClosed &&
           !last_.compare_exchange_weak(last, last | kClosed, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
    }
    const std::uint64_t place = last & ~kClosed;
    return place == 0 ? -1 : static_cast<std::int64_t>(place >> sequence_bits_);
  }

  bool closed() const noexcept { return last_.load(std::memory_order_relaxed) >= kClosed; }
  /// The tick of the last place.
  std::int64_t last_tick() const noexcept {
    return static_cast<std::int64_t>((last_.load(std::memory_order_relaxed) & ~kClosed) >>
                                     sequence_bits_);
  }

  /// How many of a tick's sequence numbers it may start at.
  static std::uint64_t LowStarts(int sequence_bits) noexcept {
    const std::uint64_t sixteenth = (std::uint64_t{1} << sequence_bits) / 16;
    return sixteenth < 1 ? 1 : sixteenth < 100 ? sixteenth : 100;
  }

 private:
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

  std::uint64_t Pack(std::int64_t worker, std::int64_t limit) const noexcept {
    return (static_cast<std::uint64_t>(limit) << worker_bits_) | static_cast<std::uint64_t>(worker);
  }

  /// Small and, over the ticks, uniform, so that `id % shards` stays even though most ticks see one
  /// id only (splitmix64's finalizer, Steele et al. 2014).
  std::uint64_t LowStart(std::uint64_t tick) const noexcept {
    std::uint64_t x = tick + secret_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return (x ^ (x >> 31)) % low_starts_;
  }

  const int worker_bits_, sequence_bits_;
  const std::uint64_t secret_, low_starts_;
  alignas(64) Atomic<std::uint64_t> last_{kClosed};
  Atomic<std::uint64_t> right_{0};  ///< limit << worker_bits | worker
};

}  // namespace leaf
