#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/random.h"
#include "core/segment/after.h"
#include "core/segment/engine.h"
#include "core/segment/negative_cache.h"
#include "core/segment/store_calls.h"
#include "core/segment/token_bucket.h"
#include "core/segment/waiting_room.h"

namespace leaf {

/// Looks up, and where asked to creates, tags that this server does not know. One look-up a name,
/// however many requests wait for it; bounded by a token bucket and by the number of names
/// remembered. While the store fails, a look-up is tried again with back-off as long as a request
/// waits for it.
///
/// Thread-safe. Its lock comes before those of tags.
class Lookups {
 public:
  /// What it needs of the engine.
  class Host {
   public:
    /// The row exists; the tag is known from now on.
    virtual Tag& Know(const Row& row) = 0;
    /// Moves a waiter, which is in no queue, to the tag: it is parked there or enters after.ready.
    virtual void Adopt(Tag& tag, Waiter& waiter, After& after) = 0;
    virtual void Run(Tag* tag, After& after) = 0;
    /// Where auto_create may make a row of that name; an error says why not.
    virtual Result<std::int64_t> CreateAt(std::string_view name) const = 0;

   protected:
    ~Host() = default;
  };

  Lookups(const EngineOptions& options, SegmentStore& store, StoreCalls& calls, Agenda& agenda,
          Clock& clock, Random& random, WaitingRoom& room, Host& host);

  /// True: `out` is the error. False: the waiter is parked here.
  bool Park(std::string_view name, Waiter& waiter, Instant deadline, Instant now,
            Result<Ranges>& out);
  /// True: the waiter is out. False: it is not here (any more).
  bool Cancel(Waiter& waiter);
  /// The row was seen, by a look-up or otherwise: who waits for it here goes on to the tag.
  void Appeared(std::string_view name, Tag& tag);
  /// A row of that name was made otherwise.
  void Forget(std::string_view name);
  Instant Tick(Instant now);
  /// Ends all who wait; from now on each Park is refused.
  void Close();

  std::uint64_t started() const noexcept { return started_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    WaiterQueue waiters;
    bool calling = false;
    Instant retry_at = kNever;  ///< unless calling
    int failures = 0;
    std::string last_error;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  bool Admit(const std::string& name, Instant now, Result<Ranges>& out) REQUIRES_LOCK(mu_);
  Instant Expire(const std::string& name, Entry& entry, Instant now, After& after)
      REQUIRES_LOCK(mu_);
  void Find(const std::string& name, bool lost_race);
  void Found(const std::string& name, bool lost_race, Result<std::optional<Row>> row);
  void Created(const std::string& name, Result<Row> row);
  void Resolve(const std::string& name, const Row& row);
  void Missing(const std::string& name, const Error& error);
  void Failed(const std::string& name, const Error& error);

  const EngineOptions& options_;
  SegmentStore& store_;
  StoreCalls& calls_;
  Agenda& agenda_;
  Clock& clock_;
  Random& random_;
  WaitingRoom& room_;
  Host& host_;

  std::atomic<std::uint64_t> started_{0}, refused_{0};

  Mutex mu_;
  Entries entries_ GUARDED_BY(mu_);
  NegativeCache negative_ GUARDED_BY(mu_);
  TokenBucket tokens_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace leaf
