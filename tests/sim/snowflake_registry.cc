#include "snowflake_registry.h"

#include <algorithm>

namespace leaf::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A node younger than this is watched first; what it may have minted beyond its time.
constexpr std::int64_t kNodeAliveMs = 10'000;
constexpr Duration kWatch = seconds(7);
constexpr int kMaxSteps = 12;

Error Conflict(std::string text) { return {Code::kConflict, std::move(text)}; }
Error Unavailable(std::string text) { return {Code::kUnavailable, std::move(text)}; }

bool Same(const WorkerRecord& a, const WorkerRecord& b) {
  return a.generation == b.generation && a.owner == b.owner && a.limit_ms == b.limit_ms;
}

}  // namespace

const char* Name(RegistryKind kind) noexcept {
  switch (kind) {
    case RegistryKind::kRowsWithClock:
      return "rows with a clock";
    case RegistryKind::kRows:
      return "rows";
    case RegistryKind::kNodes:
      return "nodes";
    case RegistryKind::kFixed:
      return "fixed";
  }
  return "?";
}

std::optional<std::int64_t> RegistryModel::ClockForPlans() const noexcept {
  if (setup_.kind == RegistryKind::kRowsWithClock || setup_.kind == RegistryKind::kNodes)
    return ClockMillis();
  return std::nullopt;
}

bool RegistryModel::Write(const std::optional<Record>& from, const WorkerRow& to) {
  const auto found = records_.find(to.record.worker);
  if (setup_.mutant != RegistryMutant::kBlindWrites) {
    if (from ? found == records_.end() || !Same(found->second.row.record, from->row.record)
             : found != records_.end())
      return false;
  }
  records_[to.record.worker] = {to, ClockMillis()};
  return true;
}

void RegistryModel::TouchNode() {
  if (setup_.kind != RegistryKind::kNodes || records_.empty()) return;
  auto at = records_.begin();
  std::advance(at, static_cast<std::int64_t>(random_.Below(records_.size())));
  ++at->second.row.record.generation;
  at->second.row.record.owner.clear();
  at->second.written_ms = ClockMillis();
  ++stats_.foreign;
  world_.Note(What::kForeign, kWorld, -1, at->first);
}

RegistryPort::RegistryPort(RegistryModel& model, const Clock& clock, int server,
                           std::string identity, std::int64_t fixed_worker)
    : model_(model),
      clock_(clock),
      server_(server),
      identity_(std::move(identity)),
      fixed_worker_(fixed_worker) {}

RegistryTraits RegistryPort::traits() const noexcept {
  switch (model_.setup().kind) {
    case RegistryKind::kNodes:
      return {true, true, model_.setup().renew};
    case RegistryKind::kFixed:
      return {true, false, Duration::zero()};
    default:
      return {};
  }
}

int RegistryPort::Place() const noexcept {
  return model_.setup().kind == RegistryKind::kFixed ? server_ : kWorld;
}

const std::string& RegistryPort::Holder(const std::string& owner) const noexcept {
  return traits().bound ? identity_ : owner;
}

template <typename T>
void RegistryPort::Send(std::function<std::optional<Result<T>>(int)> step, Instant deadline,
                        Done<T> done) {
  auto job = std::make_shared<Job<T>>();
  job->step = std::move(step);
  job->done = std::move(done);
  job->deadline = deadline;
  SimRandom& random = model_.random();
  const RegistrySetup& setup = model_.setup();
  ++model_.stats().calls;
  model_.world().Note(What::kAsk, server_, -1);
  const Duration there = random.Between(setup.latency_min, setup.latency_max);
  job->gap = random.Between(setup.latency_min, setup.latency_max);
  Duration start = there;
  const Duration late = random.Between(milliseconds(1), setup.longest);
  if (random.Chance(setup.faults)) {
    ++model_.stats().faults;
    const bool bound_to_process = Place() != kWorld;
    // At once, late, or never, the asker hears of a failure; and the call may happen all the same.
    const auto report = [&] {
      job->answered = false;
      if (random.Chance(0.3)) return;
      Answer(*job, Result<T>(Unavailable("the connection broke")), there + job->gap);
    };
    switch (random.Below(bound_to_process ? 2 : 6)) {
      case 0:  // never happens
        report();
        model_.world().Note(What::kSilence, server_, -1);
        return;
      case 1:  // happens; its answer is lost
        report();
        break;
      case 2:  // happens in time, its answer is late
        job->answer_late = late;
        break;
      case 3:  // happens late, in one piece
        report();
        start += late;
        break;
      case 4:  // reads in time and writes late
        report();
        job->gap = late;
        break;
      default: {  // happens twice
        auto again = std::make_shared<Job<T>>(*job);
        again->answered = false;
        again->gap = random.Chance(0.5) ? late : job->gap;
        model_.world().After(start + job->gap / 2, Place(), [this, again] { Step<T>(again); });
        break;
      }
    }
  }
  model_.world().After(start, Place(), [this, job] { Step<T>(job); });
}

