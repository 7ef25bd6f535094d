#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/segment/marks.h"
#include "sim_random.h"

namespace leaf::sim {

/// A journal that outlives its server's processes. What was recorded since the last flush is lost
/// by a crash, save for a first part of it. Confined.
class SimJournal final : public MarkJournal {
 public:
  Result<std::vector<Entry>> Load() override {
    open_ = true;
    std::vector<Entry> entries;
    for (const auto& [tag, mark] : durable_) entries.push_back({tag, mark});
    return entries;
  }
  void Record(std::string_view tag, const Mark& mark) override {
    if (open_) pending_.push_back({std::string(tag), mark});
  }
  Result<void> Sync() override {
    if (fail_sync_) return Error{Code::kUnavailable, "the journal's disk is full"};
    Flush();
    return {};
  }
  void Flush() {
    for (Entry& entry : pending_) durable_[entry.tag] = entry.mark;
    pending_.clear();
  }

  /// The process ended. The tags of which something recorded is lost.
  std::vector<std::string> End(SimRandom& random) {
    open_ = false;
    const auto kept = static_cast<std::size_t>(random.Below(pending_.size() + 1));
    std::vector<std::string> lost;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (i < kept) {
        durable_[pending_[i].tag] = pending_[i].mark;
      } else {
        lost.push_back(pending_[i].tag);
      }
    }
    pending_.clear();
    return lost;
  }

  /// The state folder is wiped.
  void Wipe() { durable_.clear(); }
  void FailSync(bool fail) { fail_sync_ = fail; }
  bool fails_sync() const noexcept { return fail_sync_; }
  const std::map<std::string, Mark>& durable() const noexcept { return durable_; }

 private:
  bool open_ = false;
  bool fail_sync_ = false;
  std::vector<Entry> pending_;
  std::map<std::string, Mark> durable_;
};

}  // namespace leaf::sim
