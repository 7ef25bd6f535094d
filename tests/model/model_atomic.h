#pragma once

#include <array>
#include <atomic>
#include <type_traits>
#include <vector>

#include "explorer.h"

namespace leaf::model {

/// Has the interface of std::atomic as far as core uses it, and hands control to the explorer
/// before each operation. It keeps every value that it ever held, so that a load can return an
/// older one where C++ allows that.
template <typename T>
class ModelAtomic {
 public:
  ModelAtomic() : ModelAtomic(T{}) {}
  ModelAtomic(T value) { Push(value, std::memory_order_seq_cst); }  // NOLINT: as std::atomic
  ModelAtomic(const ModelAtomic&) = delete;
  ModelAtomic& operator=(const ModelAtomic&) = delete;

  static constexpr bool is_always_lock_free = true;

  T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    internal::Announce(this, internal::Kind::kLoad, "load");
    const std::size_t newest = history_.size() - 1;
    const std::size_t oldest = internal::StaleLoads() ? OldestReadable(order) : newest;
    const auto back =
        static_cast<std::size_t>(internal::Choose(static_cast<int>(newest - oldest) + 1));
    return Read(newest - back, order);
  }
  operator T() const noexcept { return load(); }  // NOLINT: as std::atomic

  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    internal::Announce(this, internal::Kind::kStore, "store");
    Push(value, order);
  }
  T operator=(T value) noexcept {  // NOLINT: as std::atomic
    store(value);
    return value;
  }

  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return Update("exchange", order, [value](T) { return value; });
  }

  bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                               std::memory_order failure) noexcept {
    internal::Announce(this, internal::Kind::kUpdate, "cas");
    return CompareExchange(expected, desired, success, failure);
  }
  bool compare_exchange_strong(T& expected, T desired,
                               std::memory_order order = std::memory_order_seq_cst) noexcept {
    return compare_exchange_strong(expected, desired, order, FailureOrder(order));
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                             std::memory_order failure) noexcept {
    internal::Announce(this, internal::Kind::kUpdate, "cas");
    if (internal::FailWeakly()) {
      expected = Read(history_.size() - 1, failure);
      return false;
    }
    return CompareExchange(expected, desired, success, failure);
  }
  bool compare_exchange_weak(T& expected, T desired,
                             std::memory_order order = std::memory_order_seq_cst) noexcept {
    return compare_exchange_weak(expected, desired, order, FailureOrder(order));
  }

  T fetch_add(T n, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return Update("fetch_add", order, [n](T old) { return static_cast<T>(old + n); });
  }
  T fetch_sub(T n, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return Update("fetch_sub", order, [n](T old) { return static_cast<T>(old - n); });
  }
  T operator++() noexcept { return static_cast<T>(fetch_add(1) + 1); }
  T operator--() noexcept { return static_cast<T>(fetch_sub(1) - 1); }

 private:
  struct Entry {
    T value;
    int thread;
    std::uint32_t event;
    Knowledge released;  // what a reader that acquires this value learns
    bool sequential;
  };

  static std::memory_order FailureOrder(std::memory_order order) {
    if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
    if (order == std::memory_order_release) return std::memory_order_relaxed;
    return order;
  }
  static bool Acquires(std::memory_order order) {
    return internal::Planted() != Plant::kNoAcquire && order != std::memory_order_relaxed &&
           order != std::memory_order_release;
  }
  static bool Releases(std::memory_order order) {
    return internal::Planted() != Plant::kNoRelease &&
           (order == std::memory_order_release || order == std::memory_order_acq_rel ||
            order == std::memory_order_seq_cst);
  }

  // The oldest value that this thread may still see: not older than one that was overwritten before
  // this load happens, than one that was read before, or, for a sequentially consistent load, than
  // the last sequentially consistent store.
  std::size_t OldestReadable(std::memory_order order) const {
    const Knowledge& known = internal::Known();
    for (std::size_t i = history_.size() - 1; i > 0; --i) {
      const Entry& entry = history_[i];
      if (known.Covers(entry.thread, entry.event)) return i;
      if (order == std::memory_order_seq_cst && entry.sequential) return i;
      for (const Seen& seen : seen_) {
        if (seen.index == i && known.Covers(seen.thread, seen.event)) return i;
      }
    }
    return 0;
  }

  T Read(std::size_t index, std::memory_order order) const {
    const Entry& entry = history_[index];
    if (Acquires(order)) internal::Known().Join(entry.released);
    seen_.push_back({index, internal::CurrentThread(), internal::Event()});
    return entry.value;
  }

  void Push(T value, std::memory_order order) {
    Entry entry{value,
                internal::CurrentThread(),
                internal::Event(),
                {},
                order == std::memory_order_seq_cst};
    if (Releases(order)) entry.released = internal::Known();
    history_.push_back(entry);
  }

  template <typename Next>
  T Update(const char* name, std::memory_order order, Next&& next) {
    internal::Announce(this, internal::Kind::kUpdate, name);
    const T old = history_.back().value;
    Swap(next(old), order);
    return old;
  }

  // Replaces the newest value, which the caller has looked at; keeps a release sequence going.
  void Swap(T value, std::memory_order order) {
    const Knowledge before = history_.back().released;
    Read(history_.size() - 1, order);
    if (internal::Planted() == Plant::kSplitUpdates) {
      internal::Announce(this, internal::Kind::kStore, "late store");
    }
    Push(value, order);
    history_.back().released.Join(before);
  }

  bool CompareExchange(T& expected, T desired, std::memory_order success,
                       std::memory_order failure) {
    if (history_.back().value == expected) {
      Swap(desired, success);
      return true;
    }
    expected = Read(history_.size() - 1, failure);
    return false;
  }

  struct Seen {
    std::size_t index;
    int thread;
    std::uint32_t event;
  };
  std::vector<Entry> history_;
  mutable std::vector<Seen> seen_;
};

/// Memory that is not atomic: reports a data race (two accesses, one of them a write, that the
/// orders named by the code do not put one before the other), and an access after Free.
template <typename T>
class Plain {
 public:
  Plain() = default;
  explicit Plain(T value) : value_(value) { Write(value); }

  T Read() const {
    Expect(!freed_, "read after it was freed");
    Expect(internal::Known().Covers(writer_, written_), "a read races with a write");
    readers_[static_cast<std::size_t>(internal::CurrentThread())] = internal::Event();
    return value_;
  }
  void Write(T value) {
    Expect(!freed_, "written after it was freed");
    CheckOrdered();
    writer_ = internal::CurrentThread();
    written_ = internal::Event();
    value_ = value;
  }
  void Free() {
    Expect(!freed_, "freed twice");
    CheckOrdered();
    freed_ = true;
  }
  bool freed() const noexcept { return freed_; }

 private:
  void CheckOrdered() const {
    Expect(internal::Known().Covers(writer_, written_), "a write races with a write");
    for (int i = 0; i <= kMaxThreads; ++i) {
      Expect(internal::Known().Covers(i, readers_[static_cast<std::size_t>(i)]),
             "a write races with a read");
    }
  }

  T value_{};
  bool freed_ = false;
  int writer_ = kMainThread;
  std::uint32_t written_ = 0;
  mutable std::array<std::uint32_t, kMaxThreads + 1> readers_{};
};

}  // namespace leaf::model