template <typename T>
void RegistryPort::Step(std::shared_ptr<Job<T>> job) {
  if (model_.away()) {
    // What is under way fails, or is held up on its way until the registry is back.
    if (job->answered && model_.random().Chance(0.5))
      Answer(*job, Result<T>(Unavailable("the registry is away")), model_.setup().latency_max);
    job->answered = false;
    if (model_.random().Chance(model_.setup().held_up)) {
      model_.world().At(model_.away_until() + model_.random().Between(Duration(1), seconds(1)),
                        Place(), [this, job] { Step<T>(job); });
    }
    return;
  }
  if (ended_ || !job->answered) ++model_.stats().late_writes;
  std::optional<Result<T>> result = job->step(job->steps++);
  if (!result && job->steps >= kMaxSteps) result = Result<T>(Unavailable("others are faster"));
  if (!result) {
    model_.world().After(job->gap, Place(), [this, job] { Step<T>(job); });
    return;
  }
  model_.world().Note(result->ok() ? What::kExecute : What::kRefused, server_, -1, job->steps,
                      result->ok() ? 0 : static_cast<std::int64_t>(result->error().code));
  if (job->answered) {
    const Duration back =
        model_.random().Between(model_.setup().latency_min, model_.setup().latency_max);
    Answer(*job, *std::move(result), job->answer_late + back);
  }
}

template <typename T>
void RegistryPort::Answer(const Job<T>& job, Result<T> result, Duration late) {
  if (ended_) return;
  model_.world().After(
      late, server_,
      [this, done = job.done, deadline = job.deadline, result = std::move(result)]() mutable {
        if constexpr (std::is_same_v<T, WorkerRight>) {
          // A keeper that has given up waiting has not heard it.
          if (!result.ok() && result.error().code == Code::kConflict && clock_.Now() <= deadline) {
            ++model_.stats().conflicts;
            disowned_ = true;
          }
          if (result.ok()) disowned_ = false;
        }
        done(std::move(result));
      });
}

// As RowRegistry: read, plan, write if nothing has changed, else once more.
RegistryPort::Steps RegistryPort::ClaimRows(ClaimAsk ask) {
  auto plan = std::make_shared<std::optional<ClaimPlan>>();
  auto old = std::make_shared<std::optional<RegistryModel::Record>>();
  auto read_ms = std::make_shared<std::optional<std::int64_t>>();
  return [this, ask = std::move(ask), plan, old,
          read_ms](int step) -> std::optional<Result<WorkerRight>> {
    RegistryStats& stats = model_.stats();
    if (step % 2 == 0) {
      std::vector<WorkerRow> rows;
      for (const auto& [worker, record] : model_.records()) rows.push_back(record.row);
      *read_ms = model_.ClockForPlans();
      if (model_.mutant() == RegistryMutant::kFloorIsNow) {
        for (WorkerRow& row : rows)
          row.record.limit_ms = std::min(row.record.limit_ms, read_ms->value_or(ask.now_ms));
      }
      auto made = PlanClaim(rows, ask, *read_ms);
      if (!made.ok()) return Result<WorkerRight>(made.error());
      *plan = std::move(made).value();
      old->reset();
      const auto found = model_.records().find((*plan)->worker);
      if (found != model_.records().end()) *old = found->second;
    }
    const ClaimPlan& chosen = **plan;
    WorkerRight right;
    right.worker = chosen.worker;
    right.generation = chosen.generation;
    right.owner = ask.owner;
    right.floor_ms = chosen.floor_ms;
    right.limit_ms = chosen.limit_ms;
    right.registry_ms = *read_ms;
    right.free_workers = chosen.free_workers;
    if (step % 2 == 0) return std::nullopt;
    WorkerRow row;
    row.record.worker = chosen.worker;
    row.record.generation = chosen.generation;
    row.record.owner = ask.owner;
    row.record.identity = ask.identity;
    row.record.limit_ms = chosen.limit_ms;
    row.layout = ask.layout;
    if (!model_.Write(*old, row)) return std::nullopt;
    const std::int64_t before = *old ? (*old)->row.record.limit_ms : 0;
    ++(chosen.kind == ClaimPlan::Kind::kCreate  ? stats.creates
       : chosen.kind == ClaimPlan::Kind::kAdopt ? stats.adopts
                                                : stats.takes);
    model_.checker().Granted(ask.owner, chosen.worker, before, chosen.limit_ms);
    model_.world().Note(What::kGrant, server_, -1, chosen.worker, chosen.limit_ms);
    return Result<WorkerRight>(right);
  };
}

