#include "snowflake_simulation.h"

#include <algorithm>
#include <chrono>

namespace leaf::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kHour = 3'600'000, kYear = 365 * 24 * kHour;

std::string IdentityOf(const SnowflakePlan& plan, int server) {
  return "10.0.0." + std::to_string(plan.twin && server == 1 ? 0 : server) + ":8090";
}

}  // namespace

bool SnowflakeReport::Broke(SnowflakeRule rule) const {
  return std::any_of(violations.begin(), violations.end(),
                     [rule](const auto& each) { return each.rule == rule; });
}

SnowflakeSimulation::SnowflakeSimulation(const SnowflakePlan& plan)
    : plan_(plan), random_(plan.seed), world_(plan.servers), checker_(plan.server.options.layout) {
  const int registries = plan.kind == SnowflakeKind::kSplit ? plan.servers : 1;
  for (int i = 0; i < registries; ++i)
    registries_.push_back(
        std::make_unique<RegistryModel>(plan.registry, world_, checker_, random_.Fork(100)));
  for (int i = 0; i < plan.hosts; ++i)
    hosts_.push_back(std::make_unique<SnowflakeHost>(world_, random_.Fork(200), plan.jitter_ms));
  for (int i = 0; i < plan.servers; ++i) {
    SnowflakeSetup setup = plan.server;
    setup.options.identity = IdentityOf(plan, i);
    servers_.push_back(std::make_unique<SnowflakeServer>(
        i, setup, world_, checker_, *registries_[static_cast<std::size_t>(i % registries)],
        *hosts_[static_cast<std::size_t>(i % plan.hosts)], random_.Fork(300)));
  }
}

SnowflakeReport SnowflakeSimulation::Run() {
  for (int i = 0; i < plan_.servers; ++i) {
    Revive(i, random_.Between(Duration(0), milliseconds(200)));
    PlanArrival(i);
  }
  if (plan_.trouble > 0) PlanTrouble();
  const Instant end = Instant() + plan_.length;
  while (world_.now() < end && checker_.violations().empty())
    world_.RunUntil(std::min(end, world_.now() + milliseconds(100)));
  return MakeReport();
}

void SnowflakeSimulation::PlanArrival(int server) {
  world_.After(random_.Between(Duration(1), 2 * plan_.arrivals), kWorld, [this, server] {
    const auto burst = random_.Between(1, plan_.burst);
    for (std::int64_t i = 0; i < burst; ++i) {
      const std::int64_t count = random_.Chance(0.3) ? random_.Between(1, plan_.batch) : 1;
      std::optional<Duration> patience;
      if (random_.Chance(plan_.leaving))
        patience = random_.Between(Duration(1), plan_.server.options.wait);
      // Within the life of the server's process, and not while it is paused.
      world_.After(Duration(i), server,
                   [this, server, count, patience] { At(server).Request(count, patience); });
    }
    PlanArrival(server);
  });
}

void SnowflakeSimulation::Revive(int server, Duration after) {
  world_.After(after, kWorld, [this, server] { At(server).Start(); });
}

void SnowflakeSimulation::PlanTrouble() {
  const auto gap = Duration(static_cast<std::int64_t>(2e9 / plan_.trouble));
  world_.After(random_.Between(Duration(1), gap), kWorld, [this] {
    if (plan_.kind == SnowflakeKind::kCalm) {
      CalmTrouble();
    } else {
      Trouble();
    }
    PlanTrouble();
  });
}

void SnowflakeSimulation::Outage(Duration length) {
  ++report_.outages;
  RegistryModel& registry = *registries_[random_.Below(registries_.size())];
  registry.GoAway(world_.now() + length);
  world_.Note(What::kOutage, kWorld, -1, length.count());
}

void SnowflakeSimulation::Pause(int server, Duration length) {
  if (!At(server).alive()) return;
  ++report_.pauses;
  world_.Pause(server, std::max(world_.paused_until(server), world_.now() + length));
  world_.Note(What::kPause, server, -1, length.count());
}

void SnowflakeSimulation::Trouble() {
  const Duration lease = plan_.server.options.lease;
  if (plan_.kind == SnowflakeKind::kSplit) {
    if (random_.Chance(0.5)) return Outage(random_.Between(milliseconds(10), lease));
    return Pause(AnyServer(), random_.Between(milliseconds(10), 3 * lease));
  }
  switch (random_.Below(10)) {
    case 0:
    case 1:
      return Pause(AnyServer(), random_.Between(milliseconds(10), 3 * lease));
    case 2:
      return Outage(random_.Between(milliseconds(10), 2 * lease));
    case 3:
    case 4:
      return ClockTrouble();
    case 5:
      if (random_.Chance(0.5)) return registries_.front()->TouchNode();
      return At(AnyServer())
          .Retire(random_.Between(std::int64_t{0}, plan_.server.options.layout.workers() - 1));
    case 6:
      if (random_.Chance(0.3)) return Reboot();
      return Copy();
    default:
      return ServerTrouble();
  }
}

