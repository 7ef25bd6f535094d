#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "core/snowflake/generator.h"
#include "core/snowflake/snowflake_engine.h"
#include "core/snowflake/wall.h"
#include "core/snowflake/worker_registry.h"

namespace leaf {

/// How long before the end of a layout people are warned.
inline constexpr std::int64_t kTenYearsMs = 3652LL * 86'400'000;

/// Keeps this server's right to mint: claims a worker, extends the right before it ends, judges the
/// wall clock by the registry's, keeps the journal close behind, lowers the limit at a clean stop.
/// It opens the generator only for times that the registry and, where workers are bound to nodes,
/// the journal hold already. One call of the registry and one write of the journal at a time; late
/// answers are dropped by their number. Thread-safe.
class RightKeeper {
 public:
  using Ports = SnowflakeEngine::Ports;

  /// All outlive the keeper; the registry has ended before it does.
  RightKeeper(const SnowflakeOptions& options, const Ports& ports, Generator<>& generator);

  /// Called, from any thread, when a right came, was extended or lost, and when Tick should run.
  void SetChanged(std::function<void()> changed) { changed_ = std::move(changed); }

  Result<void> Load();
  /// Returns when it wants to be called next.
  Instant Tick(Instant now);
  /// The believed time. Lock-free.
  std::int64_t Millis(Instant now) const noexcept { return wall_.Millis(now); }

  /// Why nothing is minted at `now`.
  std::string Trouble(Instant now) const;
  void Fill(SnowflakeView& view, Instant now) const;

  /// Closes the generator and lowers the limit, once; `done` from any thread, once.
  void Close(std::function<void()> done);

 private:
  enum class Call : std::uint8_t { kNone, kClaim, kExtend, kLower };
  /// What is to be called after the lock was released.
  using Effects = std::vector<std::function<void()>>;
  static constexpr Duration kBackoffMin = std::chrono::milliseconds(20);
  static constexpr Duration kBackoffMax = std::chrono::seconds(1);