// As LeafLayout: where nothing proves that this server wrote the node, a young one is watched.
Result<std::int64_t> RegistryPort::NodeFloor(const ClaimAsk& ask,
                                             const RegistryModel::Record& node) {
  const WorkerRecord& record = node.row.record;
  const auto& journal = ask.journal;
  if (journal && journal->worker == record.worker && journal->generation == record.generation &&
      journal->limit_ms == record.limit_ms)
    return journal->short_ms;
  for (const Memory::Write& write : memory_->writes) {
    if (write.version == record.generation && write.limit_ms == record.limit_ms)
      return write.floor_ms;
  }
  const Instant now = clock_.Now();
  const bool watched = memory_->watched_version >= 0;
  if (!watched || memory_->watched_version != record.generation) {
    memory_->watched_version = record.generation;
    memory_->watched_since = now;
    if (watched) return Conflict("another process writes the node");
  }
  const bool quiet = now - memory_->watched_since >= kWatch;
  if (!quiet && model_.ClockMillis() - node.written_ms < kNodeAliveMs)
    return Conflict("the node is watched");
  return record.limit_ms + kNodeAliveMs;
}

RegistryPort::Steps RegistryPort::ClaimNode(ClaimAsk ask) {
  auto from = std::make_shared<std::optional<RegistryModel::Record>>();
  auto right = std::make_shared<WorkerRight>();
  return [this, ask = std::move(ask), from, right](int step) -> std::optional<Result<WorkerRight>> {
    auto& records = model_.records();
    if (step == 0) {
      const auto own = std::find_if(records.begin(), records.end(), [&](const auto& each) {
        return each.second.row.record.identity == ask.identity;
      });
      const bool fresh = own == records.end();
      if (fresh && static_cast<std::int64_t>(records.size()) >= ask.workers)
        return Result<WorkerRight>(Conflict("the numbers are used up"));
      const std::int64_t worker = fresh ? static_cast<std::int64_t>(records.size()) : own->first;
      if (std::find(ask.excluded.begin(), ask.excluded.end(), worker) != ask.excluded.end())
        return Result<WorkerRight>(Unavailable("in use by another process of this host"));
      auto limit = LimitWithin(ask.now_ms, ask.lease_ms, model_.ClockMillis());
      if (!fresh) {
        auto floor = NodeFloor(ask, own->second);
        if (!floor.ok()) return Result<WorkerRight>(floor.error());
        right->floor_ms = *floor;
        *from = own->second;
      }
      if (!limit.ok()) return Result<WorkerRight>(limit.error());
      right->worker = worker;
      right->owner = ask.owner;
      right->generation = fresh ? 0 : own->second.row.record.generation + 1;
      right->limit_ms = fresh ? *limit : std::max(*limit, own->second.row.record.limit_ms);
      if (right->floor_ms >= right->limit_ms)
        return Result<WorkerRight>(Conflict("the worker rests"));
      return std::nullopt;
    }
    WorkerRow row;
    row.record = {right->worker, right->generation, ask.owner, ask.identity, right->limit_ms, ""};
    if (!model_.Write(*from, row))
      return Result<WorkerRight>(Conflict("another process writes the node"));
    ++(*from ? model_.stats().takes : model_.stats().creates);
    memory_->writes.push_back({right->generation, right->limit_ms, right->floor_ms});
    model_.checker().Granted(identity_, right->worker, right->floor_ms, right->limit_ms);
    model_.world().Note(What::kGrant, server_, -1, right->worker, right->limit_ms);
    right->registry_ms = model_.ClockMillis();
    return Result<WorkerRight>(*right);
  };
}

