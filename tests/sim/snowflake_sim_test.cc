#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

#include "base/random.h"
#include "quiet.h"
#include "snowflake_simulation.h"

namespace leaf::sim {
namespace {

// Histories of the real snowflake engine; LEAF_SEED and LEAF_SEEDS as in sim_test.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSlowness = 8;
#else
constexpr std::uint64_t kSlowness = 1;
#endif

std::uint64_t FirstSeed() {
  static const std::uint64_t fresh = SystemRandom().Next() >> 16;
  const char* value = std::getenv("LEAF_SEED");
  if (value == nullptr) return 1;
  return std::string_view(value) == "random" ? fresh : std::strtoull(value, nullptr, 10);
}

std::uint64_t Seeds(std::uint64_t otherwise) {
  constexpr std::uint64_t kLong = 50;  // ./dev long snowflake_sim: more than 10^5 histories
  const char* value = std::getenv("LEAF_SEEDS");
  if (value != nullptr) return std::strtoull(value, nullptr, 10);
  return std::getenv("LEAF_LONG") != nullptr ? otherwise * kLong : otherwise / kSlowness;
}

std::string Reproduce(std::uint64_t seed) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return "LEAF_SEED=" + std::to_string(seed) +
         " LEAF_SEEDS=1 snowflake_sim_test --gtest_filter=" + test->test_suite_name() + "." +
         test->name();
}

SnowflakeReport RunPlan(const SnowflakePlan& plan) {
  const Quiet quiet(Reproduce(plan.seed));
  return SnowflakeSimulation(plan).Run();
}

std::string Explain(const SnowflakePlan& plan, const SnowflakeReport& report) {
  std::string text = plan.Describe() + "\n" + report.trace;
  for (const auto& each : report.violations) {
    text += "at " + std::to_string(static_cast<double>(each.at.time_since_epoch().count()) / 1e9) +
            " s: " + Name(each.rule) + ": " + each.text + "\n";
  }
  return text + "reproduce: " + Reproduce(plan.seed);
}

/// What many histories amount to.
struct Sum {
  std::uint64_t histories = 0, events = 0, ids = 0, steps = 0, pauses = 0, outages = 0, reboots = 0;
  SnowflakeStats servers;
  RegistryStats registry;

  void Add(const SnowflakeReport& report) {
    ++histories;
    events += report.events;
    ids += report.ids;
    steps += report.steps;
    pauses += report.pauses;
    outages += report.outages;
    reboots += report.reboots;
    servers.answers += report.servers.answers;
    servers.parked += report.servers.parked;
    servers.served += report.servers.served;
    servers.failed += report.servers.failed;
    servers.cancelled += report.servers.cancelled;
    servers.kills += report.servers.kills;
    servers.stops += report.servers.stops;
    servers.copies += report.servers.copies;
    servers.unsynced += report.servers.unsynced;
    registry.calls += report.registry.calls;
    registry.faults += report.registry.faults;
    registry.creates += report.registry.creates;
    registry.takes += report.registry.takes;
    registry.adopts += report.registry.adopts;
    registry.extends += report.registry.extends;
    registry.lowers += report.registry.lowers;
    registry.conflicts += report.registry.conflicts;
    registry.retires += report.registry.retires;
    registry.foreign += report.registry.foreign;
    registry.late_writes += report.registry.late_writes;
  }
  void Print() const {
    std::cout << histories << " histories from seed " << FirstSeed() << ": " << events
              << " events, " << ids << " ids, " << servers.answers << " answers, " << servers.parked
              << " parked, " << servers.served << " of them served, " << servers.failed
              << " failed, " << servers.cancelled << " cancelled, " << servers.kills << " kills, "
              << servers.unsynced << " with an unsynced journal, " << servers.stops
              << " clean stops, " << servers.copies << " copies, " << reboots << " reboots, "
              << pauses << " pauses, " << steps << " clock steps, " << outages << " outages, "
              << registry.calls << " calls, " << registry.faults << " faults, "
              << registry.late_writes << " late steps, " << registry.creates << " workers made, "
              << registry.takes << " taken over, " << registry.adopts << " adopted, "
              << registry.extends << " extensions, " << registry.lowers << " lowered, "
              << registry.conflicts << " conflicts, " << registry.retires << " retired, "
              << registry.foreign << " foreign writes\n";
  }
};

Sum RunMany(SnowflakeKind kind, std::uint64_t seeds) {
  Sum sum;
  const std::uint64_t count = Seeds(seeds);
  for (std::uint64_t i = 0; i < count; ++i) {
    const SnowflakePlan plan = MakeSnowflakePlan(FirstSeed() + i, kind);
    const SnowflakeReport report = RunPlan(plan);
    sum.Add(report);
    if (!report.violations.empty()) {
      ADD_FAILURE() << Explain(plan, report);
      break;
    }
  }
  sum.Print();
  return sum;
}

TEST(SnowflakeSimTest, HistoriesOfTroubleKeepEveryRule) {
  const Sum sum = RunMany(SnowflakeKind::kTrouble, 2200);
  if (sum.histories < 200) return;  // to reproduce one
  const std::uint64_t n = sum.histories;
  EXPECT_GT(sum.servers.answers, 100 * n);
  EXPECT_GT(sum.servers.served, n);
  EXPECT_GT(sum.servers.kills, n);
  EXPECT_GT(sum.servers.stops, n / 2);
  EXPECT_GT(sum.servers.unsynced, n / 50);
  EXPECT_GT(sum.servers.copies, n / 20);
  EXPECT_GT(sum.pauses, n);
  EXPECT_GT(sum.steps, n);
  EXPECT_GT(sum.outages, n / 2);
  EXPECT_GT(sum.registry.takes, 2 * n);
  EXPECT_GT(sum.registry.adopts, n / 20);
  EXPECT_GT(sum.registry.extends, 10 * n);
  EXPECT_GT(sum.registry.late_writes, n);
  EXPECT_GT(sum.registry.conflicts, n / 2);
  EXPECT_GT(sum.registry.retires, n / 10);
  EXPECT_GT(sum.registry.foreign, n / 20);
}

TEST(SnowflakeSimTest, NoRequestFailsWhileClocksAndRegistryKeepTheirBounds) {
  const Sum sum = RunMany(SnowflakeKind::kCalm, 250);
  if (sum.histories < 200) return;
  EXPECT_GT(sum.servers.answers, 100 * sum.histories);
  EXPECT_GT(sum.outages, sum.histories / 2);
  EXPECT_GT(sum.steps, sum.histories);
}

TEST(SnowflakeSimTest, TheHostKeepsServersWithRegistriesOfTheirOwnApart) {
  const Sum sum = RunMany(SnowflakeKind::kSplit, 300);
  if (sum.histories < 200) return;
  EXPECT_GT(sum.registry.lowers, sum.histories / 4) << "no worker was given back";
}

TEST(SnowflakeSimTest, EqualSeedsGiveEqualHistories) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    const SnowflakeKind kind = i % 4 == 0 ? SnowflakeKind::kCalm : SnowflakeKind::kTrouble;
    const SnowflakePlan plan = MakeSnowflakePlan(FirstSeed() + i, kind);
    const SnowflakeReport first = RunPlan(plan);
    const SnowflakeReport second = RunPlan(plan);
    ASSERT_EQ(first.hash, second.hash) << plan.Describe();
    ASSERT_EQ(first.events, second.events) << plan.Describe();
    ASSERT_NE(first.hash, RunPlan(MakeSnowflakePlan(FirstSeed() + i + 1000, kind)).hash);
  }
}

