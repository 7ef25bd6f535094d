// The journal of a right that is bound to this server: written close behind what is minted, and
// spent or disowned when nothing of the right may be carried on with.

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "core/segment/backoff.h"
#include "core/snowflake/millis.h"
#include "core/snowflake/right_keeper.h"

namespace leaf {
namespace {

/// The journal's limit runs so far ahead of the clock, and is written again with so much left.
/// Where ids run ahead of the clock already it keeps closer to them: each restart begins at it, and
/// many in a row must not push the time away from the clock.
constexpr std::int64_t kJournalAheadMs = 3000, kJournalLeftMs = 2000;
constexpr std::int64_t kJournalNearMs = 300, kJournalNearLeftMs = 150;

}  // namespace

bool RightKeeper::SaveDue(Instant now) const {
  if (!traits_.bound || !right_ || saving_ || closing_ || now < next_save_) return false;
  if (!journal_ || journal_->generation != right_->generation || journal_->owner != right_->owner ||
      journal_->limit_ms != right_->limit_ms) {
    return true;
  }
  const std::int64_t front = Front(now);
  const bool near = front > wall_.Millis(now) + kJournalAheadMs - kJournalLeftMs;
  return journal_->short_ms < right_->limit_ms &&
         journal_->short_ms - front <= (near ? kJournalNearLeftMs : kJournalLeftMs);
}

/// One write at a time; the answer of one that is overtaken is dropped by its number.
void RightKeeper::Write(const RightRecord& record, Effects& effects) {
  saving_ = true;
  effects.emplace_back([this, number = ++save_number_, record] {
    ports_.journal->Save(record, [this, number, record](const Result<bool>& result) {
      OnSaved(number, record, result);
    });
  });
}

void RightKeeper::StartSave(Instant now, Effects& effects) {
  RightRecord record;
  record.worker = right_->worker;
  record.generation = right_->generation;
  record.owner = right_->owner;
  record.limit_ms = right_->limit_ms;
  const std::int64_t time = wall_.Millis(now);
  record.short_ms = std::max(time + kJournalAheadMs, Front(now) + kJournalNearMs);
  if (right_->floor_ms > time + ToMillis(options_.drift)) {
    record.short_ms = right_->floor_ms;  // nothing can be minted yet
  } else {
    record.short_ms = std::max(record.short_ms, right_->floor_ms + kJournalNearMs);
  }
  record.short_ms = std::min(record.short_ms, right_->limit_ms);
  // The same right again: what was allowed once stays allowed.
  if (journal_ && opened_)
    record.short_ms = std::max(record.short_ms, std::min(journal_->short_ms, record.limit_ms));
  Write(record, effects);
}

/// Whoever asks the registry after a Lower begins at what it says, also if its answer was lost: so
/// before it is sent the journal says that the right is not to be carried on with.
void RightKeeper::StartSpend(Effects& effects) {
  spent_ = true;
  RightRecord spent{right_->worker,
                    right_->generation,
                    right_->owner,
                    right_->limit_ms,
                    journal_ ? journal_->short_ms : right_->limit_ms,
                    true};
  Write(spent, effects);
}

/// The registry has spoken, and the record is another's: what the journal says proves nothing any
/// more, also not after a restart with the registry away.
void RightKeeper::Disown(Effects& effects) {
  if (!traits_.bound || !journal_ || journal_->limit_ms == 0) return;
  journal_->limit_ms = journal_->short_ms = 0;
  Write(*journal_, effects);
}

void RightKeeper::OnSaved(std::uint64_t number, const RightRecord& record,
                          const Result<bool>& result) {
  const Instant now = ports_.clock.Now();
  Effects effects;
  {
    const MutexLock lock(mu_);
    if (number != save_number_ || finished_) return;
    saving_ = false;
    if (spent_ && call_ == Call::kNone && !result.ok()) {
      Finish(effects);  // not lowered: the journal on the disk may still be carried on with
    } else if (closing_ && call_ == Call::kLower) {
      call_ = Call::kNone;
      Finish(effects);
    } else if (!result.ok()) {
      if (save_failures_++ == 0) {
        log::Warn("the journal of the worker's right cannot be written",
                  {{"reason", result.error().message}});
      }
      trouble_ = result.error().message;
      next_save_ = now + Backoff(save_failures_, kBackoffMin, kBackoffMax, ports_.random);
    } else if (right_ && !closing_) {
      save_failures_ = 0;
      const bool new_right = !opened_ || !journal_ || journal_->owner != record.owner;
      journal_ = record;
      if (record.generation == right_->generation && record.owner == right_->owner) {
        if (new_right && !provisional_) {
          Open();
        } else {
          Apply();
        }
      }
    }
  }
  Run(effects);
  changed_();
}

}  // namespace leaf
