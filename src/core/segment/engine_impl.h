#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "core/segment/after.h"
#include "core/segment/agenda.h"
#include "core/segment/engine.h"
#include "core/segment/flights.h"
#include "core/segment/lineage.h"
#include "core/segment/lookups.h"
#include "core/segment/qsbr.h"
#include "core/segment/store_calls.h"
#include "core/segment/tag.h"
#include "core/segment/tag_list.h"
#include "core/segment/tag_table.h"
#include "core/segment/waiting_room.h"

namespace leaf {

/// The engine behind its header.
///
/// Only Tag::current and Tag::refill_at are touched without a lock. All else of a tag changes under
/// the tag's lock, in steps that call nobody: what has to be done outside is collected in an After
/// and done by Run once the lock is released.
///
/// Locks are taken in this order: look-ups, tag, and then one of the leaves (flights, agenda,
/// reclamation, in-use list, the journal's own).
///
/// Functions marked [tag] need the tag's lock and a tag in use.
class Engine::Impl final : public Lookups::Host, public TagList::Host {
 public:
  Impl(const EngineOptions& options, SegmentStore& store, MarkJournal& journal,
       const RefillPolicy& policy, Clock& clock, Random& random, GrantSink& sink);
  ~Impl();

  // engine.cc
  Result<void> Load();
  std::unique_ptr<Reader> AddReader();
  Tag* Find(std::string_view name) const noexcept { return tags_.Find(name); }
  bool TakeOrPark(std::string_view name, Waiter& waiter, Instant now, Result<Ranges>& out);
  bool Cancel(Waiter& waiter) noexcept;
  void Abandon(std::string_view name, const Ranges& ids) noexcept;
  Instant Tick(Instant now);
  void SetWake(std::function<void()> wake) { agenda_.SetWake(std::move(wake)); }

  // refill.cc
  void RefillDue(Tag& tag);
  void OnGrant(const Grant& grant);

  // engine_view.cc
  std::optional<TagView> View(std::string_view name) const;
  void Visit(const std::function<void(const TagView&)>& visit) const;
  Totals Sum() const;

  // engine_admin.cc
  void PutTag(std::string name, std::int64_t step, std::optional<std::int64_t> max_id,
              Done<Put> done);
  void DeleteTag(std::string name, Done<Row> done);
  void ResumeTag(std::string name, std::int64_t skip, Done<std::int64_t> done);
  Result<std::int64_t> DropTag(std::string_view name);

  // engine_close.cc
  void Close(std::function<void()> done);

 private:
  class ReaderImpl;
  struct PutJob;
  struct Tail {
    Tag* tag;
    Range ids;
  };
  enum class Taken : std::uint8_t { kFinal, kParked, kUnknownTag };

  // Hosts (engine.cc).
  Tag& Know(const Row& row) override;
  void ForgetUnseen(std::uint32_t pass) override;
  void Adopt(Tag& tag, Waiter& waiter, After& after) override;
  Result<std::int64_t> CreateAt(std::string_view name) const override;
  void Run(Tag* tag, After& after) override;

  Mutex& LockOf(const Tag& tag) const noexcept { return tags_.LockOf(tag); }
  TagUse& UseOf(Tag& tag) { return tag.use ? *tag.use : tags_.BeginUse(tag); }
  bool closing() const noexcept { return closing_.load(std::memory_order_acquire); }

  // Held ids (held.cc). [tag]
  std::int64_t Left(const Tag& tag) const;  ///< what is left just now; only ever shrinks
  void Gather(Tag& tag);                    ///< closes the current segment into the reserve
  void Publish(Tag& tag);  ///< the front of the reserve becomes the current segment
  bool Serve(Tag& tag, const Waiter& waiter, Ranges& out);
  /// Serves whom it can, in order, and publishes the rest. The end of the last id served, or 0.
  std::int64_t ServeWaiters(Tag& tag, After& after);
  std::int64_t DiscardHeld(Tag& tag, Discard reason);  ///< the number discarded
  void Retire(Segment<>* segment);

  // Waiting (engine.cc). [tag]
  Taken TakeOrParkAt(Tag& tag, Waiter& waiter, Instant deadline, Result<Ranges>& out, After& after);
  void EndWaiters(Tag& tag, const Error& error, After& after);
  void ExpireWaiters(Tag& tag, Instant now, After& after);
  void Schedule(Tag& tag, After& after);  ///< sees to it that the agenda comes back in time
  Error Stopped(const Tag& tag) const;

