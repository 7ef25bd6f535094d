#include "simulation.h"

#include <algorithm>
#include <utility>

#include "core/segment/lineage.h"

namespace leaf::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kLeastAnswers = 20;
constexpr std::uint64_t kLeastGrants = 3;

}  // namespace

bool Report::Broke(Rule rule) const {
  return std::any_of(violations.begin(), violations.end(),
                     [rule](const Checker::Violation& each) { return each.rule == rule; });
}

Simulation::Simulation(const Plan& plan)
    : plan_(plan),
      random_(plan.seed),
      world_(plan.servers),
      checker_(world_, plan.servers, plan.tags + plan.absent),
      store_(world_, checker_, random_.Fork(2), plan.store, plan.tags + plan.absent) {
  for (int i = 0; i < plan_.servers; ++i) {
    servers_.push_back(std::make_unique<SimServer>(world_, store_, checker_, random_.Fork(3), i,
                                                   plan_.tags + plan_.absent, plan_.server));
  }
}

std::int64_t Simulation::AnyStep() {
  constexpr std::int64_t kSteps[] = {1, 2, 10, 100, 1000};
  return random_.OneOf(kSteps);
}

void Simulation::MakeRows() {
  for (int tag = 0; tag < plan_.tags; ++tag) {
    std::int64_t max_id = random_.Chance(0.5) ? 1 : random_.Between(0, 1'000'000);
    const std::int64_t step = AnyStep();
    if (plan_.near_end && tag == 0) max_id = kMaxEnd - random_.Between(0, 200 * step);
    (void)store_.Create(kWorld, TagName(tag), step, max_id);
  }
  snapshot_ = replica_ = store_.table();
}

// Clients.

