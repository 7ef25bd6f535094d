#include <sstream>

#include "simulation.h"

namespace leaf::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

EngineOptions DrawOptions(SimRandom& random) {
  EngineOptions options;
  options.wait = random.Between(milliseconds(1500), seconds(5));
  options.store_timeout = random.Between(milliseconds(300), seconds(1));
  options.refresh = random.Between(seconds(1), seconds(15));
  options.backoff_max = random.Between(milliseconds(100), seconds(1));
  constexpr int kPages[] = {1, 2, 3, 1000};
  options.list_page = random.OneOf(kPages);
  constexpr int kFlights[] = {1, 2, 64};
  options.max_flights = random.OneOf(kFlights);
  constexpr int kWaiters[] = {30, 100000, 100000};
  options.max_waiters = random.OneOf(kWaiters);
  constexpr std::int64_t kWaste[] = {1, 500, 5000, 50'000'000};
  options.waste = random.OneOf(kWaste);
  constexpr std::int64_t kSkip[] = {0, 0, 1000};
  options.failover_skip = random.OneOf(kSkip);
  constexpr int kLookups[] = {5, 100, 100};
  options.lookups_per_second = random.OneOf(kLookups);
  options.negative_entries = 16;
  options.negative_ttl = random.Between(milliseconds(100), seconds(2));
  return options;
}

}  // namespace

Plan MakePlan(std::uint64_t seed, Kind kind) {
  SimRandom random(seed ^ 0x5ca1ab1e);
  Plan plan;
  plan.seed = seed;
  plan.kind = kind;
  plan.servers = static_cast<int>(random.Between(1, 4));
  plan.tags = static_cast<int>(random.Between(1, 4));
  plan.absent = random.Chance(0.3) ? 1 : 0;
  plan.length = random.Between(seconds(10), seconds(60));
  plan.arrivals = random.Between(milliseconds(50), milliseconds(600)) * plan.servers;
  constexpr int kBursts[] = {1, 3, 20};
  plan.burst = random.OneOf(kBursts);
  plan.batches = random.Chance(0.5) ? 0.3 : 0.02;
  plan.leaving = random.Chance(0.5) ? 0.2 : 0;
  plan.trouble = random.Chance(0.15) ? 0 : 0.05 + 0.01 * static_cast<double>(random.Between(0, 95));
  plan.foreign = random.Chance(0.5);
  plan.near_end = kind == Kind::kLegal && random.Chance(0.08);

  plan.server.options = DrawOptions(random);
  plan.server.options.auto_create = plan.absent > 0 && random.Chance(0.3);
  plan.server.leaf_policy = random.Chance(0.5);
  plan.server.readers = static_cast<int>(random.Between(1, 3));
  plan.server.tick_late = random.Between(microseconds(1), milliseconds(5));
  plan.server.post_late = random.Between(microseconds(1), milliseconds(1));
  plan.server.answer_late = random.Between(microseconds(1), milliseconds(3));

  plan.store.latency_min = random.Between(microseconds(50), milliseconds(2));
  plan.store.latency_max =
      plan.store.latency_min + random.Between(microseconds(50), milliseconds(15));
  plan.store.faults = random.Chance(0.4) ? 0 : 0.01 * static_cast<double>(random.Between(1, 30));
  plan.store.batches = random.Chance(0.5);
  plan.store.statement_timeout = random.Chance(0.5);
  plan.store.inline_refusals = random.Chance(0.3);
  if (kind == Kind::kFailover) {
    plan.absent = 0;
    plan.foreign = false;  // other programs do not skip
    plan.server.options.auto_create = false;
    plan.server.options.failover_skip = kFailoverSkip;
    plan.trouble = std::max(plan.trouble, 0.3);
    plan.lag = random.Between(milliseconds(1), milliseconds(800));
  }
  return plan;
}

std::string Plan::Describe() const {
  const auto ms = [](Duration d) { return d.count() / 1'000'000; };
  std::ostringstream text;
  text << "seed " << seed
       << (kind == Kind::kLegal        ? " legal"
           : kind == Kind::kRegressing ? " regressing"
                                       : " failover")
       << ", " << servers << " servers, " << tags << "+" << absent << " tags, " << ms(length)
       << " ms, policy " << (server.leaf_policy ? "leaf" : "fixed") << ", waste "
       << server.options.waste << ", wait " << ms(server.options.wait) << " ms, timeout "
       << ms(server.options.store_timeout) << " ms, refresh " << ms(server.options.refresh)
       << " ms, flights " << server.options.max_flights << ", waiters "
       << server.options.max_waiters << ", faults " << store.faults << ", trouble " << trouble
       << (foreign ? ", foreign" : "") << (near_end ? ", near the end" : "");
  return text.str();
}

}  // namespace leaf::sim
