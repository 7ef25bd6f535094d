#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leaf {

/// Frees what readers may still look at once each of them has passed through a quiescent state:
/// reclamation by epochs that costs a reader one load and one store a turn of its loop.
///
/// A Reader is confined to its thread. The other calls belong to the writers, who take turns by a
/// lock of their own. `Atomic` is std::atomic, or a stand-in that explores interleavings.
template <template <class> class Atomic = std::atomic>
class Qsbr {
 public:
  /// A thread that may hold pointers to retired objects between Online and Offline.
  class Reader {
   public:
    explicit Reader(Qsbr& domain) : domain_(domain) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Before the first use, and after Offline.
    void Online() noexcept {
      // The read-modify-write takes its place among the writers': either the writer that retires an
      // object comes later and sees kEntering, or it came earlier and we see what it unlinked.
      epoch_.store(kEntering, std::memory_order_relaxed);
      epoch_.store(domain_.epoch_.fetch_add(0, std::memory_order_acq_rel),
                   std::memory_order_release);
    }
    /// The thread holds no pointer now. REQUIRES: online.
    void Quiesce() noexcept {
      epoch_.store(domain_.epoch_.load(std::memory_order_acquire), std::memory_order_release);
    }
    /// The thread holds no pointer until Online; it holds nobody up.
    void Offline() noexcept { epoch_.store(kOffline, std::memory_order_release); }

   private:
    friend class Qsbr;
    Qsbr& domain_;
    Atomic<std::uint64_t> epoch_{kOffline};
  };

  using Free = void (*)(void*);

  Qsbr() = default;
  Qsbr(const Qsbr&) = delete;
  Qsbr& operator=(const Qsbr&) = delete;
  /// REQUIRES: no reader is left.
  ~Qsbr() {
    for (const Retired& retired : retired_) retired.free(retired.object);
  }

  void Add(Reader& reader) { readers_.push_back(&reader); }
  /// REQUIRES: offline.
  void Remove(Reader& reader) { std::erase(readers_, &reader); }

  /// Frees `object` by `free` when no reader can hold it any more. REQUIRES: it is unlinked, so
  /// that nobody can find it anew.
  void Retire(void* object, Free free) {
    const std::uint64_t epoch = epoch_.fetch_add(1, std::memory_order_acq_rel) + 1;
    retired_.push_back({epoch, object, free});
  }

  /// Frees what can be freed. The number of objects that still wait.
  std::size_t Collect() {
    std::uint64_t oldest = UINT64_MAX;
    for (const Reader* reader : readers_) {
      const std::uint64_t epoch = reader->epoch_.load(std::memory_order_acquire);
      if (epoch != kOffline) oldest = std::min(oldest, epoch);
    }
    // Retired in order of their epochs, so those that may go are the first ones.
    auto it = retired_.begin();
    for (; it != retired_.end() && it->epoch <= oldest; ++it) it->free(it->object);
    retired_.erase(retired_.begin(), it);
    return retired_.size();
  }

  std::size_t waiting() const noexcept { return retired_.size(); }

 private:
  struct Retired {
    std::uint64_t epoch;
    void* object;
    Free free;
  };
  static constexpr std::uint64_t kOffline = 0;
  static constexpr std::uint64_t kEntering = 1;

  Atomic<std::uint64_t> epoch_{2};
  std::vector<Reader*> readers_;
  std::vector<Retired> retired_;
};

}  // namespace leaf