Wish Simulation::Draw() {
  Wish wish;
  const int names = plan_.tags + plan_.absent;
  const bool skewed = random_.Chance(0.5);
  wish.tag = skewed ? 0 : static_cast<int>(random_.Below(static_cast<std::uint64_t>(names)));
  if (random_.Chance(plan_.batches)) {
    wish.count = random_.Chance(0.1) ? random_.Between(1, 20'000) : random_.Between(1, 300);
    wish.one_piece = random_.Chance(0.3);
  }
  if (random_.Chance(plan_.leaving)) {
    wish.leaves_after = random_.Between(Duration{}, plan_.server.options.wait);
  }
  return wish;
}

void Simulation::PlanArrival(int server) {
  const Duration gap = random_.Between(Duration{}, 2 * plan_.arrivals);
  world_.After(gap, kWorld, [this, server] {
    if (over_) return;
    const std::int64_t burst = random_.Chance(0.2) ? random_.Between(1, plan_.burst) : 1;
    for (std::int64_t i = 0; i < burst; ++i)
      servers_[static_cast<std::size_t>(server)]->Request(Draw());
    PlanArrival(server);
  });
}

// Other programs on the same table.
void Simulation::PlanForeign() {
  world_.After(random_.Between(milliseconds(20), seconds(2)), kWorld, [this] {
    if (over_) return;
    const int tag = AnyTag();
    const StoreModel::TableRow* row = store_.Find(TagName(tag));
    if (row != nullptr && row->step > 0 && store_.locked_until(tag) <= world_.now()) {
      const Grant grant = store_.Reserve(plan_.servers, TagName(tag), row->step);
      if (grant.outcome == Outcome::kGranted) checker_.Foreign(tag, grant.range);
    }
    PlanForeign();
  });
}

// Trouble.

void Simulation::PlanTrouble() {
  const auto mean = Duration(static_cast<Duration::rep>(1e9 / plan_.trouble));
  world_.After(random_.Between(Duration{}, 2 * mean), kWorld, [this] {
    if (over_) return;
    Trouble();
    PlanTrouble();
  });
}

void Simulation::Trouble() {
  if ((plan_.kind == Kind::kRegressing || plan_.undeclared_restores) && random_.Chance(0.2)) {
    Regression();
    return;
  }
  if (plan_.kind == Kind::kFailover && random_.Chance(0.3)) {
    TakeOver();
    return;
  }
  switch (random_.Below(4)) {
    case 0:
      StoreTrouble();
      break;
    case 1:
      ServerTrouble();
      break;
    case 2:
      HandEdit();
      break;
    default:
      Administration();
      break;
  }
}

void Simulation::StoreTrouble() {
  if (random_.Chance(0.5)) {
    ++report_.locks;
    store_.Lock(AnyTag(), world_.now() + random_.Between(milliseconds(50), seconds(8)));
    return;
  }
  if (store_.outage() != Outage::kNone) return;
  ++report_.outages;
  const Outage kind = random_.Chance(0.5) ? Outage::kRefusing : Outage::kHanging;
  world_.Note(What::kOutage, kWorld, -1, static_cast<std::int64_t>(kind));
  store_.BeginOutage(kind);
  world_.After(random_.Between(milliseconds(20), seconds(8)), kWorld,
               [this] { store_.EndOutage(); });
}

void Simulation::ServerTrouble() {
  const auto at = static_cast<int>(random_.Below(servers_.size()));
  SimServer& server = *servers_[static_cast<std::size_t>(at)];
  // Without a memory it would be a server that knew nothing of a failover.
  const bool remembers = !server.journal().durable().empty();
  switch (plan_.kind == Kind::kFailover && !remembers ? 2 : random_.Below(3)) {
    case 0:
      server.Kill();
      Revive(at, random_.Between(Duration{}, seconds(4)));
      break;
    case 1:
      server.journal().FailSync(random_.Chance(0.2));
      server.Stop();
      Revive(at, random_.Between(Duration{}, seconds(4)));
      break;
    default:
      if (server.serving()) server.Pause(random_.Between(milliseconds(1), seconds(10)));
      break;
  }
}

void Simulation::Revive(int server, Duration after) {
  world_.After(after, kWorld, [this, server] {
    SimServer& node = *servers_[static_cast<std::size_t>(server)];
    if (node.serving() || stopping_) return;
    if (node.down()) {
      node.Start();
    } else {
      Revive(server, milliseconds(300));
    }
  });
}

void Simulation::HandEdit() {
  const int tag = AnyTag();
  const StoreModel::TableRow* row = store_.Find(TagName(tag));
  if (row == nullptr) return;
  switch (random_.Below(4)) {
    case 0:
      (void)store_.SetStep(TagName(tag), AnyStep());
      break;
    case 1: {
      (void)store_.SetStep(TagName(tag), random_.Chance(0.5) ? 0 : -random_.Between(1, 1000));
      world_.After(random_.Between(milliseconds(100), seconds(5)), kWorld,
                   [this, tag, step = AnyStep()] {
                     if (store_.Find(TagName(tag)) != nullptr)
                       (void)store_.SetStep(TagName(tag), step);
                   });
      break;
    }
    case 2:
      if (row->max_id < kMaxEnd - 1'000'000)
        store_.Edit(tag, row->max_id + random_.Between(1, 100'000));
      break;
    default:
      DeleteAndRemake(tag);
      break;
  }
}

// A server that makes a missing row by itself knows its own marks only, so that in legal histories
// no row is deleted where servers may do so.
bool Simulation::MayDelete() const {
  if (plan_.kind == Kind::kFailover) return false;
  return plan_.kind == Kind::kRegressing || !plan_.server.options.auto_create;
}

void Simulation::DeleteAndRemake(int tag) {
  if (!MayDelete()) return;
  ++report_.deletions;
  const std::int64_t step = AnyStep();
  (void)store_.Delete(TagName(tag));
  world_.After(random_.Between(milliseconds(1), seconds(20)), kWorld,
               [this, tag, step] { Remake(tag, step); });
}

void Simulation::Remake(int tag, std::int64_t step) {
  if (store_.Find(TagName(tag)) != nullptr) return;
  const std::int64_t above = random_.Chance(0.5) ? 0 : random_.Between(0, 1000);
  std::int64_t max_id = store_.HighWater(tag);
  if (max_id < kMaxEnd - above) max_id += above;
  if (plan_.kind == Kind::kRegressing && random_.Chance(0.3)) {
    max_id = random_.Between(0, max_id);
    ++report_.regressions;
  }
  (void)store_.Create(kWorld, TagName(tag), step, max_id);
}

void Simulation::Regression() {
  ++report_.regressions;
  const int tag = AnyTag();
  const StoreModel::TableRow* row = store_.Find(TagName(tag));
  if (plan_.undeclared_restores || random_.Chance(0.4)) {
    store_.Restore(snapshot_, !plan_.undeclared_restores);
  } else if (row != nullptr) {
    const std::int64_t back = random_.Chance(0.3) ? row->max_id : random_.Between(1, 3000);
    store_.Edit(tag, std::max<std::int64_t>(0, row->max_id - back));
  }
  snapshot_ = store_.table();
}

void Simulation::PlanReplica() {
  world_.After(random_.Between(Duration{}, 2 * plan_.lag), kWorld, [this] {
    replica_ = store_.table();
    if (!over_) PlanReplica();
  });
}

// A skip covers what is lost while that is less; so not where the replica lacks a skip as well.
void Simulation::TakeOver() {
  for (const auto& server : servers_) {
    if (!server->serving() && server->journal().durable().empty()) return;  // would know nothing
  }
  for (const auto& [name, row] : store_.table()) {
    const auto copy = replica_.find(name);
    const std::int64_t kept = copy == replica_.end() ? 0 : copy->second.max_id;
    if (row.max_id - kept >= kFailoverSkip) return;
  }
  ++report_.take_overs;
  store_.TakeOver(replica_, AllRememberThisStore() && random_.Chance(0.5));
}

// To a server that heard nothing of the store in between, one that comes back is that of before.
bool Simulation::AllRememberThisStore() const {
  return std::all_of(servers_.begin(), servers_.end(), [this](const auto& server) {
    Lineage lineage;
    for (const auto& [tag, mark] : server->journal().durable())
      lineage.Remember(mark.generation, mark.store);
    return lineage.current() > 0 && lineage.Hear(store_.identity(), 0).word == Lineage::Word::kSame;
  });
}

void Simulation::Administration() {
  const int tag = AnyTag();
  SimServer& server = AnyServer();
  switch (random_.Below(4)) {
    case 0:
      server.Drop(tag);
      break;
    case 1:
      server.PutStep(tag, AnyStep());
      break;
    case 2:
      if (!MayDelete()) break;
      server.Delete(tag);
      ++report_.deletions;
      world_.After(random_.Between(seconds(1), seconds(20)), kWorld,
                   [this, tag, step = AnyStep()] { Remake(tag, step); });
      break;
    default:
      snapshot_ = store_.table();
      break;
  }
}

// The operator lets stopped tags go on.
void Simulation::PlanOperator() {
  world_.After(random_.Between(milliseconds(200), seconds(5)), kWorld, [this] {
    if (over_) return;
    for (int tag = 0; tag < plan_.tags; ++tag) {
      for (const auto& server : servers_) {
        if (server->Stopped(tag)) server->Resume(tag, random_.Between(0, 2000));
      }
    }
    PlanOperator();
  });
}

// The end: trouble ceases, and then every server must serve every tag.

bool Simulation::CanServe(int tag) const {
  const StoreModel::TableRow* row = store_.Find(TagName(tag));
  return row != nullptr && row->max_id < kMaxEnd - 1'000'000;
}

bool Simulation::AskEverybody(Instant since) {
  bool all = true;
  for (int tag = 0; tag < plan_.tags; ++tag) {
    if (!CanServe(tag)) continue;
    for (const auto& server : servers_) {
      if (server->serving() && server->last_served(tag) > since) continue;
      all = false;
      if (server->Stopped(tag)) server->Resume(tag, random_.Between(0, 100));
      Wish wish;
      wish.tag = tag;
      server->Request(wish);
    }
  }
  return all;
}

void Simulation::Recover() {
  over_ = true;
  store_.EndFaults();
  for (int tag = 0; tag < plan_.tags; ++tag) {
    const StoreModel::TableRow* row = store_.Find(TagName(tag));
    if (row == nullptr) {
      Remake(tag, 10);
    } else if (row->step <= 0) {
      (void)store_.SetStep(TagName(tag), 10);
    }
  }
  for (int i = 0; i < plan_.servers; ++i) {
    SimServer& server = *servers_[static_cast<std::size_t>(i)];
    server.journal().FailSync(false);
    Revive(i, Duration{});
  }
  Instant awake = world_.now();
  for (int i = 0; i < plan_.servers; ++i) awake = std::max(awake, world_.paused_until(i));
  world_.RunUntil(awake);
}

void Simulation::Settle() {
  const Instant since = world_.now();
  const Instant latest = since + 2 * plan_.server.options.refresh + seconds(25);
  while (!AskEverybody(since)) {
    if (world_.now() > latest) {
      checker_.Fail(Rule::kProgress,
                    "after the end of all trouble a tag is not served by every server");
      return;
    }
    world_.RunUntil(world_.now() + milliseconds(250));
  }
}

void Simulation::StopAll() {
  stopping_ = true;
  for (const auto& server : servers_) server->Stop();
  world_.RunUntil(world_.now() + seconds(15));
  for (const auto& server : servers_) {
    if (!server->down())
      checker_.Fail(Rule::kStop, "a server is not down long after its clean stop");
    if (server->open_requests() > 0) checker_.Fail(Rule::kDeadline, "a request never ended");
  }
}

Report Simulation::Run() {
  MakeRows();
  for (int i = 0; i < plan_.servers; ++i) {
    Revive(i, random_.Between(Duration{}, milliseconds(500)));
    PlanArrival(i);
  }
  if (plan_.trouble > 0) PlanTrouble();
  if (plan_.foreign) PlanForeign();
  if (plan_.kind != Kind::kLegal) PlanOperator();
  if (plan_.kind == Kind::kFailover) PlanReplica();
  world_.RunUntil(world_.now() + plan_.length);
  Recover();
  Settle();
  StopAll();
  return MakeReport();
}

Report Simulation::MakeReport() {
  Report report = report_;
  report.seed = plan_.seed;
  report.hash = world_.trace().hash();
  report.events = world_.events();
  report.ids = checker_.ids();
  report.answers = checker_.answers();
  report.excused = checker_.excused();
  report.violations = checker_.violations();
  for (const auto& server : servers_) {
    const ServerStats& stats = server->stats();
    report.stats.requests += stats.requests;
    report.stats.served += stats.served;
    report.stats.parked += stats.parked;
    report.stats.failed += stats.failed;
    report.stats.cancelled += stats.cancelled;
    report.stats.abandoned += stats.abandoned;
    report.stats.asks += stats.asks;
    report.stats.grants += stats.grants;
    report.stats.stale += stats.stale;
    report.stats.kills += stats.kills;
    report.stats.clean_stops += stats.clean_stops;
    report.stats.moves += stats.moves;
    report.stats.full_hand_backs += stats.full_hand_backs;
  }
  report.is_void = report.answers < kLeastAnswers || report.stats.grants < kLeastGrants;
  report.trace = checker_.trace();
  return report;
}

}  // namespace leaf::sim
