#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "store/driver.h"

namespace leaf {

/// A store whose troubles a test writes down, shared by its sessions. Thread-safe.
class Script {
 public:
  /// Runs `f` on the state, then wakes whatever waits for a change of it.
  template <typename F>
  auto With(F f) {
    MutexLock lock(mu_);
    changed_.NotifyAll();
    return f(*this);
  }
  /// Waits, at most ten seconds, until `f` of the state is true.
  template <typename F>
  bool Await(F f) {
    MutexLock lock(mu_);
    return AwaitLocked(f, std::chrono::seconds(10));
  }

  // What happens. Tags in `hang` block until taken out; an interrupt ends the wait unless deaf.
  std::set<std::string, std::less<>> hang;
  bool deaf = false;
  bool hang_open = false;
  int fail_opens = 0;                               ///< so many connects fail; -1: all
  std::string open_failure = "connection refused";  ///< why they do
  int cut_reserves = 0;      ///< so many reservations find the session cut, nothing being sent
  int opens_allowed = 1000;  ///< sessions at once; one more fails to connect
  Durability durability = Durability::kPower;
  std::string identity = "scripted:1";  ///< of each connect
  std::vector<std::string> warnings;    ///< of each connect
  int batch_limit = 1;

  // What happened.
  int drivers = 0, sessions = 0, opens = 0, failed_opens = 0, interrupts = 0, blocked = 0;
  std::vector<std::string> log;  ///< a line a driver call: "reserve a b", "find a", ...
  std::map<std::string, std::int64_t, std::less<>> rows;

 private:
  friend class ScriptedDriver;
  template <typename F>
  bool AwaitLocked(F f, Duration patience) {
    const Instant until = SystemClock().Now() + patience;
    while (!f(*this)) {
      const Instant now = SystemClock().Now();
      if (now >= until) return false;
      changed_.WaitFor(mu_, until - now);
    }
    return true;
  }
  Mutex mu_;
  CondVar changed_;
};

/// A session with a Script.
class ScriptedDriver final : public SegmentDriver {
 public:
  explicit ScriptedDriver(std::shared_ptr<Script> script) : script_(std::move(script)) {
    script_->With([](Script& s) { ++s.drivers; });
  }
  ~ScriptedDriver() override {
    Close();
    script_->With([](Script& s) { --s.drivers; });
  }

  Result<StoreInfo> Open(Instant) override {
    MutexLock lock(script_->mu_);
    Script& s = *script_;
    s.changed_.NotifyAll();
    interrupted_ = false;
    ++s.opens;
    if (s.hang_open) Block([](Script& now) { return !now.hang_open; });
    if (s.fail_opens != 0 || s.sessions >= s.opens_allowed || interrupted_) {
      if (s.fail_opens > 0) --s.fail_opens;
      ++s.failed_opens;
      return Error{Code::kUnavailable, "scripted: " + s.open_failure};
    }
    open_ = true;
    ++s.sessions;
    return StoreInfo{s.durability, s.identity, s.warnings};
  }
  bool connected() const noexcept override { return open_; }
  void Close() noexcept override {
    if (!std::exchange(open_, false)) return;
    script_->With([](Script& s) { --s.sessions; });
  }
  int batch_limit() const noexcept override { return script_->batch_limit; }

  void Reserve(std::span<const Ask> asks, std::span<Grant> grants) override {
    MutexLock lock(script_->mu_);
    Script& s = *script_;
    std::string line = "reserve";
    for (const Ask& ask : asks) line += " " + std::string(ask.tag);
    Enter(line);
    const bool cut = s.cut_reserves > 0 && s.cut_reserves-- > 0;
    for (std::size_t i = 0; i < asks.size(); ++i) {
      grants[i].flight = asks[i].flight;
      const bool through = !cut && PassLocked(asks[i].tag);
      if (!through) {
        grants[i].outcome = cut ? Outcome::kRefused : Outcome::kUnknown;
        grants[i].error = {Code::kUnavailable,
                           cut ? "scripted: session cut" : "scripted: interrupted"};
        Drop();
        continue;
      }
      std::int64_t& row = s.rows.try_emplace(std::string(asks[i].tag), 1).first->second;
      grants[i].outcome = Outcome::kGranted;
      grants[i].range = {row, row + asks[i].count};
      row += asks[i].count;
    }
  }

  Result<std::optional<Row>> Find(std::string_view tag, Instant) override {
    MutexLock lock(script_->mu_);
    Enter("find " + std::string(tag));
    if (!PassLocked(tag)) return Lost();
    const auto it = script_->rows.find(tag);
    if (it == script_->rows.end()) return std::optional<Row>();
    return std::optional<Row>(Row{it->first, it->second, 10, ""});
  }
  Result<std::vector<Row>> List(std::string_view, int, Instant) override {
    return std::vector<Row>();
  }
  Result<Row> Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                     Instant) override {
    MutexLock lock(script_->mu_);
    Enter("create " + std::string(tag));
    if (!PassLocked(tag)) return Lost();
    script_->rows[std::string(tag)] = max_id;
    return Row{std::string(tag), max_id, step, ""};
  }
  Result<Row> SetStep(std::string_view, std::int64_t, Instant) override { return Lost(); }
  Result<Row> Delete(std::string_view, Instant) override { return Lost(); }
  Result<std::int64_t> Raise(std::string_view, std::int64_t, std::int64_t add, Instant) override {
    return add;
  }
  Result<bool> HandBack(std::string_view, Range, Instant) override { return true; }

  void Interrupt() noexcept override {
    script_->With([this](Script& s) {
      ++s.interrupts;
      interrupted_ = true;
    });
  }

 private:
  static Error Lost() { return {Code::kUnavailable, "scripted: connection lost"}; }
  void Drop() {
    if (std::exchange(open_, false)) --script_->sessions;
  }
  void Enter(const std::string& line) {
    script_->log.push_back(line);
    script_->changed_.NotifyAll();
  }
  // False: interrupted while it hung, and the session is gone.
  bool PassLocked(std::string_view tag) {
    if (!script_->hang.contains(tag)) return true;
    interrupted_ = false;
    Block([name = std::string(tag)](Script& s) { return !s.hang.contains(name); });
    if (!interrupted_) return true;
    Drop();
    return false;
  }
  template <typename F>
  void Block(F free) {
    Script& s = *script_;
    ++s.blocked;
    s.changed_.NotifyAll();
    while (!s.AwaitLocked([&](Script& now) { return free(now) || (interrupted_ && !now.deaf); },
                          std::chrono::minutes(10))) {
    }
    --s.blocked;
  }

  const std::shared_ptr<Script> script_;
  bool open_ = false;
  bool interrupted_ = false;  // guarded by the script's lock
};

}  // namespace leaf
