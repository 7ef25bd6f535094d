#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace leaf {

/// Finds items by name without a lock: an insert-only, open-addressed table of pointers. `T` has
/// `std::string_view name()` and `std::uint32_t hash()`, both constant, and outlives the directory.
///
/// One writer at a time (Insert); any number of readers at any time. Growing publishes a bigger
/// table; outgrown tables, together smaller than the newest, are kept to the end, so that a reader
/// may be paused in one for as long as it likes. A reader sees each item that was inserted before
/// its call began. `Atomic` is std::atomic, or a stand-in that explores interleavings.
template <class T, template <class> class Atomic = std::atomic>
class Directory {
 public:
  /// `capacity` is a power of two: the slots of the first table.
  explicit Directory(std::size_t capacity = 64) : newest_(std::make_unique<Table>(capacity)) {
    table_.store(newest_.get(), std::memory_order_release);
  }

  /// The item of that name, or nullptr.
  T* Find(std::string_view name, std::uint32_t hash) const noexcept {
    const Table& table = *table_.load(std::memory_order_acquire);
    for (std::size_t i = hash;; ++i) {
      T* item = table.slot(i).load(std::memory_order_acquire);
      if (item == nullptr || (item->hash() == hash && item->name() == name)) return item;
    }
  }

  /// REQUIRES: one writer; no item of that name is in.
  void Insert(T& item) {
    if ((size_ + 1) * 4 > newest_->size * 3) Grow();
    Put(*newest_, item);
    ++size_;
  }

  /// Calls `visit(T&)` for each item that is in when the call begins, and perhaps for later ones.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    const Table& table = *table_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < table.size; ++i) {
      if (T* item = table.slot(i).load(std::memory_order_acquire)) visit(*item);
    }
  }

 private:
  struct Table {
    explicit Table(std::size_t capacity)
        : size(capacity), slots(std::make_unique<Atomic<T*>[]>(capacity)) {}
    Atomic<T*>& slot(std::size_t i) const { return slots[i & (size - 1)]; }

    const std::size_t size;
    const std::unique_ptr<Atomic<T*>[]> slots;
    std::unique_ptr<Table> outgrown;
  };

  // At most three quarters of the slots are ever taken, so each probe ends at an empty one.
  static void Put(Table& table, T& item) noexcept {
    std::size_t i = item.hash();
    while (table.slot(i).load(std::memory_order_relaxed) != nullptr) ++i;
    table.slot(i).store(&item, std::memory_order_release);
  }

  void Grow() {
    auto bigger = std::make_unique<Table>(newest_->size * 2);
    for (std::size_t i = 0; i < newest_->size; ++i) {
      if (T* item = newest_->slot(i).load(std::memory_order_relaxed)) Put(*bigger, *item);
    }
    bigger->outgrown = std::move(newest_);
    newest_ = std::move(bigger);
    table_.store(newest_.get(), std::memory_order_release);
  }

  std::unique_ptr<Table> newest_;  // the writer's
  std::size_t size_ = 0;           // the writer's
  Atomic<Table*> table_{nullptr};
};

}  // namespace leaf
