#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "store/blocking_store.h"
#include "store/scripted_driver.h"

namespace leaf {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline Instant In(Duration duration) { return SystemClock().Now() + duration; }

// Collects grants; an answer that comes twice, or after Shut, is a failure.
class Answers final : public GrantSink {
 public:
  void OnGrant(const Grant& grant) override {
    MutexLock lock(mu_);
    EXPECT_FALSE(shut_) << "an answer after the store's end";
    EXPECT_TRUE(grants_.emplace(grant.flight, grant).second)
        << "a second answer to " << grant.flight;
    changed_.NotifyAll();
  }
  Grant Await(Flight flight) {
    MutexLock lock(mu_);
    const Instant until = In(seconds(10));
    while (!grants_.contains(flight)) {
      const Instant now = SystemClock().Now();
      if (now >= until) {
        ADD_FAILURE() << "no answer to " << flight;
        return {};
      }
      changed_.WaitFor(mu_, until - now);
    }
    return grants_.at(flight);
  }
  bool Has(Flight flight) {
    MutexLock lock(mu_);
    return grants_.contains(flight);
  }
  void Shut() {
    MutexLock lock(mu_);
    shut_ = true;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::map<Flight, Grant> grants_;
  bool shut_ = false;
};

class BlockingStoreTest : public testing::Test {
 protected:
  BlockingStoreTest() {
    options_.kind = "scripted";
    options_.timeout = seconds(5);
    options_.retry_max = milliseconds(60);
  }
  ~BlockingStoreTest() override {
    // Frees what hangs, so that no thread outlives the test.
    script_->With([](Script& s) {
      s.hang.clear();
      s.hang_open = false;
      s.deaf = false;
    });
    store_.reset();
    EXPECT_TRUE(script_->Await([](Script& s) { return s.drivers == 0; })) << "a thread is left";
  }

  void Start() {
    store_ = std::make_unique<BlockingStore>(
        options_, [script = script_] { return std::make_unique<ScriptedDriver>(script); },
        SystemClock());
  }
  void StartUp() {
    Start();
    ASSERT_TRUE(AwaitStatus([](const StoreStatus& s) { return s.up; }));
  }
  void Reserve(Flight flight, std::string_view tag, Instant deadline = kNever) {
    const Ask ask{flight, tag, 10, deadline};
    store_->Reserve({&ask, 1}, answers_);
  }
  void StartTwoSessions() {
    options_.max_sessions = 2;
    StartUp();
    Hang("slow");
    Reserve(1, "slow");
    ASSERT_TRUE(AwaitBlocked(1));
    Reserve(2, "fine");
    EXPECT_EQ(answers_.Await(2).outcome, Outcome::kGranted);
    Free("slow");
    EXPECT_EQ(answers_.Await(1).outcome, Outcome::kGranted);
    ASSERT_EQ(script_->With([](Script& s) { return s.opens; }), 2);
  }
  template <typename F>
  bool AwaitStatus(F f) {
    const Instant until = In(seconds(10));
    while (!f(store_->Status())) {
      if (SystemClock().Now() >= until) return false;
      std::this_thread::yield();
    }
    return true;
  }
  void Hang(const std::string& tag, bool deaf = false) {
    script_->With([&](Script& s) {
      s.hang.insert(tag);
      s.deaf = deaf;
    });
  }
  void Free(const std::string& tag) {
    script_->With([&](Script& s) { s.hang.erase(tag); });
  }
  bool AwaitBlocked(int n) {
    return script_->Await([n](Script& s) { return s.blocked == n; });
  }
  bool Saw(const std::string& line) {
    return script_->With(
        [&](Script& s) { return std::count(s.log.begin(), s.log.end(), line) > 0; });
  }

  BlockingStore::Options options_;
  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
  Answers answers_;
  std::unique_ptr<BlockingStore> store_;
};

}  // namespace leaf