// As FixedRegistry: one write, by nobody else.
RegistryPort::Steps RegistryPort::ClaimFixed(ClaimAsk ask) {
  return [this, ask = std::move(ask)](int) -> std::optional<Result<WorkerRight>> {
    const auto found = model_.records().find(fixed_worker_);
    const WorkerRecord* old = found == model_.records().end() ? nullptr : &found->second.row.record;
    WorkerRight right;
    right.worker = fixed_worker_;
    right.owner = ask.owner;
    right.limit_ms = ask.now_ms + ask.lease_ms;
    right.generation = 1;
    if (old != nullptr) {
      const bool proven = ask.journal && ask.journal->worker == fixed_worker_ &&
                          ask.journal->owner == old->owner &&
                          ask.journal->generation == old->generation;
      right.floor_ms = proven ? std::min(ask.journal->short_ms, old->limit_ms) : old->limit_ms;
      right.limit_ms = std::max(right.limit_ms, old->limit_ms);
      right.generation = old->generation + (old->owner == ask.owner ? 0 : 1);
    }
    WorkerRow row;
    row.record = {fixed_worker_, right.generation, ask.owner, ask.identity, right.limit_ms, ""};
    ++(old != nullptr ? model_.stats().takes : model_.stats().creates);
    model_.records()[fixed_worker_] = {row, model_.ClockMillis()};
    model_.checker().Granted(identity_, fixed_worker_, right.floor_ms, right.limit_ms);
    model_.world().Note(What::kGrant, server_, -1, right.worker, right.limit_ms);
    return Result<WorkerRight>(right);
  };
}

void RegistryPort::Claim(ClaimAsk ask, Done<WorkerRight> done) {
  const Instant deadline = ask.deadline;
  Steps steps;
  switch (model_.setup().kind) {
    case RegistryKind::kNodes:
      steps = ClaimNode(std::move(ask));
      break;
    case RegistryKind::kFixed:
      steps = ClaimFixed(std::move(ask));
      break;
    default:
      steps = ClaimRows(std::move(ask));
  }
  Send<WorkerRight>(std::move(steps), deadline, std::move(done));
}

RegistryPort::Steps RegistryPort::MoveRow(WorkerRight right, LimitFor limit_for) {
  auto from = std::make_shared<std::optional<RegistryModel::Record>>();
  auto read_ms = std::make_shared<std::optional<std::int64_t>>();
  return [this, right = std::move(right), limit_for = std::move(limit_for), from,
          read_ms](int step) -> std::optional<Result<WorkerRight>> {
    if (step % 2 == 0) {
      const auto found = model_.records().find(right.worker);
      if (found == model_.records().end()) return Result<WorkerRight>(Conflict("no such row"));
      *from = found->second;
      *read_ms = model_.ClockForPlans();
    }
    WorkerRow to = (*from)->row;
    if (to.record.owner != right.owner || to.record.generation != right.generation)
      return Result<WorkerRight>(Conflict("the right is lost"));
    const std::int64_t present = to.record.limit_ms;
    to.record.limit_ms = limit_for(present);
    WorkerRight moved = right;
    moved.limit_ms = to.record.limit_ms;
    moved.registry_ms = *read_ms;
    const bool unwritten =
        moved.limit_ms > present && model_.mutant() == RegistryMutant::kExtendUnwritten;
    if (moved.limit_ms == present || unwritten) return Result<WorkerRight>(moved);
    if (step % 2 == 0 && traits().bound == false) return std::nullopt;
    if (!model_.Write(*from, to)) return std::nullopt;
    model_.checker().Limited(Holder(right.owner), right.worker, moved.limit_ms);
    model_.world().Note(What::kRaise, server_, -1, right.worker, moved.limit_ms);
    return Result<WorkerRight>(moved);
  };
}

