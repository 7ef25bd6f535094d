#include "id_union.h"

#include <algorithm>

namespace leaf::tools {

IdUnion::IdUnion(std::size_t memory_bytes, const std::string& folder, std::size_t max_clashes)
    : max_clashes_(max_clashes), sort_(memory_bytes, folder, Less{}, Melt{this}) {}

void IdUnion::Remember(const Interval& clash) {
  if (clashes_.size() >= max_clashes_) return;
  // One tag that went wrong must not hide the others.
  const auto of_tag = std::count_if(clashes_.begin(), clashes_.end(),
                                    [&](const Interval& each) { return each.tag == clash.tag; });
  if (static_cast<std::size_t>(of_tag) < std::max<std::size_t>(max_clashes_ / 5, 1))
    clashes_.push_back(clash);
}

bool IdUnion::Join(Interval& into, const Interval& next) {
  if (next.tag != into.tag || next.first > into.last) return false;
  const std::int64_t shared = std::min(into.last, next.last);
  if (shared > next.first) Remember({next.first, shared, next.tag});
  into.last = std::max(into.last, next.last);
  return true;
}

void IdUnion::Melt::operator()(std::vector<Interval>& sorted) const {
  if (sorted.empty()) return;
  std::size_t kept = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (!owner->Join(sorted[kept], sorted[i])) sorted[++kept] = sorted[i];
  }
  sorted.resize(kept + 1);
}

bool IdUnion::Finish(const std::function<void(const Tag&)>& visit) {
  Interval open;
  Tag tag;
  bool any = false;
  const auto close = [&] {
    tag.distinct += open.last - open.first;
    tag.last = open.last;
  };
  const bool whole = sort_.Drain([&](const Interval& next) {
    if (any && Join(open, next)) return;
    if (any) close();
    if (!any || next.tag != tag.tag) {
      if (any) visit(tag);
      tag = {next.tag, next.first, 0, 0};
    }
    open = next;
    any = true;
  });
  if (!whole) return false;
  if (any) {
    close();
    visit(tag);
  }
  return true;
}

}  // namespace leaf::tools
