#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace leaf::tools {

/// A file without a name in a folder; it ends with its owner, however that ends. Holds the error
/// that any call met: a later call does nothing then. Thread-compatible.
class SpillFile {
 public:
  explicit SpillFile(std::string folder) : folder_(std::move(folder)) {}
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Where the bytes begin.
  std::uint64_t Append(const void* bytes, std::size_t size);
  void Read(std::uint64_t at, void* bytes, std::size_t size);
  std::uint64_t size() const noexcept { return size_; }
  /// Says what failed, where, and what helps; empty: nothing did.
  const std::string& error() const noexcept { return error_; }

 private:
  bool Open();
  void Fail(const char* what, int number);

  const std::string folder_;
  std::string error_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// Sorts items of a fixed size within a bound of memory: what passes it goes to disk as sorted
/// runs, which Drain merges. `Reduce` may shorten a sorted vector in place before it is spilled
/// (and sees items of earlier reductions again, among new ones). Thread-compatible.
template <typename Item, typename Less, typename Reduce>
class ExternalSort {
  static_assert(std::is_trivially_copyable_v<Item>);

 public:
  ExternalSort(std::size_t memory_bytes, std::string folder, Less less, Reduce reduce)
      : capacity_(std::max<std::size_t>(memory_bytes / sizeof(Item), 16)),
        less_(std::move(less)),
        reduce_(std::move(reduce)),
        spill_(std::move(folder)) {}

  void Add(const Item& item) {
    if (items_.size() == capacity_) MakeRoom();
    // Grown by hand: doubling past the bound would hold half as much again.
    if (items_.size() == items_.capacity())
      items_.reserve(std::min(capacity_, std::max<std::size_t>(1024, items_.size() * 2)));
    items_.push_back(item);
  }

  /// Calls `visit` for each item in order. Once, at the end. False: error() says why.
  template <typename Visit>
  bool Drain(Visit&& visit) {
    SortItems();
    if (runs_.empty()) {
      for (const Item& item : items_) visit(item);
      return true;
    }
    Spill();
    std::vector<Item>().swap(items_);
    return Merge(visit);
  }

  std::size_t runs() const noexcept { return runs_.size(); }
  const std::string& error() const noexcept { return spill_.error(); }

 private:
  struct Run {
    std::uint64_t at = 0, left = 0;  // in the file: bytes, items
    std::vector<Item> buffer;
    std::size_t next = 0;
  };

  void SortItems() {
    std::sort(items_.begin(), items_.end(), less_);
    reduce_(items_);
  }

  /// Sorts; spills unless the reduction gave half of the room back.
  void MakeRoom() {
    SortItems();
    if (items_.size() > capacity_ / 2) Spill();
  }

  void Spill() {
    if (items_.empty()) return;
    Run run;
    run.left = items_.size();
    run.at = spill_.Append(items_.data(), items_.size() * sizeof(Item));
    runs_.push_back(std::move(run));
    items_.clear();
  }

  bool Fill(Run& run) {
    const std::uint64_t room = std::max<std::uint64_t>(capacity_ / runs_.size(), 16);
    const auto count = static_cast<std::size_t>(std::min(run.left, room));
    run.buffer.resize(count);
    run.next = 0;
    spill_.Read(run.at, run.buffer.data(), count * sizeof(Item));
    run.at += count * sizeof(Item);
    run.left -= count;
    return count > 0 && error().empty();
  }

  template <typename Visit>
  bool Merge(Visit&& visit) {
    std::vector<Run*> heap;  // the run whose next item is the least on top
    const auto later = [this](const Run* a, const Run* b) {
      return less_(b->buffer[b->next], a->buffer[a->next]);
    };
    for (Run& run : runs_) {
      if (Fill(run)) heap.push_back(&run);
    }
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty() && error().empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      Run& run = *heap.back();
      // Runs often follow each other; the heap is asked again only when another is due.
      const Run* rival = heap.size() > 1 ? heap.front() : nullptr;
      bool more = true;
      do {
        visit(run.buffer[run.next]);
        more = ++run.next < run.buffer.size() || Fill(run);
      } while (more && (rival == nullptr || !later(&run, rival)));
      if (more) {
        std::push_heap(heap.begin(), heap.end(), later);
      } else {
        heap.pop_back();
      }
    }
    return error().empty();
  }

  const std::size_t capacity_;
  const Less less_;
  Reduce reduce_;
  SpillFile spill_;
  std::vector<Item> items_;
  std::vector<Run> runs_;
};

}  // namespace leaf::tools
