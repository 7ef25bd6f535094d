#include <sstream>

#include "snowflake_simulation.h"

namespace leaf::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

SnowflakeOptions DrawOptions(SimRandom& random) {
  SnowflakeOptions options;
  constexpr int kSequenceBits[] = {2, 6, 12};
  constexpr std::int64_t kTicks[] = {1, 1, 10};
  options.layout.name = "custom";
  options.layout.epoch_ms = kLeafLayout.epoch_ms;
  options.layout.time_bits = 41;
  options.layout.worker_bits = static_cast<int>(random.Between(1, 2));
  options.layout.sequence_bits = random.OneOf(kSequenceBits);
  options.layout.tick_ms = random.OneOf(kTicks);
  options.lease = random.Between(seconds(1), seconds(15));
  options.drift = random.Between(milliseconds(200), seconds(5));
  options.wait = random.Between(milliseconds(500), seconds(3));
  options.call_timeout = random.Between(milliseconds(100), seconds(1));
  constexpr int kWaiters[] = {10, 100'000};
  options.max_waiters = random.OneOf(kWaiters);
  return options;
}

RegistrySetup DrawRegistry(SimRandom& random, Duration lease) {
  RegistrySetup setup;
  constexpr RegistryKind kKinds[] = {RegistryKind::kRowsWithClock, RegistryKind::kRowsWithClock,
                                     RegistryKind::kRows, RegistryKind::kNodes,
                                     RegistryKind::kFixed};
  setup.kind = random.OneOf(kKinds);
  setup.latency_min = random.Between(microseconds(100), milliseconds(2));
  setup.latency_max = setup.latency_min + random.Between(milliseconds(1), milliseconds(60));
  setup.faults = random.Chance(0.2) ? 0 : 0.01 * static_cast<double>(random.Between(1, 50));
  setup.held_up = 0.3;
  setup.longest = 2 * lease;
  setup.renew = random.Between(milliseconds(500), seconds(3));
  return setup;
}

void Calm(SimRandom& random, SnowflakePlan& plan) {
  SnowflakeSetup& server = plan.server;
  server.calm = true;
  server.stale = Duration::zero();
  server.save_faults = 0;
  server.options.layout.worker_bits = 5;
  server.options.layout.sequence_bits = 12;
  server.options.layout.tick_ms = 1;
  server.options.drift = random.Between(seconds(2), seconds(5));
  server.options.lease = random.Between(seconds(30), seconds(90));
  server.options.wait = seconds(3);
  server.options.call_timeout = milliseconds(500);
  server.options.max_waiters = 100'000;
  plan.registry.faults = plan.registry.held_up = 0;
  plan.registry.renew = seconds(3);
  plan.length = random.Between(seconds(60), seconds(200));
  plan.trouble = 0.1;
  plan.twin = plan.wild_clocks = false;
  plan.batch = 1;
  plan.leaving = 0;
  plan.jitter_ms = random.Chance(0.5) ? 2 : 0;
}

void Split(SnowflakePlan& plan) {
  plan.registry.kind = RegistryKind::kRows;
  plan.hosts = 1;
  plan.servers = 2;
  plan.twin = plan.wild_clocks = false;
}

}  // namespace

SnowflakePlan MakeSnowflakePlan(std::uint64_t seed, SnowflakeKind kind) {
  SimRandom random(seed ^ 0x51de4ea1);
  SnowflakePlan plan;
  plan.seed = seed;
  plan.kind = kind;
  plan.servers = static_cast<int>(random.Between(1, 4));
  plan.hosts = static_cast<int>(random.Between(1, plan.servers));
  plan.length = random.Between(seconds(10), seconds(60));
  plan.arrivals = random.Between(milliseconds(30), milliseconds(500));
  constexpr int kBursts[] = {1, 3, 20};
  plan.burst = random.OneOf(kBursts);
  constexpr std::int64_t kBatches[] = {1, 16, 300, 2000};
  plan.batch = random.OneOf(kBatches);
  plan.leaving = random.Chance(0.5) ? 0.2 : 0;
  plan.trouble = random.Chance(0.1) ? 0 : 0.1 + 0.01 * static_cast<double>(random.Between(0, 150));
  plan.wild_clocks = random.Chance(0.6);
  plan.jitter_ms = random.Chance(0.5) ? random.Between(1, 20) : 0;

  SnowflakeSetup& server = plan.server;
  server.options = DrawOptions(random);
  server.tick_late = random.Between(microseconds(1), milliseconds(5));
  server.post_late = random.Between(microseconds(1), milliseconds(1));
  server.save_min = microseconds(100);
  server.save_max = random.Between(milliseconds(1), milliseconds(30));
  server.save_faults = random.Chance(0.5) ? 0 : 0.1;
  server.stale = random.Chance(0.5) ? 3 * server.options.lease : Duration::zero();
  plan.registry = DrawRegistry(random, server.options.lease);
  // Workers that are bound to their servers: as many as there are.
  if (plan.registry.kind == RegistryKind::kNodes)
    plan.twin = plan.servers > 1 && random.Chance(0.6);
  if (plan.registry.kind == RegistryKind::kFixed || plan.registry.kind == RegistryKind::kNodes)
    server.options.layout.worker_bits = 2;
  if (kind == SnowflakeKind::kCalm) Calm(random, plan);
  if (kind == SnowflakeKind::kSplit) Split(plan);
  return plan;
}

std::string SnowflakePlan::Describe() const {
  const auto ms = [](Duration d) { return d.count() / 1'000'000; };
  const SnowflakeOptions& options = server.options;
  std::ostringstream text;
  text << "seed " << seed << ", " << Name(registry.kind) << ", " << servers << " servers on "
       << hosts << " hosts" << (twin ? ", a twin" : "") << ", " << options.layout.workers()
       << " workers, layout " << LayoutText(options.layout) << ", " << ms(length) << " ms, lease "
       << ms(options.lease) << " ms, drift " << ms(options.drift) << " ms, wait "
       << ms(options.wait) << " ms, timeout " << ms(options.call_timeout) << " ms, faults "
       << registry.faults << ", trouble " << trouble << (wild_clocks ? ", wild clocks" : "");
  return text.str();
}

}  // namespace leaf::sim
