#include "core/segment/tag_list.h"

#include <algorithm>
#include <utility>

#include "core/segment/backoff.h"

namespace leaf {

TagList::TagList(const EngineOptions& options, SegmentStore& store, StoreCalls& calls,
                 Agenda& agenda, Clock& clock, Random& random, Host& host)
    : options_(options),
      store_(store),
      calls_(calls),
      agenda_(agenda),
      clock_(clock),
      random_(random),
      host_(host) {}

std::string TagList::last_error() const {
  MutexLock lock(mu_);
  return last_error_;
}

void TagList::Close() {
  MutexLock lock(mu_);
  closed_ = true;
}

Instant TagList::Tick(Instant now) {
  std::string after;
  {
    MutexLock lock(mu_);
    if (closed_ || calling_) return kNever;
    if (next_at_ > now) return next_at_;
    if (!in_pass_) {
      in_pass_ = true;
      began_ = now;
      pages_ = 0;
      after_.clear();
      pass_.fetch_add(1, std::memory_order_relaxed);
    }
    calling_ = true;
    after = after_;
  }
  Ask(std::move(after));
  return kNever;
}

void TagList::Ask(std::string after) {
  const Instant deadline = clock_.Now() + options_.store_timeout;
  Done<std::vector<Row>> done = [this, after](Result<std::vector<Row>> rows) {
    Page(after, std::move(rows));
  };
  store_.List(std::move(after), options_.list_page, deadline,
              calls_.Bound<std::vector<Row>>(deadline, std::move(done)));
}

void TagList::Page(const std::string& after, Result<std::vector<Row>> rows) {
  const Instant now = clock_.Now();
  if (!rows.ok()) return Failed(rows.error(), now);
  // A page that does not move on would be read for ever.
  if (!rows->empty() && rows->back().tag == after) {
    return Failed({Code::kUnavailable, "the store's tag list does not move on"}, now);
  }
  for (const Row& row : *rows) {
    if (!row.tag.empty()) host_.Know(row);
  }
  Turned(*rows, now);
}

void TagList::Failed(const Error& error, Instant now) {
  Instant next = kNever;
  {
    MutexLock lock(mu_);
    calling_ = false;
    last_error_ = error.message;
    ++failures_;
    next = now + Backoff(failures_, options_.backoff_min, options_.backoff_max, random_);
    next_at_ = next;
  }
  agenda_.Need(next);
}

void TagList::Turned(const std::vector<Row>& rows, Instant now) {
  const bool ended = rows.size() < static_cast<std::size_t>(options_.list_page);
  if (ended) {
    // Before the next pass can begin, whose number would be another one.
    host_.ForgetUnseen(pass());
    complete_.store(true, std::memory_order_relaxed);
  }
  Instant next = kNever;
  {
    MutexLock lock(mu_);
    calling_ = false;
    failures_ = 0;
    last_error_.clear();
    ++pages_;
    // The first pass does not wait between its pages; each later pass is as long as the interval.
    const Duration pause =
        last_pages_ == 0 ? Duration::zero() : options_.refresh / std::max(last_pages_, pages_);
    if (ended) {
      in_pass_ = false;
      last_pages_ = pages_;
      next = std::max(now, began_ + options_.refresh);
    } else {
      after_ = rows.back().tag;
      next = now + pause;
    }
    next_at_ = next;
  }
  agenda_.Need(next);
}

}  // namespace leaf
