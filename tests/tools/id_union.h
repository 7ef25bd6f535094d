#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "external_sort.h"

namespace leaf::tools {

/// The ids of many tags as a union of intervals. Neighbours melt together, so that dense ids need
/// next to no memory; what stays apart is sorted on disk. Thread-compatible.
class IdUnion {
 public:
  /// Half-open.
  struct Interval {
    std::int64_t first = 0, last = 0;
    std::uint32_t tag = 0;
  };
  /// One tag's part.
  struct Tag {
    std::uint32_t tag = 0;
    std::int64_t first = 0, last = 0;  ///< smallest id, largest id + 1
    std::int64_t distinct = 0;         ///< ids, each counted once
  };

  /// Remembers some places where ids were added again: at most so many, a fifth of them of one tag.
  IdUnion(std::size_t memory_bytes, const std::string& folder, std::size_t max_clashes);

  void Add(const Interval& ids) { sort_.Add(ids); }
  /// Calls `visit` for each tag that has ids. Once, at the end. False: error() says why.
  bool Finish(const std::function<void(const Tag&)>& visit);

  /// Ids that at least two of the added intervals hold. Whole after Finish.
  const std::vector<Interval>& clashes() const noexcept { return clashes_; }
  bool spilled() const noexcept { return sort_.runs() > 0; }
  const std::string& error() const noexcept { return sort_.error(); }

 private:
  struct Less {
    bool operator()(const Interval& a, const Interval& b) const {
      return a.tag != b.tag ? a.tag < b.tag : a.first < b.first;
    }
  };
  struct Melt {
    IdUnion* owner;
    void operator()(std::vector<Interval>& sorted) const;
  };

  void Remember(const Interval& clash);
  /// True: `next` was taken into `into`, which begins at or below it.
  bool Join(Interval& into, const Interval& next);

  const std::size_t max_clashes_;
  std::vector<Interval> clashes_;
  ExternalSort<Interval, Less, Melt> sort_;
};

}  // namespace leaf::tools