void SnowflakeSimulation::ClockTrouble() {
  const std::int64_t drift = plan_.server.options.drift.count() / 1'000'000;
  std::int64_t step = random_.Between(-drift, drift);
  SnowflakeHost& host = *hosts_[random_.Below(hosts_.size())];
  if (plan_.wild_clocks) {
    constexpr std::int64_t kSteps[] = {-1,    -100,   -10'000, -kHour, -kYear,
                                       1'500, 10'000, kHour,   kYear};
    step = random_.OneOf(kSteps);
    // Back to the truth, as an administrator sets it, or away from it.
    if (host.wall_ms() != 0 && random_.Chance(0.6)) step = -host.wall_ms();
    if (random_.Chance(0.1)) registries_.front()->StepClock(random_.Between(-20'000, 20'000));
  }
  ++report_.steps;
  host.StepWall(step);
  world_.Note(What::kSetStep, kWorld, -1, step);
}

void SnowflakeSimulation::ServerTrouble() {
  const int server = AnyServer();
  SnowflakeServer& victim = At(server);
  if (!victim.alive()) return;
  const Duration lease = plan_.server.options.lease;
  const Duration down =
      random_.Between(milliseconds(1), random_.Chance(0.5) ? Duration(seconds(1)) : 2 * lease);
  if (random_.Chance(0.4)) {
    world_.After(Duration(1), server, [&victim] { victim.Stop(); });
    return Revive(server, down + 5 * plan_.server.options.call_timeout);
  }
  victim.Kill();
  if (random_.Chance(0.3)) victim.LoseOrder();
  if (random_.Chance(0.3)) victim.LoseJournal();
  Revive(server, down);
}

void SnowflakeSimulation::Reboot() {
  ++report_.reboots;
  const std::size_t machine = random_.Below(hosts_.size());
  for (int i = 0; i < plan_.servers; ++i) {
    SnowflakeServer& server = At(i);
    if (&server.host() != hosts_[machine].get()) continue;
    server.Kill();
    server.MoveBoot();
    if (random_.Chance(0.5)) server.LoseOrder();
    Revive(i, random_.Between(seconds(1), plan_.server.options.lease + seconds(1)));
  }
  hosts_[machine]->Reboot();
}

void SnowflakeSimulation::Copy() {
  if (!plan_.twin) return;
  const int from = static_cast<int>(random_.Below(2));
  SnowflakeServer& to = At(1 - from);
  to.Kill();
  to.CopyFrom(At(from));
  Revive(1 - from, random_.Between(milliseconds(1), seconds(2)));
}

void SnowflakeSimulation::CalmTrouble() {
  // A request waits for `wait`, a call that met the outage for its timeout, the next try for a
  // second: what is left of the lease when it is to be extended has to cover that.
  const SnowflakeOptions& options = plan_.server.options;
  const Duration room = options.lease / 2 - options.drift - 3 * options.call_timeout - seconds(1);
  const bool bound = plan_.registry.kind == RegistryKind::kNodes;
  const std::int64_t drift = options.drift.count() / 1'000'000;
  switch (random_.Below(4)) {
    case 0:
      if (world_.now() < registries_.front()->away_until() + options.lease) return;
      return Outage(random_.Between(milliseconds(10), room));
    case 1:
    case 2: {
      if (world_.now() - last_step_ < 2 * options.drift) return;
      last_step_ = world_.now();
      const std::int64_t step = random_.Between(-drift, drift);
      ++report_.steps;
      SnowflakeHost& host = *hosts_[random_.Below(hosts_.size())];
      // Not further from the truth than a drift.
      host.StepWall(std::clamp(host.wall_ms() + step, -drift / 2, drift / 2) - host.wall_ms());
      world_.Note(What::kSetStep, kWorld, -1, step);
      return;
    }
    default: {
      const int server = AnyServer();
      At(server).Kill();
      Revive(server, random_.Between(milliseconds(1), seconds(bound ? 20 : 2)));
    }
  }
}

SnowflakeReport SnowflakeSimulation::MakeReport() {
  report_.violations = checker_.violations();
  if (!report_.violations.empty()) report_.trace = world_.trace().Tail(100);
  report_.ids = checker_.ids();
  report_.events = world_.events();
  for (const auto& server : servers_) {
    const SnowflakeStats& stats = server->stats();
    SnowflakeStats& sum = report_.servers;
    sum.answers += stats.answers;
    sum.parked += stats.parked;
    sum.served += stats.served;
    sum.failed += stats.failed;
    sum.cancelled += stats.cancelled;
    sum.starts += stats.starts;
    sum.kills += stats.kills;
    sum.stops += stats.stops;
    sum.copies += stats.copies;
    sum.unsynced += stats.unsynced;
  }
  for (const auto& registry : registries_) {
    const RegistryStats& stats = registry->stats();
    RegistryStats& sum = report_.registry;
    sum.calls += stats.calls;
    sum.faults += stats.faults;
    sum.creates += stats.creates;
    sum.takes += stats.takes;
    sum.adopts += stats.adopts;
    sum.extends += stats.extends;
    sum.lowers += stats.lowers;
    sum.conflicts += stats.conflicts;
    sum.retires += stats.retires;
    sum.foreign += stats.foreign;
    sum.late_writes += stats.late_writes;
  }
  report_.hash = world_.trace().hash();
  return report_;
}

}  // namespace leaf::sim
