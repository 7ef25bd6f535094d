#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/segment/engine_test_support.h"
#include "core/snowflake/snowflake_engine.h"

namespace leaf::test {

/// 2027-01-15T08:00:00Z, when each test begins.
inline constexpr std::int64_t kStart = 1'800'000'000'000;

class TwoClocks final : public Clock {
 public:
  Instant Now() const noexcept override { return now; }
  std::int64_t WallMillis() const noexcept override { return wall_ms; }

  Instant now = Instant(seconds(1000));
  std::int64_t wall_ms = kStart;
};

/// A registry whose answers the test gives. Confined to one thread.
class ScriptedRegistry final : public WorkerRegistry {
 public:
  enum class Kind { kClaim, kExtend, kLower };
  struct Call {
    Kind kind = Kind::kClaim;
    ClaimAsk ask;       ///< of a claim
    WorkerRight right;  ///< of the others
    std::int64_t limit_ms = 0;
    std::int64_t lease_ms = 0;
    Done<WorkerRight> done;
  };

  RegistryTraits traits() const noexcept override { return its_traits; }
  void Claim(ClaimAsk ask, Done<WorkerRight> done) override {
    Call call;
    call.ask = std::move(ask);
    call.done = std::move(done);
    calls.push_back(std::move(call));
  }
  void Extend(WorkerRight right, std::int64_t limit_ms, std::int64_t lease_ms, Instant,
              Done<WorkerRight> done) override {
    calls.push_back({Kind::kExtend, {}, std::move(right), limit_ms, lease_ms, std::move(done)});
  }
  void Lower(WorkerRight right, std::int64_t limit_ms, Instant, Done<WorkerRight> done) override {
    calls.push_back({Kind::kLower, {}, std::move(right), limit_ms, 0, std::move(done)});
  }
  void List(Instant, Done<std::vector<WorkerRecord>> done) override {
    done(std::vector<WorkerRecord>{Record(4)});
  }
  void Retire(std::int64_t worker, Instant, Done<WorkerRecord> done) override {
    done(Record(worker));
  }
  RegistryStatus Status() const override { return {}; }
  static WorkerRecord Record(std::int64_t worker) {
    WorkerRecord record;
    record.worker = worker;
    record.generation = 9;
    return record;
  }

  RegistryTraits its_traits;
  std::deque<Call> calls;
};

class ScriptedJournal final : public RightJournal {
 public:
  struct Write {
    RightRecord record;
    Done<bool> done;
  };
  Result<std::optional<Found>> Load() override { return found; }
  void Save(RightRecord record, Done<bool> done) override {
    writes.push_back({std::move(record), std::move(done)});
  }

  std::optional<Found> found;
  std::deque<Write> writes;
};

class MemoryOrder final : public OrderWord {
 public:
  std::optional<std::int64_t> Last() const override { return last; }
  std::atomic<std::int64_t>& word() noexcept override { return its_word; }

  std::optional<std::int64_t> last;
  std::atomic<std::int64_t> its_word{0};
};

class OneHost final : public HostClaims {
 public:
  bool Take(std::int64_t worker) override {
    return !others.contains(worker) && held.insert(worker).second;
  }
  void Release(std::int64_t worker) noexcept override { held.erase(worker); }

  std::set<std::int64_t> others, held;
};

/// An engine, its scripted surroundings and the hands that move them.
class SnowflakeRig : public testing::Test {
 protected:
  using Kind = ScriptedRegistry::Kind;
  using Call = ScriptedRegistry::Call;

  SnowflakeRig() { options.identity = "10.0.0.1:8080"; }

  void Start() {
    engine = std::make_unique<SnowflakeEngine>(
        options, SnowflakeEngine::Ports{registry, &journal, &host, &order, clock, random});
    engine->SetWake([this] { ++wakes; });
    ASSERT_TRUE(engine->Load().ok());
    Tick();
  }
  void Tick() { due = engine->Tick(clock.now); }
  /// Both clocks go on.
  void Pass(Duration by) {
    clock.now += by;
    clock.wall_ms += std::chrono::duration_cast<milliseconds>(by).count();
    Tick();
  }
  /// The wall clock alone.
  void Step(std::int64_t ms) {
    clock.wall_ms += ms;
    Tick();
  }

  /// The oldest call that was not answered; fails the test if it is of another kind.
  Call Take(Kind kind) {
    if (registry.calls.empty()) {
      ADD_FAILURE() << "no call of the registry";
      return {};
    }
    Call call = std::move(registry.calls.front());
    registry.calls.pop_front();
    EXPECT_EQ(call.kind, kind);
    return call;
  }
  static WorkerRight Granted(const Call& claim, std::int64_t worker, std::int64_t generation = 1) {
    WorkerRight right;
    right.worker = worker;
    right.generation = generation;
    right.owner = claim.ask.owner;
    right.limit_ms = claim.ask.now_ms + claim.ask.lease_ms;
    return right;
  }
  static WorkerRight Extended(const Call& extend) {
    WorkerRight right = extend.right;
    right.limit_ms = extend.limit_ms;
    return right;
  }
  void GrantClaim(std::int64_t worker, std::int64_t generation = 1) {
    const Call call = Take(Kind::kClaim);
    if (call.done) call.done(Granted(call, worker, generation));
    Tick();
  }
  void Fail(Kind kind, Code code, const std::string& message) {
    const Call call = Take(kind);
    if (call.done) call.done(Error{code, message});
    Tick();
  }
  void Saved(Result<bool> result = true) {
    ASSERT_FALSE(journal.writes.empty()) << "nothing is being written to the journal";
    const auto write = std::move(journal.writes.front());
    journal.writes.pop_front();
    write.done(std::move(result));
    Tick();
  }
  /// A bound server with its first right, in the journal.
  void StartBound(std::int64_t worker) {
    registry.its_traits.bound = true;
    Start();
    GrantClaim(worker);
    Saved();
  }

  /// The parts of one id; nothing if none was to be had at once.
  std::optional<SnowflakeParts> MintOne() {
    Minted minted;
    if (!engine->TryMint(1, clock.now, minted)) return std::nullopt;
    const std::int64_t id = minted.At(options.layout, 0);
    EXPECT_GT(id, last_id) << "ids rise";
    last_id = id;
    return Decode(options.layout, id);
  }
  std::int64_t WorkerOfNext() {
    const auto parts = MintOne();
    return parts ? parts->worker : -1;
  }
  bool Mints() { return MintOne().has_value(); }
  /// What MintOrPark says; nullopt: parked.
  std::optional<Result<Minted>> Ask(TestWaiter& waiter) {
    Result<Minted> out = Minted{};
    if (!engine->MintOrPark(waiter, clock.now, out)) return std::nullopt;
    return out;
  }
  /// The error of one request that is answered at once.
  Error Refusal(std::int64_t count = 1) {
    TestWaiter waiter(tasks, count, false);
    const auto out = Ask(waiter);
    if (!out) {
      EXPECT_TRUE(engine->Cancel(waiter));
      return {Code::kInternal, "parked"};
    }
    return out->ok() ? Error{Code::kInternal, "minted"} : out->error();
  }

  SnowflakeOptions options;
  TwoClocks clock;
  SeededRandom random{7};
  ScriptedRegistry registry;
  ScriptedJournal journal;
  MemoryOrder order;
  OneHost host;
  TaskQueue tasks;
  std::unique_ptr<SnowflakeEngine> engine;
  Instant due;
  int wakes = 0;
  std::int64_t last_id = -1;
};

}  // namespace leaf::test
