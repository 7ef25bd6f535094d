#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/segment/segment_store.h"

namespace leaf {

/// What a driver learnt when it connected.
struct StoreInfo {
  Durability durability = Durability::kVolatile;
  std::string identity;  ///< of the server or file; a change is a failover or a restore
  std::vector<std::string> warnings;  ///< for people; serving goes on
};

/// A row whose numbers are not, or not all, there: NULL, or in etcd a value of another form.
struct UnreadableRow {
  std::string tag;
  bool has_max_id = false, has_step = false;
  std::string why;
};

/// One session with a store, by blocking calls. BlockingStore turns it into a SegmentStore.
///
/// Confined to one thread at a time, save Interrupt. No call throws. Errors as in SegmentStore. A
/// session reports connected() == false after a failure that leaves its state in doubt, and after
/// one that concerns the whole store (read-only, full disk), so that the next Open judges it. An
/// ask that is kRefused for such a reason was not sent: BlockingStore then tries it once more on a
/// new session, so that an idle connection that the server cut costs no request. No driver repeats
/// by itself. An ask or call whose deadline has passed starts nothing and is refused.
class SegmentDriver {
 public:
  virtual ~SegmentDriver() = default;

  /// Connects, makes the table where the store is its own (sqlite, memory), checks the table
  /// (engine, column types, primary key, read-only) and the durability. An error says what is wrong
  /// and how to mend it; for a missing table it holds the DDL.
  virtual Result<StoreInfo> Open(Instant deadline) = 0;
  virtual bool connected() const noexcept = 0;
  /// Ends the session, if there is one; may be called at any time and twice.
  virtual void Close() noexcept = 0;

  /// How many asks one Reserve may take; > 1 where one transaction can hold them all.
  virtual int batch_limit() const noexcept { return 1; }
  /// grants[i] answers asks[i]; its store_id may stay 0, BlockingStore fills it in. REQUIRES:
  /// connected(), equal sizes, size <= batch_limit().
  virtual void Reserve(std::span<const Ask> asks, std::span<Grant> grants) = 0;

  virtual Result<std::optional<Row>> Find(std::string_view tag, Instant deadline) = 0;
  virtual Result<std::vector<Row>> List(std::string_view after, int limit, Instant deadline) = 0;
  virtual Result<Row> Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                             Instant deadline) = 0;
  virtual Result<Row> SetStep(std::string_view tag, std::int64_t step, Instant deadline) = 0;
  virtual Result<Row> Delete(std::string_view tag, Instant deadline) = 0;
  virtual Result<std::int64_t> Raise(std::string_view tag, std::int64_t not_below, std::int64_t add,
                                     Instant deadline) = 0;
  virtual Result<bool> HandBack(std::string_view tag, Range tail, Instant deadline) = 0;

  /// What an operator should know and serving does without: the privileges that only Create and
  /// Delete need and the session lacks, each as a sentence with the statement that mends it.
  virtual Result<std::vector<std::string>> LackingRights(Instant /*deadline*/) {
    return std::vector<std::string>();
  }
  /// Up to `most` rows that List shows with a 0 for what cannot be read of them.
  virtual Result<std::vector<UnreadableRow>> Unreadable(int /*most*/, Instant /*deadline*/) {
    return std::vector<UnreadableRow>();
  }

  /// Makes a call under way on another thread end soon (shuts the socket down, sqlite3_interrupt).
  /// Any thread, at any time while the driver lives.
  /// Never blocks.
  virtual void Interrupt() noexcept = 0;
};

/// Makes one more session of a store, not yet opened. Each store offers
/// `Result<DriverFactory> Make<Name>Factory(const StoreOptions&)` for the server's table; an error
/// there is one of configuration. Thread-safe; sessions of one factory may run in parallel.
using DriverFactory = std::function<std::unique_ptr<SegmentDriver>()>;

/// Grant::store_id of a server with that StoreInfo::identity; never 0.
std::uint64_t IdentityHash(std::string_view identity) noexcept;

}  // namespace leaf