RegistryPort::Steps RegistryPort::MoveNode(WorkerRight right, LimitFor limit_for) {
  return [this, right = std::move(right),
          limit_for = std::move(limit_for)](int) mutable -> std::optional<Result<WorkerRight>> {
    const auto found = model_.records().find(right.worker);
    if (found == model_.records().end() || found->second.row.record.identity != identity_)
      return Result<WorkerRight>(Conflict("the node was removed"));
    const WorkerRecord& old = found->second.row.record;
    if (old.generation != right.generation && model_.mutant() != RegistryMutant::kBlindWrites) {
      // Perhaps by a write of ours that was taken for lost.
      const bool ours =
          old.generation == right.generation + 1 &&
          std::any_of(memory_->writes.begin(), memory_->writes.end(), [&](const auto& write) {
            return write.version == old.generation && write.limit_ms == old.limit_ms;
          });
      if (!ours) return Result<WorkerRight>(Conflict("another process wrote the node"));
      right.generation = old.generation;
      right.limit_ms = old.limit_ms;
    }
    right.limit_ms = limit_for(right.limit_ms);
    ++right.generation;
    right.registry_ms = model_.ClockMillis();
    if (model_.mutant() == RegistryMutant::kExtendUnwritten) return Result<WorkerRight>(right);
    WorkerRow to = found->second.row;
    to.record.owner = right.owner;
    to.record.generation = right.generation;
    to.record.limit_ms = right.limit_ms;
    model_.Write(found->second, to);
    memory_->writes.push_back({right.generation, right.limit_ms, right.floor_ms});
    model_.checker().Limited(identity_, right.worker, right.limit_ms);
    model_.world().Note(What::kRaise, server_, -1, right.worker, right.limit_ms);
    return Result<WorkerRight>(right);
  };
}

RegistryPort::Steps RegistryPort::Move(WorkerRight right, LimitFor limit_for) {
  if (model_.setup().kind == RegistryKind::kNodes)
    return MoveNode(std::move(right), std::move(limit_for));
  return MoveRow(std::move(right), std::move(limit_for));
}

void RegistryPort::Extend(WorkerRight right, std::int64_t limit_ms, std::int64_t lease_ms,
                          Instant deadline, Done<WorkerRight> done) {
  ++model_.stats().extends;
  auto limit_for = [this, limit_ms, lease_ms](std::int64_t present) {
    std::int64_t limit = limit_ms;
    if (const auto registry_ms = model_.ClockForPlans())
      limit = std::min(limit, *registry_ms + lease_ms + kClockToleranceMs);
    return std::max(limit, present);
  };
  Send<WorkerRight>(Move(std::move(right), limit_for), deadline, std::move(done));
}

void RegistryPort::Lower(WorkerRight right, std::int64_t limit_ms, Instant deadline,
                         Done<WorkerRight> done) {
  ++model_.stats().lowers;
  auto limit_for = [limit_ms](std::int64_t present) { return std::min(limit_ms, present); };
  Send<WorkerRight>(Move(std::move(right), limit_for), deadline, std::move(done));
}

void RegistryPort::List(Instant deadline, Done<std::vector<WorkerRecord>> done) {
  using Records = std::vector<WorkerRecord>;
  Send<Records>(
      [this](int) -> std::optional<Result<Records>> {
        Records records;
        for (const auto& [worker, record] : model_.records()) records.push_back(record.row.record);
        return Result<Records>(std::move(records));
      },
      deadline, std::move(done));
}

void RegistryPort::Retire(std::int64_t worker, Instant deadline, Done<WorkerRecord> done) {
  Send<WorkerRecord>(
      [this, worker](int) -> std::optional<Result<WorkerRecord>> {
        const auto found = model_.records().find(worker);
        if (found == model_.records().end())
          return Result<WorkerRecord>(Error{Code::kNotFound, "no such worker"});
        if (traits().bound) return Result<WorkerRecord>(Conflict("bound to its node"));
        const WorkerRecord was = found->second.row.record;
        found->second.row.record.owner.clear();
        ++found->second.row.record.generation;
        ++model_.stats().retires;
        return Result<WorkerRecord>(was);
      },
      deadline, std::move(done));
}

RegistryStatus RegistryPort::Status() const {
  RegistryStatus status;
  status.kind = Name(model_.setup().kind);
  status.up = !model_.away();
  return status;
}

}  // namespace leaf::sim
