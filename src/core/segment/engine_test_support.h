#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/segment/engine.h"

namespace leaf::test {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ManualClock final : public Clock {
 public:
  Instant Now() const noexcept override {
    if (auto other_thread = std::exchange(meanwhile, nullptr)) other_thread();
    return now;
  }
  std::int64_t WallMillis() const noexcept override { return 0; }

  Instant now = Instant(seconds(1000));
  mutable std::function<void()> meanwhile;  ///< happens while the time is read next
};

/// The same numbers in each run.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() noexcept override {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

class MemoryJournal final : public MarkJournal {
 public:
  Result<std::vector<Entry>> Load() override {
    std::vector<Entry> entries;
    for (const auto& [tag, mark] : marks) entries.push_back({tag, mark});
    return entries;
  }
  void Record(std::string_view tag, const Mark& mark) override { marks[std::string(tag)] = mark; }
  Result<void> Sync() override {
    ++syncs;
    if (sync_error) return *sync_error;
    return {};
  }

  std::map<std::string, Mark> marks;
  int syncs = 0;
  std::optional<Error> sync_error;
};

/// Tasks run when the test says so.
class TaskQueue final : public Executor {
 public:
  void Post(Task& task) noexcept override { tasks_.push_back(&task); }
  void RunAll() {
    while (!tasks_.empty()) {
      Task* task = tasks_.front();
      tasks_.pop_front();
      task->Run();
    }
  }

 private:
  std::deque<Task*> tasks_;
};

class TestWaiter final : public Waiter {
 public:
  TestWaiter(Executor& executor, std::int64_t n, bool whole_piece) : Waiter(executor) {
    count = n;
    one_piece = whole_piece;
  }
  void Run() override { ++runs; }

  int runs = 0;
};

/// A table in memory whose answers a test can hold back, refuse or lose. Confined to one thread.
class ScriptedStore final : public SegmentStore {
 public:
  void AddRow(const std::string& tag, std::int64_t max_id, std::int64_t step) {
    rows[tag] = Row{tag, max_id, step, ""};
  }

  void Reserve(std::span<const Ask> asks, GrantSink& sink) override {
    batches.push_back(asks.size());
    sink_ = &sink;
    for (const Ask& ask : asks) {
      asked.push_back(ask);
      pending.push_back(ask);
    }
    if (grant_at_once) GrantAll();
  }
  void GrantAll() {
    while (!pending.empty()) GrantNext();
  }
  /// Answers the oldest ask as a sound store would, or with `fault`.
  void GrantNext() {
    const Ask ask = Pop();
    sink_->OnGrant(Carry(ask));
  }
  /// What the store would say; the row has moved.
  Grant Carry(const Ask& ask) {
    Grant grant;
    grant.flight = ask.flight;
    grant.store_id = store_id;
    grant.store_turn = store_turn;
    grant.outcome = Outcome::kRefused;
    const auto it = rows.find(std::string(ask.tag));
    if (fault) {
      grant.error = *fault;
    } else if (it == rows.end()) {
      grant.error = {Code::kNotFound, "no row"};
    } else if (it->second.step <= 0) {
      grant.error = {Code::kUnavailable, "the row's step is not above 0"};
    } else if (it->second.max_id > kMaxEnd - ask.count) {
      grant.error = {Code::kExhausted, "the end of 2^63"};
    } else {
      grant.outcome = Outcome::kGranted;
      grant.range = {it->second.max_id, it->second.max_id + ask.count};
      grant.row_step = it->second.step;
      it->second.max_id += ask.count;
    }
    return grant;
  }
  void Answer(const Grant& grant) { sink_->OnGrant(grant); }
  Ask Pop() {
    const Ask ask = pending.front();
    pending.pop_front();
    return ask;
  }

