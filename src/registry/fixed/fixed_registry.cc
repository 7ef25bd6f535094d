#include "registry/fixed/fixed_registry.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "state/slot_file.h"

namespace leaf {
namespace {

Error Unavailable(std::string text) { return {Code::kUnavailable, std::move(text)}; }

/// "GENERATION LIMIT OWNER IDENTITY".
std::string Encode(const WorkerRecord& record) {
  return std::to_string(record.generation) + " " + std::to_string(record.limit_ms) + " " +
         record.owner + " " + record.identity;
}

bool Decode(std::string_view text, WorkerRecord& record) {
  for (std::int64_t* number : {&record.generation, &record.limit_ms}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc() || end == text.data() + text.size() || *end != ' ' || *number < 0)
      return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  const auto blank = text.find(' ');
  if (blank == std::string_view::npos) return false;
  record.owner = text.substr(0, blank);
  record.identity = text.substr(blank + 1);
  return true;
}

/// What this process wrote with its latest claim, over all of its sessions: a claim whose answer
/// came too late, or whose sync failed, is in the file all the same, and its limit is not what the
/// owner before may have minted up to. Thread-safe.
class LatestClaim {
 public:
  void Remember(const WorkerRecord& record, std::int64_t floor_ms) {
    const MutexLock lock(mu_);
    owner_ = record.owner;
    generation_ = record.generation;
    floor_ms_ = floor_ms;
  }
  std::optional<std::int64_t> FloorOf(const WorkerRecord& record) const {
    const MutexLock lock(mu_);
    if (record.owner != owner_ || record.generation != generation_) return std::nullopt;
    return floor_ms_;
  }

 private:
  mutable Mutex mu_;
  std::string owner_ GUARDED_BY(mu_);
  std::int64_t generation_ GUARDED_BY(mu_) = 0, floor_ms_ GUARDED_BY(mu_) = 0;
};

/// The state folder has one process. Sessions of it may overlap, when one was stuck and another
/// took its place; so the file is read before each write, and what is compared is what it holds.
class FixedRegistry final : public RegistryDriver {
 public:
  FixedRegistry(std::int64_t worker, std::string path, std::shared_ptr<LatestClaim> latest)
      : worker_(worker),
        file_(std::move(path), "limit of worker " + std::to_string(worker)),
        latest_(std::move(latest)) {}

  Result<void> Open(Instant deadline, std::vector<std::string>& warnings) override;
  bool connected() const noexcept override { return open_; }
  void Close() noexcept override { open_ = false; }
  Result<WorkerRight> Claim(const ClaimAsk& ask) override;
  Result<WorkerRight> Extend(const WorkerRight& right, std::int64_t limit_ms, std::int64_t lease_ms,
                             Instant deadline) override;
  Result<WorkerRight> Lower(const WorkerRight& right, std::int64_t limit_ms,
                            Instant deadline) override;
  Result<std::vector<WorkerRecord>> List(Instant deadline) override;
  Result<WorkerRecord> Retire(std::int64_t worker, Instant deadline) override;
  void Interrupt() noexcept override {}  // a write to a file cannot be called back

 private:
  /// Reads the file into record_.
  Result<void> Read();
  Result<void> Save(const WorkerRecord& record);
  /// Writes the limit that `limit_of` makes of the one held.
  template <typename LimitOf>
  Result<WorkerRight> Move(const WorkerRight& right, LimitOf limit_of);

