// What the keeper tells people: why nothing is minted, and the picture for status and metrics.

#include <string>

#include "base/iso_time.h"
#include "core/snowflake/millis.h"
#include "core/snowflake/right_keeper.h"

namespace leaf {
std::string RightKeeper::Trouble(Instant now) const {
  const MutexLock lock(mu_);
  const std::int64_t time = wall_.Millis(now);
  const Layout& layout = options_.layout;
  if (closing_) return "this server is stopping";
  if (time >= layout.end_ms()) return "the layout ended at " + IsoTime(layout.end_ms());
  if (!right_) return trouble_.empty() ? "no worker was claimed yet" : trouble_;
  if (!opened_)
    return trouble_.empty() ? "the journal of the worker's right is being written" : trouble_;
  const std::int64_t minted = layout.MillisOf(generator_.last_tick());
  if (minted > time + ToMillis(options_.drift)) {
    std::string text = "the clock is behind: ids were minted up to " + IsoTime(minted) +
                       " and it says " + IsoTime(time) + "; ids go on when it has caught up";
    if (order_floor_ > time + ToMillis(options_.drift)) {
      text +=
          ". If it was wrong before the restart, give up the order of ids by removing the file "
          "snowflake-order from the state folder and start again";
    }
    if (traits_.bound && !traits_.foreign_writers &&
        right_->floor_ms > time + ToMillis(options_.drift)) {
      text += ". Worker " + std::to_string(right_->worker) + " may be used up to " +
              IsoTime(right_->floor_ms) +
              ": if the clock was wrong before the restart, give this server another one";
    }
    return text;
  }
  if (EffectiveLimit() <= std::max(time, minted)) {
    std::string why = trouble_;
    const std::int64_t ahead = wall_.ahead_of_registry_ms().value_or(0);
    if (why.empty() && ahead > kClockToleranceMs) {
      why = "clock_ahead: this host's clock is " + std::to_string(ahead / 1000) +
            " s ahead of the registry's; set the one that is wrong";
    }
    return "the right to mint as worker " + std::to_string(right_->worker) + " ended at " +
           IsoTime(EffectiveLimit()) + " and was not extended" + (why.empty() ? "" : ": ") + why;
  }
  return "";
}

void RightKeeper::Fill(SnowflakeView& view, Instant now) const {
  view.reason = Trouble(now);
  const MutexLock lock(mu_);
  view.serving = view.reason.empty();
  view.now_ms = wall_.Millis(now);
  view.end_ms = options_.layout.end_ms();
  if (view.serving && wall_.doubt_ms() != 0) {
    view.reason = "the wall clock stepped by " + std::to_string(wall_.doubt_ms()) +
                  " ms and is not followed: " +
                  (wall_.registry_has_clock() ? "the registry's clock contradicts it"
                                              : "it has to stand for one lease first");
  } else if (view.serving && view.now_ms >= view.end_ms - kTenYearsMs) {
    view.reason = "the layout ends within ten years, at " + IsoTime(view.end_ms);
  } else if (view.serving && !trouble_.empty()) {
    view.reason = trouble_;
  }
  if (right_) {
    view.worker = right_->worker;
    view.generation = right_->generation;
    view.limit_ms = right_->limit_ms;
  }
  view.owner = owner_;
  view.identity = options_.identity;
  view.layout = LayoutText(options_.layout);
  if (opened_) view.last_ms = options_.layout.MillisOf(generator_.last_tick());
  view.wall_offset_ms = wall_seen_ == 0 ? 0 : ports_.clock.WallMillis() - view.now_ms;
  view.registry_offset_ms = wall_.ahead_of_registry_ms();
  view.steps_back = wall_.steps_back();
  view.steps_forward = wall_.steps_forward();
  view.claims = claims_;
  view.extensions = extensions_;
  view.failures = failures_;
  view.losses = losses_;
  view.free_workers = free_workers_;
}

}  // namespace leaf