  void Find(std::string tag, Instant, Done<std::optional<Row>> done) override {
    ++finds;
    Reply<std::optional<Row>>(std::move(done), [this, tag]() -> Result<std::optional<Row>> {
      const auto it = rows.find(tag);
      return it == rows.end() ? std::optional<Row>() : std::optional<Row>(it->second);
    });
  }
  void List(std::string after, int limit, Instant, Done<std::vector<Row>> done) override {
    ++lists;
    Reply<std::vector<Row>>(std::move(done), [this, after, limit]() -> Result<std::vector<Row>> {
      std::vector<Row> page;
      for (auto it = rows.upper_bound(after);
           it != rows.end() && page.size() < static_cast<std::size_t>(limit); ++it) {
        page.push_back(it->second);
      }
      return page;
    });
  }
  void Create(std::string tag, std::int64_t step, std::int64_t max_id, Instant,
              Done<Row> done) override {
    ++creates;
    Reply<Row>(std::move(done), [this, tag, step, max_id]() -> Result<Row> {
      const auto [it, made] = rows.try_emplace(tag, Row{tag, max_id, step, ""});
      if (!made) return Error{Code::kConflict, "it exists"};
      return it->second;
    });
  }
  void SetStep(std::string tag, std::int64_t step, Instant, Done<Row> done) override {
    Reply<Row>(std::move(done), [this, tag, step]() -> Result<Row> {
      const auto it = rows.find(tag);
      if (it == rows.end()) return Error{Code::kNotFound, "no row"};
      it->second.step = step;
      return it->second;
    });
  }
  void Delete(std::string tag, Instant, Done<Row> done) override {
    Reply<Row>(std::move(done), [this, tag]() -> Result<Row> {
      const auto it = rows.find(tag);
      if (it == rows.end()) return Error{Code::kNotFound, "no row"};
      const Row row = it->second;
      rows.erase(it);
      return row;
    });
  }
  void Raise(std::string tag, std::int64_t not_below, std::int64_t add, Instant,
             Done<std::int64_t> done) override {
    ++raises;
    Reply<std::int64_t>(std::move(done), [this, tag, not_below, add]() -> Result<std::int64_t> {
      const auto it = rows.find(tag);
      if (it == rows.end()) return Error{Code::kNotFound, "no row"};
      it->second.max_id = std::max(it->second.max_id, not_below) + add;
      return it->second.max_id;
    });
  }
  void HandBack(std::string tag, Range tail, std::uint64_t, Instant, Done<bool> done) override {
    handed_back.emplace_back(tag, tail);
    Reply<bool>(std::move(done), [this, tag, tail]() -> Result<bool> {
      const auto it = rows.find(tag);
      if (it == rows.end() || it->second.max_id != tail.last) return false;
      it->second.max_id = tail.first;
      return true;
    });
  }
  StoreStatus Status() const override { return {}; }
  void Abort() noexcept override {}

  /// Lets the calls that were held back happen and be answered.
  void AnswerHeld() {
    auto calls = std::exchange(held, {});
    for (const auto& call : calls) call();
  }

  std::map<std::string, Row> rows;
  bool grant_at_once = true;   ///< else asks wait in `pending`
  bool answer_at_once = true;  ///< else all other calls wait in `held`
  std::optional<Error> fault;  ///< every call is refused with it

  std::vector<Ask> asked;
  std::vector<std::size_t> batches;
  std::deque<Ask> pending;
  std::vector<std::function<void()>> held;
  std::vector<std::pair<std::string, Range>> handed_back;
  std::uint64_t store_id = 1;
  std::uint32_t store_turn = 0;
  int finds = 0, lists = 0, creates = 0, raises = 0;

 private:
  template <class T>
  void Reply(Done<T> done, std::function<Result<T>()> work) {
    auto call = [this, done = std::move(done), work = std::move(work)] {
      done(fault ? Result<T>(*fault) : work());
    };
    if (answer_at_once) {
      call();
    } else {
      held.push_back(std::move(call));
    }
  }

  GrantSink* sink_ = nullptr;
};

/// One engine on a scripted store, a manual clock and one thread.
class EngineTest : public testing::Test {
 protected:
  EngineTest() { options.auto_create = false; }
  ~EngineTest() override {
    reader.reset();
    engine.reset();
  }