  // Refilling (refill.cc). [tag] where a tag's state is changed by reference.
  void Want(Tag& tag,
            After& after);  ///< a lease is due, unless one is under way or a back-off runs
  std::int64_t LeaseCount(const Tag& tag, Instant now) const;
  bool StartFlight(Tag& tag, Instant now, Ask& ask, After& after);
  void Send();  ///< no lock held
  /// `generation`: of the store that granted, if one did.
  void Settle(Tag& tag, const Grant& grant, std::uint32_t generation, Instant now, After& after);
  void Accept(Tag& tag, const Grant& grant, std::uint32_t generation, Instant now, After& after);
  void Refused(Tag& tag, const Error& error, Instant now, After& after);
  void Lost(Tag& tag, std::string reason, Instant now, After& after);
  void RetryLater(Tag& tag, std::string reason, Instant now, After& after);
  void GiveUpFlight(Tag& tag, After& after);  ///< whatever becomes of it
  void Burn(TagUse& use, std::int64_t count, Discard reason);
  bool OnDue(Tag& tag, Instant now);  ///< no lock held; true: Send is to be called
  void Record(const Tag& tag);
  Demand DemandOf(const Tag& tag) const;

  // The two ends of a row (trouble.cc).
  void WentBack(Tag& tag, Range granted, After& after);              // [tag]
  void MarkAbsent(Tag& tag, After& after);                           // [tag]
  void StartRaise(Tag& tag);                                         // no lock held
  void Raised(Tag& tag, const Result<std::int64_t>& max_id);         // no lock held
  void StartProbe(Tag& tag);                                         // no lock held
  void Probed(Tag& tag, const Result<std::optional<Row>>& row);      // no lock held
  std::int64_t SkipOf(const Tag& tag) const;                         // [tag]
  std::int64_t LeasedByOthers(const Tag& tag, Range granted) const;  // [tag]

  // Another store (move_over.cc).
  static bool HasToMove(const Tag& tag, std::uint32_t generation);  // [tag]
  bool HasToMove(const Tag& tag) const;                             // [tag]
  void MoveAll();                                                   // no lock held
  void MoveOver(Tag& tag, Range granted, std::uint32_t generation,
                After& after);                                             // [tag]
  void Moved(Tag& tag, const Result<std::int64_t>& max_id, After& after);  // [tag]
  void KeepGeneration(Tag& tag);                                           // no lock held

  // Views (engine_view.cc).
  TagView ViewOf(const Tag& tag) const;  // [tag]

  // Administration (engine_admin.cc).
  void PutCreate(const std::shared_ptr<PutJob>& job);
  void PutExisting(const std::shared_ptr<PutJob>& job);
  void PutStep(const std::shared_ptr<PutJob>& job);
  void DeleteRow(const std::string& name, Done<Row> done);
  void Remember(const Row& row);  ///< for when it is created anew

  // Closing (engine_close.cc).
  void FinishCloseIfLanded();
  void CollectTail(Tag& tag);
  void HandBackNext();
  void HandedBack(const Tail& tail, const Result<bool>& done);

  const EngineOptions options_;
  SegmentStore& store_;
  MarkJournal& journal_;
  const RefillPolicy& policy_;
  Clock& clock_;
  Random& random_;
  GrantSink& sink_;

  TagTable tags_;
  Agenda agenda_;
  Flights flights_;
  StoreCalls calls_;
  WaitingRoom room_;
  Lookups lookups_;
  TagList list_;
  Lineage lineage_;
  std::atomic<std::uint32_t> kept_{0};  ///< the latest generation that is in the journal on disk

  mutable Mutex qsbr_mu_;
  Qsbr<> qsbr_ GUARDED_BY(qsbr_mu_);

  std::atomic<std::int64_t> known_{0}, regressed_{0};
  std::atomic<std::uint64_t> stale_grants_{0}, store_changes_{0};
  std::atomic<Instant> told_{Instant::min()};  ///< when a tag that cannot be leased was last logged

  std::atomic<bool> closing_{false};
  std::atomic<bool> swept_{false};   ///< of a closing engine: every tag has been closed
  std::atomic<bool> landed_{false};  ///< and no flight is under way any more
  Mutex close_mu_;
  std::function<void()> close_done_ GUARDED_BY(close_mu_);
  std::vector<Tail> tails_ GUARDED_BY(close_mu_);  ///< to be handed back
  int handing_back_ GUARDED_BY(close_mu_) = 0;
};

}  // namespace leaf
