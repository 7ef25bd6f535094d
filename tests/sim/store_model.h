#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checker.h"
#include "core/segment/segment_store.h"
#include "sim_random.h"
#include "world.h"

namespace leaf::sim {

std::string TagName(int tag);
/// -1 for a name that TagName does not make.
int TagIndex(std::string_view name);

/// Stores that break their promise, to see that the checker notices. See sim_test.cc.
enum class Mutant : std::uint8_t {
  kNone,
  kRetryHandBack,   ///< a hand-back with an unknown outcome is tried again
  kGrantTwice,      ///< the latest range is granted once more, to another server
  kGrantUnwritten,  ///< a range is granted that was not written down
  kLostUpdate,      ///< reads the row, and writes it a little later
};

struct StoreSetup {
  Duration latency_min{}, latency_max{};  ///< one way
  double faults = 0;                      ///< share of the calls that go wrong
  bool batches = false;                   ///< the asks of one call share one fate
  bool statement_timeout = false;         ///< gives up at a locked row instead of committing later
  bool inline_refusals = false;           ///< may refuse before Reserve returns
  Mutant mutant = Mutant::kNone;
};

/// How the store is away.
enum class Outage : std::uint8_t {
  kNone,
  kRefusing,  ///< says so at once
  kHanging,   ///< answers nothing
};

/// The table all servers share, and what goes wrong on the way to it. Confined.
class StoreModel {
 public:
  struct TableRow {
    std::int64_t max_id = 0, step = 0;
    std::uint64_t version = 0;
    int writer = kWorld;  ///< who wrote it last
  };
  using Table = std::map<std::string, TableRow, std::less<>>;

  StoreModel(World& world, Checker& checker, SimRandom random, StoreSetup setup, int tags);

  // Statements: what each does at one instant.
  Grant Reserve(int server, const std::string& tag, std::int64_t count);
  Result<Row> Create(int server, const std::string& tag, std::int64_t step, std::int64_t max_id);
  Result<Row> SetStep(const std::string& tag, std::int64_t step);
  Result<Row> Delete(const std::string& tag);
  Result<std::int64_t> Raise(int server, const std::string& tag, std::int64_t not_below,
                             std::int64_t add);
  bool HandBack(int server, const std::string& tag, Range tail);
  const Table& table() const noexcept { return table_; }
  const TableRow* Find(const std::string& tag) const;

  // The hand of the world.
  void Edit(int tag, std::int64_t max_id);
  /// `declared`: the checker hears of it.
  void Restore(const Table& snapshot, bool declared);
  void BeginOutage(Outage kind) { outage_ = kind; }
  void EndOutage();
  void Lock(int tag, Instant until);
  void EndFaults();  ///< no more faults from now on

  Outage outage() const noexcept { return outage_; }
  Instant locked_until(int tag) const { return At(tag).locked_until; }
  /// Since when nothing has gone wrong with calls about the tag; now, if something is wrong.
  Instant HealthySince(int tag) const;
  /// Since when the tag has no row; kNever if it has one.
  Instant AbsentSince(int tag) const { return At(tag).absent_since; }
  /// When the tag last had no row.
  Instant LastAbsent(int tag) const { return At(tag).last_absent; }
  void Fault(int tag);
  struct GivenBack {
    int server = kWorld;
    Range ids;
    Instant at{};
  };
  const GivenBack& LastGivenBack(int tag) const { return At(tag).given_back; }
  std::int64_t LargestStep(int tag) const { return At(tag).largest_step; }
  /// The least max_id with which a deleted row may come back.
  std::int64_t HighWater(int tag) const { return At(tag).high_water; }
  /// Another server takes over, with what a replica had; its rows may be older. `known`: it may be
  /// one that was the store before.
  void TakeOver(const Table& replica, bool known);
  std::uint64_t identity() const noexcept { return identity_; }
  /// How often it became another store.
  std::uint64_t turn() const noexcept { return turn_; }
  const StoreSetup& setup() const noexcept { return setup_; }
  SimRandom& random() noexcept { return random_; }

