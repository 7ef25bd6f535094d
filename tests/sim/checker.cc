#include "checker.h"

#include <algorithm>
#include <utility>

namespace leaf::sim {
namespace {

constexpr std::size_t kKeptViolations = 5;
constexpr std::size_t kTraceLines = 150;

std::string Text(Range range) {
  return "[" + std::to_string(range.first) + ", " + std::to_string(range.last) + ")";
}

}  // namespace

const char* Name(Rule rule) noexcept {
  switch (rule) {
    case Rule::kUnique:
      return "unique";
    case Rule::kMemory:
      return "memory";
    case Rule::kOrder:
      return "order";
    case Rule::kQueue:
      return "queue";
    case Rule::kDeadline:
      return "deadline";
    case Rule::kLoss:
      return "loss";
    case Rule::kFalseStop:
      return "false stop";
    case Rule::kAnswer:
      return "answer";
    case Rule::kProgress:
      return "progress";
    case Rule::kStop:
      return "stop";
    case Rule::kSpin:
      return "spin";
    case Rule::kAccount:
      return "account";
  }
  return "?";
}

std::optional<Range> IdSet::Overlap(Range range) const {
  auto next = last_of_.upper_bound(range.first);
  if (next != last_of_.begin()) {
    const auto before = std::prev(next);
    if (before->second > range.first)
      return Range{range.first, std::min(before->second, range.last)};
  }
  if (next != last_of_.end() && next->first < range.last) {
    return Range{next->first, std::min(next->second, range.last)};
  }
  return std::nullopt;
}

void IdSet::Insert(Range range) {
  auto next = last_of_.lower_bound(range.first);
  if (next != last_of_.end() && next->first == range.last) {
    range.last = next->second;
    next = last_of_.erase(next);
  }
  if (next != last_of_.begin()) {
    const auto before = std::prev(next);
    if (before->second == range.first) {
      before->second = range.last;
      return;
    }
  }
  last_of_.emplace_hint(next, range.first, range.last);
}

Checker::Checker(World& world, int servers, int tags)
    : world_(world),
      servers_(servers),
      tags_(tags),
      per_(static_cast<std::size_t>((servers + 1) * tags)),
      regressed_(static_cast<std::size_t>(tags)),
      lost_(static_cast<std::size_t>(tags)) {}

const Checker::PerServer& Checker::Of(int server, int tag) const {
  return per_[static_cast<std::size_t>(server * tags_ + tag)];
}
Checker::PerServer& Checker::Of(int server, int tag) {
  return per_[static_cast<std::size_t>(server * tags_ + tag)];
}

void Checker::Fail(Rule rule, std::string text) {
  world_.Note(What::kVerdict, kWorld, -1, static_cast<std::int64_t>(rule));
  if (violations_.empty()) trace_ = world_.trace().Tail(kTraceLines);
  ++broken_[static_cast<std::size_t>(rule)];
  if (violations_.size() < kKeptViolations)
    violations_.push_back({rule, world_.now(), std::move(text)});
}

// True if the ids may be added to the owner's.
bool Checker::CheckUnique(int owner, int tag, Range ids) {
  bool fresh = true;
  for (int other = 0; other <= servers_; ++other) {
    const std::optional<Range> twice = Of(other, tag).issued.Overlap(ids);
    if (!twice) continue;
    if (other == owner) fresh = false;
    const bool excused =
        regressed(tag) && (other != owner || Of(owner, tag).forgot || owner == servers_);
    if (excused) {
      excused_ += static_cast<std::uint64_t>(twice->size());
      continue;
    }
    Fail(Rule::kUnique, "t" + std::to_string(tag) + " " + Text(*twice) + " issued by server " +
                            std::to_string(other) + " and again by server " +
                            std::to_string(owner));
  }
  return fresh;
}

void Checker::Issued(int server, int tag, const Ranges& ids) {
  PerServer& own = Of(server, tag);
  for (const Range& piece : ids) {
    if (piece.empty()) {
      Fail(Rule::kAnswer, "t" + std::to_string(tag) + " an empty piece " + Text(piece));
      continue;
    }
    ids_ += static_cast<std::uint64_t>(piece.size());
    if (piece.first < own.mark) {
      Fail(Rule::kMemory, "t" + std::to_string(tag) + " server " + std::to_string(server) +
                              " started with the mark " + std::to_string(own.mark) +
                              " and issued " + Text(piece));
    }
    if (CheckUnique(server, tag, piece)) own.issued.Insert(piece);
  }
}

void Checker::Answered(int server, int tag, const Ranges& ids, std::int64_t floor) {
  ++answers_;
  PerServer& own = Of(server, tag);
  const bool excused = regressed(tag) && own.forgot;
  std::int64_t last = floor;
  for (const Range& piece : ids) {
    if (piece.first <= last && !excused) {
      Fail(Rule::kOrder, "t" + std::to_string(tag) + " server " + std::to_string(server) +
                             " answered " + Text(piece) + " after " + std::to_string(last));
    }
    last = std::max(last, piece.last - 1);
  }
  own.answered = std::max(own.answered, last);
}

void Checker::Foreign(int tag, Range ids) {
  if (CheckUnique(servers_, tag, ids)) Of(servers_, tag).issued.Insert(ids);
}

void Checker::HandedBack(int server, int tag, Range ids) {
  if (regressed(tag)) return;
  for (int other = 0; other <= servers_; ++other) {
    if (const std::optional<Range> issued = Of(other, tag).issued.Overlap(ids)) {
      Fail(Rule::kUnique, "t" + std::to_string(tag) + " " + Text(*issued) + " issued by server " +
                              std::to_string(other) + " and handed back by server " +
                              std::to_string(server));
    }
  }
}

void Checker::Remembers(int server, int tag, std::int64_t mark) { Of(server, tag).mark = mark; }

}  // namespace leaf::sim