  bool ReadyToCall(Instant now) const REQUIRES_LOCK(mu_);
  void StartClaim(Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  void StartExtend(Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  void StartLower(Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  void Write(const RightRecord& record, Effects& effects) REQUIRES_LOCK(mu_);
  void StartSave(Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  void StartSpend(Effects& effects) REQUIRES_LOCK(mu_);
  std::uint64_t Begin(Call call, Instant now) REQUIRES_LOCK(mu_);

  void OnAnswer(std::uint64_t number, Result<WorkerRight> result);
  void OnClaimed(Result<WorkerRight> result, Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  void OnExtended(Result<WorkerRight> result, Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  void OnLowered(Result<WorkerRight> result, Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  void OnSaved(std::uint64_t number, const RightRecord& record, const Result<bool>& result);

  void Accept(WorkerRight right, Instant now) REQUIRES_LOCK(mu_);
  void GiveBack(const WorkerRight& right, Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  bool WasGivenBack(const WorkerRight& right) const REQUIRES_LOCK(mu_);
  void CarryOn(Instant now) REQUIRES_LOCK(mu_);
  void Lose(const std::string& why, Instant now, Effects& effects) REQUIRES_LOCK(mu_);
  void Disown(Effects& effects) REQUIRES_LOCK(mu_);
  void Failed(const Error& error, Instant now) REQUIRES_LOCK(mu_);
  void Succeeded() REQUIRES_LOCK(mu_);
  void Open() REQUIRES_LOCK(mu_);
  void Apply() REQUIRES_LOCK(mu_);
  void Finish(Effects& effects) REQUIRES_LOCK(mu_);
  bool HoldOnHost(std::int64_t worker) REQUIRES_LOCK(mu_);

  bool ExtensionDue(Instant now) const REQUIRES_LOCK(mu_);
  bool SaveDue(Instant now) const REQUIRES_LOCK(mu_);
  Instant NextDue(Instant now) const REQUIRES_LOCK(mu_);
  std::int64_t Reached(Instant now) REQUIRES_LOCK(mu_);
  std::int64_t Front(Instant now) const REQUIRES_LOCK(mu_);
  std::int64_t EffectiveLimit() const REQUIRES_LOCK(mu_);
  std::int64_t LimitTick(std::int64_t limit_ms) const noexcept;
  bool at_end(Instant now) const noexcept { return wall_.Millis(now) >= options_.layout.end_ms(); }
  static void Run(Effects& effects);
  void Report(Instant now);
  bool Closing() const;

  const SnowflakeOptions& options_;
  const Ports ports_;
  const RegistryTraits traits_;
  Generator<>& generator_;
  std::function<void()> changed_;
  const std::string owner_;

  /// Of Tick's thread: what was told to the log.
  Instant trouble_since_ = kNever;
  bool trouble_told_ = false, doubt_told_ = false;

  mutable Mutex mu_;
  Wall wall_;  ///< but for Millis guarded by mu_

  std::optional<WorkerRight> right_ GUARDED_BY(mu_);
  bool opened_ GUARDED_BY(mu_) = false;  ///< the generator mints by right_
  bool lost_ GUARDED_BY(mu_) = false;    ///< right_ holds up to its limit, but cannot be extended
  bool provisional_ GUARDED_BY(mu_) = false;         ///< right_ is the journal's word alone
  std::int64_t extend_at_left_ GUARDED_BY(mu_) = 0;  ///< extend when so many ms are left
  Instant next_renewal_ GUARDED_BY(mu_) = kNever;
  /// Largest now_ms of a claim of this process that may have happened; the same before the last
  /// one.
  std::int64_t claimed_from_ GUARDED_BY(mu_) = 0, claimed_before_ GUARDED_BY(mu_) = 0;
  std::int64_t order_floor_ GUARDED_BY(mu_) = 0;
  std::int64_t minted_ GUARDED_BY(mu_) = 0;  ///< at the last look
  Instant minted_at_ GUARDED_BY(mu_);        ///< when that was first seen
  std::int64_t held_on_host_ GUARDED_BY(mu_) = -1;
  std::vector<std::int64_t> excluded_ GUARDED_BY(mu_);
  /// By worker: the generation that this process gave back last.
  std::map<std::int64_t, std::int64_t> given_back_ GUARDED_BY(mu_);
  std::int64_t free_workers_ GUARDED_BY(mu_) = -1;

  Call call_ GUARDED_BY(mu_) = Call::kNone;
  std::uint64_t call_number_ GUARDED_BY(mu_) = 0;
  Instant call_sent_ GUARDED_BY(mu_), call_deadline_ GUARDED_BY(mu_);
  Instant next_call_ GUARDED_BY(mu_) = Instant::min();
  int failures_in_row_ GUARDED_BY(mu_) = 0;
  Instant next_complaint_ GUARDED_BY(mu_) = Instant::min();
  std::string trouble_ GUARDED_BY(mu_);

  std::optional<RightRecord> journal_ GUARDED_BY(mu_);  ///< what a restart would be able to prove
  bool saving_ GUARDED_BY(mu_) = false;
  std::uint64_t save_number_ GUARDED_BY(mu_) = 0;
  Instant next_save_ GUARDED_BY(mu_) = Instant::min();
  int save_failures_ GUARDED_BY(mu_) = 0;

  bool closing_ GUARDED_BY(mu_) = false, finished_ GUARDED_BY(mu_) = false;
  bool spent_ GUARDED_BY(mu_) = false;  ///< the journal was told so, or is being told
  Instant close_by_ GUARDED_BY(mu_) = kNever;
  std::int64_t last_tick_ GUARDED_BY(mu_) = -1;  ///< of the generator, when it was closed
  std::function<void()> done_ GUARDED_BY(mu_);

  std::uint64_t claims_ GUARDED_BY(mu_) = 0, extensions_ GUARDED_BY(mu_) = 0,
                        failures_ GUARDED_BY(mu_) = 0, losses_ GUARDED_BY(mu_) = 0;
  std::int64_t wall_seen_ GUARDED_BY(mu_) = 0;
};

}  // namespace leaf