 private:
  struct PerTag {
    Instant locked_until{};
    Instant last_fault{};
    Instant absent_since = kNever;
    Instant last_absent{};
    std::int64_t largest_step = 0;
    std::int64_t high_water = 0;  // of rows that were deleted
    GivenBack given_back;
    Range last_grant;
    int last_granted_to = kWorld;
  };
  const PerTag& At(int tag) const { return per_tag_[static_cast<std::size_t>(tag)]; }
  PerTag& At(int tag) { return per_tag_[static_cast<std::size_t>(tag)]; }
  void Write(TableRow& row, int server, std::int64_t max_id);
  std::optional<Range> Misbehave(int server, const std::string& tag, TableRow& row,
                                 std::int64_t count);
  void Appear(int tag, std::int64_t step);
  void Vanish(int tag, std::int64_t max_id);
  void BecomeAnother(bool known);

  World& world_;
  Checker& checker_;
  SimRandom random_;
  StoreSetup setup_;
  Table table_;
  std::vector<PerTag> per_tag_;
  Outage outage_ = Outage::kNone;
  std::uint64_t version_ = 0;
  std::uint64_t identity_ = 1, identities_ = 1;
  std::uint64_t turn_ = 0;
};

/// What a server's process wants to know about its calls.
class PortObserver {
 public:
  virtual void OnAsk(const Ask& ask) = 0;
  /// Delivers the grant to the sink.
  virtual void Deliver(GrantSink& sink, const Grant& grant) = 0;

 protected:
  ~PortObserver() = default;
};

/// The port of one process to the table. Statements of a process that died still reach the table;
/// their answers reach nobody. Confined.
class StorePort final : public SegmentStore {
 public:
  StorePort(World& world, StoreModel& model, PortObserver& observer, int server, Duration origin)
      : world_(world),
        model_(model),
        observer_(observer),
        server_(server),
        origin_(origin),
        first_turn_(model.turn()) {}

  void Reserve(std::span<const Ask> asks, GrantSink& sink) override;
  void Find(std::string tag, Instant deadline, Done<std::optional<Row>> done) override;
  void List(std::string after, int limit, Instant deadline, Done<std::vector<Row>> done) override;
  void Create(std::string tag, std::int64_t step, std::int64_t max_id, Instant deadline,
              Done<Row> done) override;
  void SetStep(std::string tag, std::int64_t step, Instant deadline, Done<Row> done) override;
  void Delete(std::string tag, Instant deadline, Done<Row> done) override;
  void Raise(std::string tag, std::int64_t not_below, std::int64_t add, Instant deadline,
             Done<std::int64_t> done) override;
  void HandBack(std::string tag, Range tail, std::uint64_t, Instant deadline,
                Done<bool> done) override;
  StoreStatus Status() const override;
  void Abort() noexcept override {}

  /// The process is gone: nothing that its remains do counts.
  void Die() { dead_ = true; }
  std::uint64_t calls() const noexcept { return calls_; }

 private:
  enum class Fate : std::uint8_t { kNormal, kRefused, kLost, kAnswerLost, kLate };
  struct Call {
    int tag = -1;        // -1: about no row in particular
    Instant deadline{};  // of the world
    std::function<void()> execute;
    std::function<void()> answer;
    std::function<void(Outcome, const char*)> fail;
  };
  template <typename T>
  void Submit(int tag, Instant deadline, std::function<Result<T>()> statement, Done<T> done);
  Fate Draw(int tag);
  Duration Latency();
  void Send(std::shared_ptr<Call> call, Fate fate, Duration latency);
  void Execute(const std::shared_ptr<Call>& call, Fate fate);
  void WaitForLock(const std::shared_ptr<Call>& call);
  void GiveUp(const std::shared_ptr<Call>& call);
  Instant OfWorld(Instant deadline) const;

  World& world_;
  StoreModel& model_;
  PortObserver& observer_;
  int server_;
  Duration origin_;
  std::uint64_t first_turn_;
  bool dead_ = false;
  std::uint64_t calls_ = 0;
};

}  // namespace leaf::sim