  /// Starts (again) with the rows that the store has; the list is read.
  void Start() {
    reader.reset();
    engine.reset();
    store.pending.clear();
    store.held.clear();
    engine = std::make_unique<Engine>(options, store, journal, *policy, clock, random);
    ASSERT_TRUE(engine->Load().ok());
    reader = engine->AddReader();
    reader->Online();
    Advance(milliseconds(0));
  }

  /// Lets time pass, ticking whenever the engine asks for it.
  void Advance(Duration duration) {
    const Instant end = clock.now + duration;
    for (int turns = 0; turns < 1'000'000; ++turns) {
      const Instant next = engine->Tick(clock.now);
      tasks.RunAll();
      if (next > end) break;
      if (next > clock.now) clock.now = next;
    }
    clock.now = end;
    engine->Tick(clock.now);
    tasks.RunAll();
  }

  struct Request {
    std::unique_ptr<TestWaiter> waiter;
    bool parked = false;
    Result<Ranges> out = Ranges{};

    bool done() const { return !parked || waiter->runs == 1; }
    const Result<Ranges>& result() const { return parked ? waiter->result : out; }
  };

  /// A request as a reactor makes it: from memory first, else parked.
  Request Ask(const std::string& tag, std::int64_t n = 1, bool one_piece = false) {
    Request request{std::make_unique<TestWaiter>(tasks, n, one_piece), false, Ranges{}};
    Range range;
    Tag* known = engine->Find(*reader, tag);
    if (known != nullptr && engine->TryTake(*reader, *known, n, range)) {
      Ranges ids;
      ids.at[0] = range;
      ids.size = 1;
      request.out = ids;
    } else {
      request.parked = !engine->TakeOrPark(tag, *request.waiter, clock.now, request.out);
    }
    tasks.RunAll();
    return request;
  }

  /// The ids of a request that must be answered by now.
  std::vector<std::int64_t> Take(const std::string& tag, std::int64_t n = 1) {
    const Request request = Ask(tag, n);
    EXPECT_TRUE(request.done()) << tag << " still waits";
    if (!request.done()) {
      EXPECT_TRUE(engine->Cancel(*request.waiter));
      return {};
    }
    EXPECT_TRUE(request.result().ok()) << request.result().error().message;
    return request.result().ok() ? Ids(*request.result()) : std::vector<std::int64_t>{};
  }
  std::int64_t TakeOne(const std::string& tag) {
    const auto ids = Take(tag);
    return ids.empty() ? -1 : ids.front();
  }
  Code Refusal(const std::string& tag, std::int64_t n = 1) {
    const Request request = Ask(tag, n);
    EXPECT_TRUE(request.done()) << tag << " still waits";
    if (!request.done()) {
      EXPECT_TRUE(engine->Cancel(*request.waiter));
      return Code::kInternal;
    }
    EXPECT_FALSE(request.result().ok()) << "ids were given";
    return request.result().ok() ? Code::kInternal : request.result().error().code;
  }

  static std::vector<std::int64_t> Ids(const Ranges& ranges) {
    std::vector<std::int64_t> ids;
    for (const Range& range : ranges) {
      for (std::int64_t id = range.first; id < range.last; ++id) ids.push_back(id);
    }
    return ids;
  }
  TagView View(const std::string& tag) {
    const auto view = engine->View(tag);
    EXPECT_TRUE(view.has_value());
    return view.value_or(TagView{});
  }
  std::uint64_t Discarded(const std::string& tag, Discard reason) {
    return View(tag).discarded[static_cast<int>(reason)];
  }

  EngineOptions options;
  ManualClock clock;
  SeededRandom random{42};
  MemoryJournal journal;
  ScriptedStore store;
  TaskQueue tasks;
  std::unique_ptr<RefillPolicy> policy = MakeLeafPolicy();
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Reader> reader;
};

}  // namespace leaf::test