// Registries and servers that break a rule on purpose: some history must show it, or the rule is
// not watched. Says in how many.
void ExpectFound(SnowflakeKind kind, SnowflakeRule rule, std::uint64_t seeds,
                 const std::function<void(SnowflakePlan&)>& plant) {
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    SnowflakePlan plan = MakeSnowflakePlan(FirstSeed() + i, kind);
    plant(plan);
    if (RunPlan(plan).Broke(rule)) ++found;
  }
  std::cout << Name(rule) << " broken in " << found << " of " << seeds << " histories from seed "
            << FirstSeed() << "\n";
  EXPECT_GT(found, 0u);
}

TEST(SnowflakeSimMutantTest, AnExtensionThatWasNotWrittenIsFound) {
  ExpectFound(SnowflakeKind::kTrouble, SnowflakeRule::kRight, 40,
              [](SnowflakePlan& plan) { plan.registry.mutant = RegistryMutant::kExtendUnwritten; });
}

TEST(SnowflakeSimMutantTest, ATakeOverThatBeginsAtThePresentIsFound) {
  ExpectFound(SnowflakeKind::kTrouble, SnowflakeRule::kUnique, 60, [](SnowflakePlan& plan) {
    plan.servers = plan.hosts = 4;
    plan.registry.kind = RegistryKind::kRows;
    plan.registry.mutant = RegistryMutant::kFloorIsNow;
  });
}

TEST(SnowflakeSimMutantTest, WritesThatCompareNothingMakeDuplicates) {
  ExpectFound(SnowflakeKind::kTrouble, SnowflakeRule::kUnique, 100, [](SnowflakePlan& plan) {
    plan.servers = plan.hosts = 4;
    plan.registry.kind = RegistryKind::kRows;
    plan.registry.mutant = RegistryMutant::kBlindWrites;
  });
}

TEST(SnowflakeSimMutantTest, AJournalThatIsNotWrittenIsFound) {
  ExpectFound(SnowflakeKind::kTrouble, SnowflakeRule::kJournal, 40, [](SnowflakePlan& plan) {
    plan.registry.kind = RegistryKind::kFixed;
    plan.server.mutant = ServerMutant::kJournalLies;
  });
}

TEST(SnowflakeSimMutantTest, AnOrderWordThatIsNotReadIsMissed) {
  ExpectFound(SnowflakeKind::kTrouble, SnowflakeRule::kOrder, 300,
              [](SnowflakePlan& plan) { plan.server.mutant = ServerMutant::kOrderForgotten; });
}

TEST(SnowflakeSimMutantTest, WithoutTheHostsClaimsTwoRegistriesMakeDuplicates) {
  ExpectFound(SnowflakeKind::kSplit, SnowflakeRule::kUnique, 40,
              [](SnowflakePlan& plan) { plan.server.mutant = ServerMutant::kHostClaimsIgnored; });
}

TEST(SnowflakeSimMutantTest, AJournalThatWasCopiedAndCountsMakesDuplicates) {
  ExpectFound(SnowflakeKind::kTrouble, SnowflakeRule::kUnique, 150, [](SnowflakePlan& plan) {
    plan.servers = plan.hosts = 2;
    plan.server.options.layout.worker_bits = 2;
    plan.registry.kind = RegistryKind::kNodes;
    plan.twin = true;
    plan.trouble = 2;
    plan.wild_clocks = false;
    plan.burst = 20;
    plan.arrivals = std::chrono::milliseconds(30);
    plan.registry.faults = 0;
    plan.registry.renew = std::chrono::seconds(20);
    plan.server.options.drift = std::chrono::seconds(5);
    plan.server.options.lease = std::chrono::seconds(60);
    plan.server.mutant = ServerMutant::kCopyTrusted;
  });
}

}  // namespace
}  // namespace leaf::sim
