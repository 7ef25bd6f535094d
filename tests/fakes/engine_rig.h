#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "base/random.h"
#include "base/time.h"
#include "core/segment/engine.h"

namespace leaf::fakes {

/// A clock that stands until it is moved. Confined to its test.
class StandingClock final : public Clock {
 public:
  Instant Now() const noexcept override { return now; }
  std::int64_t WallMillis() const noexcept override { return wall_ms; }
  Instant now = Instant(std::chrono::hours(1));
  std::int64_t wall_ms = 1796071566670;
};

class CountingRandom final : public Random {
 public:
  std::uint64_t Next() noexcept override { return next_++; }

 private:
  std::uint64_t next_ = 1;
};

class NoJournal final : public MarkJournal {
 public:
  Result<std::vector<Entry>> Load() override { return std::vector<Entry>{}; }
  void Record(std::string_view, const Mark&) override {}
  Result<void> Sync() override { return {}; }
};

/// A table in memory. Calls wait in a queue until Run, so that a test decides when they are
/// answered. Confined to its test.
class MapStore final : public SegmentStore {
 public:
  std::map<std::string, Row> rows;
  StoreStatus status;
  std::string down;     ///< not empty: every call fails with it
  bool silent = false;  ///< calls are dropped with their callbacks
  int lists = 0;

  MapStore() {
    status.kind = "map";
    status.up = true;
    status.durability = Durability::kPower;
    status.identity = "one";
  }
  void Put(const std::string& tag, std::int64_t max_id, std::int64_t step) {
    rows[tag] = {tag, max_id, step, "2026-11-30 20:45:31"};
  }
  void GoDown(std::string why) {
    status.up = false;
    status.last_error = down = std::move(why);
  }
  /// Answers what was asked, and what is asked meanwhile. False: there was nothing.
  bool Run() {
    if (queue_.empty()) return false;
    while (!queue_.empty()) {
      const auto call = std::move(queue_.front());
      queue_.pop_front();
      call();
    }
    return true;
  }

  void Reserve(std::span<const Ask> asks, GrantSink& sink) override {
    for (const Ask& ask : asks) {
      queue_.push_back([this, ask, &sink] { sink.OnGrant(GrantFor(ask)); });
    }
  }
  void Find(std::string tag, Instant, Done<std::optional<Row>> done) override {
    Queue<std::optional<Row>>(std::move(done), [this, tag]() -> std::optional<Row> {
      const auto at = rows.find(tag);
      return at == rows.end() ? std::nullopt : std::optional(at->second);
    });
  }
  void List(std::string after, int limit, Instant, Done<std::vector<Row>> done) override {
    ++lists;
    Queue<std::vector<Row>>(std::move(done), [this, after, limit] {
      std::vector<Row> page;
      for (auto at = rows.upper_bound(after);
           at != rows.end() && page.size() < static_cast<std::size_t>(limit); ++at) {
        page.push_back(at->second);
      }
      return page;
    });
  }
  void Create(std::string tag, std::int64_t step, std::int64_t max_id, Instant,
              Done<Row> done) override {
    Queue<Row>(std::move(done), [this, tag, step, max_id]() -> Result<Row> {
      if (rows.contains(tag)) return Error{Code::kConflict, "exists"};
      Put(tag, max_id, step);
      return rows[tag];
    });
  }
  void SetStep(std::string tag, std::int64_t step, Instant, Done<Row> done) override {
    Queue<Row>(std::move(done), [this, tag, step]() -> Result<Row> {
      if (!rows.contains(tag)) return Error{Code::kNotFound, "no such row"};
      rows[tag].step = step;
      return rows[tag];
    });
  }
  void Delete(std::string tag, Instant, Done<Row> done) override {
    Queue<Row>(std::move(done), [this, tag]() -> Result<Row> {
      if (!rows.contains(tag)) return Error{Code::kNotFound, "no such row"};
      const Row row = rows[tag];
      rows.erase(tag);
      return row;
    });
  }
  void Raise(std::string tag, std::int64_t not_below, std::int64_t add, Instant,
             Done<std::int64_t> done) override {
    Queue<std::int64_t>(std::move(done), [this, tag, not_below, add]() -> Result<std::int64_t> {
      if (!rows.contains(tag)) return Error{Code::kNotFound, "no such row"};
      return rows[tag].max_id = std::max(rows[tag].max_id, not_below) + add;
    });
  }
  void HandBack(std::string tag, Range tail, std::uint64_t, Instant, Done<bool> done) override {
    Queue<bool>(std::move(done), [this, tag, tail] {
      const bool there = rows.contains(tag) && rows[tag].max_id == tail.last;
      if (there) rows[tag].max_id = tail.first;
      return there;
    });
  }
  StoreStatus Status() const override { return status; }
  void Abort() noexcept override {}

 private:
  template <typename T, typename Work>
  void Queue(Done<T> done, Work work) {
    if (silent) return;
    queue_.push_back([this, done = std::move(done), work = std::move(work)] {
      done(down.empty() ? Result<T>(work()) : Result<T>(Error{Code::kUnavailable, down}));
    });
  }
  Grant GrantFor(const Ask& ask) {
    Grant grant;
    grant.flight = ask.flight;
    grant.outcome = Outcome::kRefused;
    grant.store_id = 1;
    const auto at = rows.find(std::string(ask.tag));
    if (!down.empty()) {
      grant.error = {Code::kUnavailable, down};
    } else if (at == rows.end()) {
      grant.error = {Code::kNotFound, "no such row"};
    } else {
      grant.outcome = Outcome::kGranted;
      grant.range = {at->second.max_id, at->second.max_id + ask.count};
      grant.row_step = at->second.step;
      at->second.max_id += ask.count;
    }
    return grant;
  }

  std::deque<std::function<void()>> queue_;
};

/// Runs what is posted when it is told to.
class QueueExecutor final : public Executor {
 public:
  void Post(Task& task) noexcept override { tasks_.push_back(&task); }
  bool Run() {
    if (tasks_.empty()) return false;
    while (!tasks_.empty()) {
      Task* task = tasks_.front();
      tasks_.pop_front();
      task->Run();
    }
    return true;
  }

 private:
  std::deque<Task*> tasks_;
};

/// The real engine over a MapStore. Confined to its test.
struct EngineRig {
  StandingClock clock;
  MapStore store;
  NoJournal journal;
  CountingRandom random;
  std::unique_ptr<RefillPolicy> policy = MakeFixedPolicy();
  Engine engine{EngineOptions{}, store, journal, *policy, clock, random};
  QueueExecutor home;

  EngineRig() {
    EXPECT_TRUE(engine.Load().ok());
    Settle();
  }

  /// Lets timers, store and posted tasks run until nothing happens any more.
  void Settle() {
    for (int round = 0; round < 20; ++round) {
      engine.Tick(clock.now);
      const bool stored = store.Run();
      const bool ran = home.Run();
      if (!stored && !ran && round > 1) return;
    }
  }
  void Advance(Duration step) {
    clock.now += step;
    clock.wall_ms += std::chrono::duration_cast<std::chrono::milliseconds>(step).count();
    Settle();
  }
};

}  // namespace leaf::fakes
