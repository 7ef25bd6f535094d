// Several reactors on one tag, a store that is slow, forgetful and late, and a clock that runs:
// no id twice, rising ids in each thread, and in real time across threads.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "core/segment/engine_test_support.h"

namespace leaf::test {
namespace {

/// A reactor's loop: runs what is posted to it.
class Loop final : public Executor {
 public:
  void Post(Task& task) noexcept override {
    // Notified under the lock: the reactor may end as soon as it has seen the task.
    const std::lock_guard lock(mu_);
    tasks_.push_back(&task);
    ready_.notify_one();
  }
  void RunOne() {
    Task* task = nullptr;
    {
      std::unique_lock lock(mu_);
      ready_.wait(lock, [this] { return !tasks_.empty(); });
      task = tasks_.front();
      tasks_.pop_front();
    }
    task->Run();
  }

 private:
  std::mutex mu_;
  std::condition_variable ready_;
  std::deque<Task*> tasks_;
};

/// Grants from one row on a thread of its own, after a while; some answers are lost, some come
/// late.
class UnsteadyStore final : public SegmentStore {
 public:
  UnsteadyStore(std::int64_t step, std::uint64_t seed) : step_(step), random_(seed) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~UnsteadyStore() override { Stop(); }
  void Stop() {
    {
      const std::lock_guard lock(mu_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void Reserve(std::span<const Ask> asks, GrantSink& sink) override {
    const std::lock_guard lock(mu_);
    sink_ = &sink;
    asks_.insert(asks_.end(), asks.begin(), asks.end());
    changed_.notify_one();
  }
  void Find(std::string tag, Instant, Done<std::optional<Row>> done) override {
    done(std::optional<Row>(Row{tag, row_.load(), step_, ""}));
  }
  void List(std::string after, int, Instant, Done<std::vector<Row>> done) override {
    std::vector<Row> rows;
    if (after.empty()) rows.push_back(Row{"order", row_.load(), step_, ""});
    done(std::move(rows));
  }
  void Create(std::string, std::int64_t, std::int64_t, Instant, Done<Row> done) override {
    done(Error{});
  }
  void SetStep(std::string, std::int64_t, Instant, Done<Row> done) override { done(Error{}); }
  void Delete(std::string, Instant, Done<Row> done) override { done(Error{}); }
  void Raise(std::string, std::int64_t, std::int64_t, Instant, Done<std::int64_t> done) override {
    done(Error{});
  }
  void HandBack(std::string, Range tail, std::uint64_t, Instant, Done<bool> done) override {
    std::int64_t expected = tail.last;
    done(row_.compare_exchange_strong(expected, tail.first));
  }
  StoreStatus Status() const override { return {}; }
  void Abort() noexcept override {}

  std::int64_t row() const { return row_; }

 private:
  void Serve() {
    std::deque<Grant> late;
    for (;;) {
      Ask ask;
      {
        std::unique_lock lock(mu_);
        changed_.wait_for(lock, std::chrono::milliseconds(5),
                          [this] { return stopping_ || !asks_.empty(); });
        if (stopping_) return;
        if (asks_.empty()) continue;
        ask = asks_.front();
        asks_.pop_front();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random_.Below(300)));
      Grant grant;
      grant.flight = ask.flight;
      const std::uint64_t fate = random_.Below(100);
      const std::int64_t first = row_.fetch_add(ask.count);
      grant.outcome = fate < 4 ? Outcome::kUnknown : Outcome::kGranted;
      if (fate < 4) grant.error = {Code::kUnavailable, "lost"};
      grant.range = {first, first + ask.count};
      if (fate == 99) {
        late.push_back(grant);  // past its deadline
      } else {
        sink_->OnGrant(grant);
      }
      if (late.size() > 1) {
        sink_->OnGrant(late.front());
        late.pop_front();
      }
    }
  }

  const std::int64_t step_;
  SeededRandom random_;
  std::atomic<std::int64_t> row_{1};
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Ask> asks_;
  GrantSink* sink_ = nullptr;
  bool stopping_ = false;
  std::thread thread_;
};

class LockedRandom final : public Random {
 public:
  std::uint64_t Next() noexcept override {
    const std::lock_guard lock(mu_);
    return random_.Next();
  }

 private:
  std::mutex mu_;
  SeededRandom random_{7};
};

struct Taken {
  std::int64_t began, ended;  // of one global counter: before the request, after the answer
  Range ids;
};

class StressTest : public testing::TestWithParam<std::int64_t> {};

/// Takes ids for a while and notes when.
void Reactor(Engine& engine, std::uint64_t seed, std::atomic<std::int64_t>& order,
             const std::atomic<bool>& stop, std::vector<Taken>& log, std::atomic<int>& failed) {
  SeededRandom random(seed);
  Loop loop;
  const auto reader = engine.AddReader();
  reader->Online();
  while (!stop.load(std::memory_order_relaxed)) {
    TestWaiter waiter(loop, 1, random.Below(4) == 0);
    if (random.Below(3) == 0) waiter.count = 1 + static_cast<std::int64_t>(random.Below(40));
    if (random.Below(500) == 0) waiter.count = 5000;
    Result<Ranges> out = Ranges{};
    const std::int64_t began = order.fetch_add(1);
    Range range;
    Tag* tag = engine.Find(*reader, "order");
    if (tag != nullptr && engine.TryTake(*reader, *tag, waiter.count, range)) {
      out->at[0] = range;
      out->size = 1;
    } else if (!engine.TakeOrPark("order", waiter, SystemClock().Now(), out)) {
      if (random.Below(20) == 0 && engine.Cancel(waiter)) continue;
      reader->Offline();
      while (waiter.runs == 0) loop.RunOne();
      reader->Online();
      out = waiter.result;
    }
    reader->Quiesce();
    const std::int64_t ended = order.fetch_add(1);
    if (!out.ok()) {
      ++failed;
      continue;
    }
    EXPECT_EQ(out->count(), waiter.count);
    for (const Range& ids : *out) log.push_back({began, ended, ids});
  }
}

void CheckHistories(const std::vector<std::vector<Taken>>& logs) {
  std::vector<Taken> all;
  for (const auto& log : logs) {
    for (std::size_t i = 1; i < log.size(); ++i) {
      ASSERT_GE(log[i].ids.first, log[i - 1].ids.last) << "ids fall within a thread";
    }
    all.insert(all.end(), log.begin(), log.end());
  }
  std::sort(all.begin(), all.end(),
            [](const Taken& a, const Taken& b) { return a.ids.first < b.ids.first; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    ASSERT_GE(all[i].ids.first, all[i - 1].ids.last) << "an id was given twice";
  }
  // Going up the ids, no answer may have been sent before a request for lower ids began: so no
  // request may begin after one with larger ids has ended.
  std::int64_t earliest_end_above = INT64_MAX;
  for (std::size_t i = all.size(); i-- > 0;) {
    ASSERT_LE(all[i].began, earliest_end_above) << "a later request got smaller ids";
    earliest_end_above = std::min(earliest_end_above, all[i].ended);
  }
}

TEST_P(StressTest, NoIdTwiceAndNeverBack) {
  constexpr std::uint64_t kSeed = 20240607;
  std::printf("seed %llu, step %lld\n", static_cast<unsigned long long>(kSeed),
              static_cast<long long>(GetParam()));
  EngineOptions options;
  options.store_timeout = milliseconds(20);
  options.backoff_min = milliseconds(1);
  options.backoff_max = milliseconds(10);
  options.refresh = milliseconds(50);
  UnsteadyStore store(GetParam(), kSeed);
  MemoryJournal journal;
  LockedRandom random;
  const auto policy = MakeFixedPolicy();
  Engine engine(options, store, journal, *policy, SystemClock(), random);
  ASSERT_TRUE(engine.Load().ok());

  std::atomic<bool> stop{false}, stop_ticking{false}, closed{false};
  std::thread ticker([&] {
    while (!stop_ticking) {
      engine.Tick(SystemClock().Now());
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  std::atomic<std::int64_t> order{0};
  std::atomic<int> failed{0};
  std::vector<std::vector<Taken>> logs(4);
  std::vector<std::thread> reactors;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    reactors.emplace_back(Reactor, std::ref(engine), kSeed + i + 1, std::ref(order),
                          std::cref(stop), std::ref(logs[i]), std::ref(failed));
  }
  const Instant end = SystemClock().Now() + milliseconds(900);
  while (SystemClock().Now() < end) {
    (void)engine.Sum();
    (void)engine.View("order");
    std::this_thread::sleep_for(milliseconds(2));
  }
  stop = true;
  for (std::thread& reactor : reactors) reactor.join();

  const auto view = engine.View("order");
  ASSERT_TRUE(view.has_value());
  std::uint64_t taken = 0;
  for (const auto& log : logs) {
    for (const Taken& t : log) taken += static_cast<std::uint64_t>(t.ids.size());
  }
  EXPECT_EQ(view->issued, taken) << "exact totals";
  engine.Close([&] { closed = true; });
  const Instant patience = SystemClock().Now() + seconds(5);
  while (!closed && SystemClock().Now() < patience) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(closed);
  stop_ticking = true;
  ticker.join();
  store.Stop();

  EXPECT_EQ(failed, 0);
  EXPECT_GT(taken, 1000U) << "too little load for a verdict";
  CheckHistories(logs);
}

INSTANTIATE_TEST_SUITE_P(Steps, StressTest, testing::Values(1, 7, 1000));

}  // namespace
}  // namespace leaf::test