  const std::int64_t worker_;
  SlotFile file_;
  const std::shared_ptr<LatestClaim> latest_;
  bool open_ = false;
  std::optional<WorkerRecord> record_;
};

Result<void> FixedRegistry::Open(Instant, std::vector<std::string>&) { return Read(); }

Result<void> FixedRegistry::Read() {
  open_ = false;  // unless what it holds can be trusted
  LEAF_ASSIGN_OR_RETURN(const auto found, file_.Load());
  record_.reset();
  if (found) {
    WorkerRecord record;
    record.worker = worker_;
    if (!Decode(found->payload, record)) {
      return Unavailable("limit of worker " + std::to_string(worker_) + " " + file_.path() +
                         ": its record is not one of this version; remove it if no server minted "
                         "with this worker for a lease");
    }
    if (!found->same_file) {
      return Unavailable(
          "limit of worker " + std::to_string(worker_) + " " + file_.path() +
          ": this file was copied from elsewhere, where worker " + std::to_string(worker_) +
          " may still be minted with. Give this server another number, or remove the "
          "file if the other one is gone for good");
    }
    record_ = std::move(record);
  }
  open_ = true;
  return {};
}

Result<void> FixedRegistry::Save(const WorkerRecord& record) {
  auto saved = file_.Save(Encode(record));
  if (!saved.ok()) {
    open_ = false;  // what the file holds is read again
    return saved;
  }
  record_ = record;
  return {};
}

Result<WorkerRight> FixedRegistry::Claim(const ClaimAsk& ask) {
  LEAF_RETURN_IF_ERROR(Read());
  const std::string name = "worker " + std::to_string(worker_);
  if (worker_ >= ask.workers)
    return Unavailable(name + " is not in the layout, which holds 0 to " +
                       std::to_string(ask.workers - 1));
  if (std::find(ask.excluded.begin(), ask.excluded.end(), worker_) != ask.excluded.end())
    return Unavailable(name + " is in use by another process of this host");
  const bool adopted = record_ && record_->owner == ask.owner;
  const bool proven = record_ && ask.journal && ask.journal->worker == worker_ &&
                      ask.journal->owner == record_->owner &&
                      ask.journal->generation == record_->generation;
  LEAF_ASSIGN_OR_RETURN(std::int64_t limit, LimitWithin(ask.now_ms, ask.lease_ms, std::nullopt));
  WorkerRight right;
  // The file of limits was lost, but not the journal: nothing was minted above its limit.
  if (!record_ && ask.journal && ask.journal->worker == worker_) {
    right.floor_ms = ask.journal->limit_ms;
    limit = std::max(limit, ask.journal->limit_ms);
  }
  right.worker = worker_;
  right.owner = ask.owner;
  if (record_) {
    right.floor_ms = record_->limit_ms;
    if (proven) {
      right.floor_ms = std::min(ask.journal->short_ms, record_->limit_ms);
    } else if (adopted) {
      // Whoever asks again has minted nothing of what its own lost claim wrote.
      right.floor_ms =
          std::min(latest_->FloorOf(*record_).value_or(record_->limit_ms), record_->limit_ms);
    }
    limit = std::max(limit, record_->limit_ms);
  }
  right.generation = (record_ ? record_->generation : 0) + (adopted ? 0 : 1);
  right.limit_ms = limit;
  WorkerRecord record;
  record.worker = worker_;
  record.generation = right.generation;
  record.owner = ask.owner;
  record.identity = ask.identity;
  record.limit_ms = limit;
  latest_->Remember(record, right.floor_ms);  // also if it is not known to be written
  LEAF_RETURN_IF_ERROR(Save(record));
  return right;
}

template <typename LimitOf>
Result<WorkerRight> FixedRegistry::Move(const WorkerRight& right, LimitOf limit_of) {
  LEAF_RETURN_IF_ERROR(Read());
  if (!record_ || record_->owner != right.owner || record_->generation != right.generation) {
    return Error{Code::kConflict,
                 "the record of worker " + std::to_string(worker_) + " is another's now"};
  }
  WorkerRecord record = *record_;
  record.limit_ms = limit_of(record.limit_ms);
  LEAF_RETURN_IF_ERROR(Save(record));
  WorkerRight moved = right;
  moved.limit_ms = record.limit_ms;
  moved.registry_ms.reset();
  return moved;
}

Result<WorkerRight> FixedRegistry::Extend(const WorkerRight& right, std::int64_t limit_ms,
                                          std::int64_t, Instant) {
  return Move(right, [limit_ms](std::int64_t held) { return std::max(limit_ms, held); });
}

Result<WorkerRight> FixedRegistry::Lower(const WorkerRight& right, std::int64_t limit_ms, Instant) {
  return Move(right, [limit_ms](std::int64_t held) { return std::min(limit_ms, held); });
}

Result<std::vector<WorkerRecord>> FixedRegistry::List(Instant) {
  LEAF_RETURN_IF_ERROR(Read());
  std::vector<WorkerRecord> records;
  if (record_) records.push_back(*record_);
  return records;
}

Result<WorkerRecord> FixedRegistry::Retire(std::int64_t worker, Instant) {
  LEAF_RETURN_IF_ERROR(Read());
  if (worker != worker_ || !record_)
    return Error{Code::kNotFound,
                 "no such worker: this server's own is " + std::to_string(worker_)};
  return Error{Code::kConflict,
               "worker " + std::to_string(worker_) +
                   " was given to this server by its configuration (snowflake.registry = fixed:" +
                   std::to_string(worker_) + "); change it there"};
}

}  // namespace

RegistryFactory MakeFixedRegistry(const RegistryOptions& options, std::string state_dir) {
  return [worker = options.worker,
          path = state_dir + "/snowflake-worker-" + std::to_string(options.worker),
          latest = std::make_shared<LatestClaim>()] {
    return std::make_unique<FixedRegistry>(worker, path, latest);
  };
}

}  // namespace leaf
