#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

#include "base/random.h"
#include "quiet.h"
#include "simulation.h"

namespace leaf::sim {
namespace {

// Histories of the real engine. LEAF_SEED sets the first seed ("random": a fresh one) and
// LEAF_SEEDS how many follow. Without them the seeds are always the same, so that a failure is a
// change's.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSlowness = 8;
#else
constexpr std::uint64_t kSlowness = 1;
#endif

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

std::uint64_t FirstSeed() {
  static const std::uint64_t fresh = SystemRandom().Next() >> 16;
  const char* value = std::getenv("LEAF_SEED");
  if (value != nullptr && std::string_view(value) == "random") return fresh;
  return FromEnvironment("LEAF_SEED", 1);
}

std::string Reproduce(std::uint64_t seed) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return "LEAF_SEED=" + std::to_string(seed) +
         " LEAF_SEEDS=1 sim_test --gtest_filter=" + test->test_suite_name() + "." + test->name();
}

Report RunPlan(const Plan& plan) {
  const Quiet quiet(Reproduce(plan.seed));
  return Simulation(plan).Run();
}

std::string Explain(const Plan& plan, const Report& report) {
  std::string text = plan.Describe() + "\n" + report.trace;
  for (const Checker::Violation& each : report.violations) {
    text += "at " + std::to_string(static_cast<double>(each.at.time_since_epoch().count()) / 1e9) +
            " s: " + Name(each.rule) + ": " + each.text + "\n";
  }
  return text + "reproduce: " + Reproduce(plan.seed);
}

/// What many histories amount to.
struct Sum {
  std::uint64_t histories = 0, voids = 0, events = 0, ids = 0, answers = 0, excused = 0;
  std::uint64_t regressions = 0, outages = 0, locks = 0, deletions = 0, take_overs = 0;
  ServerStats stats;

  void Add(const Report& report) {
    ++histories;
    voids += report.is_void ? 1 : 0;
    events += report.events;
    ids += report.ids;
    answers += report.answers;
    excused += report.excused;
    regressions += report.regressions;
    outages += report.outages;
    locks += report.locks;
    deletions += report.deletions;
    take_overs += report.take_overs;
    stats.moves += report.stats.moves;
    stats.parked += report.stats.parked;
    stats.failed += report.stats.failed;
    stats.cancelled += report.stats.cancelled;
    stats.grants += report.stats.grants;
    stats.asks += report.stats.asks;
    stats.stale += report.stats.stale;
    stats.kills += report.stats.kills;
    stats.clean_stops += report.stats.clean_stops;
    stats.full_hand_backs += report.stats.full_hand_backs;
  }
  void Print() const {
    std::cout << histories << " histories from seed " << FirstSeed() << ": " << events
              << " events, " << answers << " answers, " << ids << " ids, " << stats.parked
              << " parked, " << stats.failed << " failed, " << stats.cancelled << " cancelled, "
              << stats.asks << " asks, " << stats.grants << " grants, " << stats.stale << " stale, "
              << stats.kills << " kills, " << stats.clean_stops << " clean stops, "
              << stats.full_hand_backs << " hand-backs checked, " << outages << " outages, "
              << locks << " locks, " << deletions << " deletions, " << regressions
              << " regressions, " << take_overs << " take-overs, " << stats.moves << " moves, "
              << excused << " ids excused, " << voids << " void\n";
  }
};

Sum RunMany(Kind kind, std::uint64_t seeds) {
  Sum sum;
  const std::uint64_t count = FromEnvironment("LEAF_SEEDS", seeds / kSlowness);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Plan plan = MakePlan(FirstSeed() + i, kind);
    const Report report = RunPlan(plan);
    sum.Add(report);
    if (!report.violations.empty()) {
      ADD_FAILURE() << Explain(plan, report);
      break;
    }
  }
  sum.Print();
  return sum;
}

// Too little load is no verdict. A run of one seed, to reproduce a failure, is not held to it.
void ExpectEnoughHappened(const Sum& sum) {
  if (sum.histories < 200) return;
  const std::uint64_t n = sum.histories;
  EXPECT_LT(sum.voids * 20, n);
  EXPECT_GT(sum.answers, 100 * n);
  EXPECT_GT(sum.stats.parked, 10 * n);
  EXPECT_GT(sum.stats.stale, n / 20);
  EXPECT_GT(sum.stats.cancelled, n / 10);
  EXPECT_GT(sum.stats.kills, n / 5);
  EXPECT_GT(sum.stats.clean_stops, n);
  EXPECT_GT(sum.stats.full_hand_backs, n / 2);
  EXPECT_GT(sum.outages, n / 5);
  EXPECT_GT(sum.locks, n / 5);
  EXPECT_GT(sum.deletions, n / 5);
}

TEST(SimTest, LegalHistoriesKeepEveryRule) { ExpectEnoughHappened(RunMany(Kind::kLegal, 2500)); }

TEST(SimTest, AServerIssuesNothingBelowItsMarkWhenTheRowGoesBack) {
  const Sum sum = RunMany(Kind::kRegressing, 1500);
  ExpectEnoughHappened(sum);
  if (sum.histories >= 200) {
    EXPECT_GT(sum.regressions, sum.histories / 5);
    EXPECT_GT(sum.excused, 0u) << "no regression did what a regression can do";
  }
}

TEST(SimTest, NothingIsIssuedTwiceWhenAReplicaThatLagsTakesOver) {
  const Sum sum = RunMany(Kind::kFailover, 1500);
  if (sum.histories < 200) return;
  EXPECT_LT(sum.voids * 20, sum.histories);
  EXPECT_GT(sum.take_overs, sum.histories);
  EXPECT_GT(sum.stats.moves, sum.histories);
  EXPECT_GT(sum.stats.kills, sum.histories / 5);
}

TEST(SimTest, EqualSeedsGiveEqualHistories) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Kind kind = i % 2 == 0 ? Kind::kLegal : Kind::kRegressing;
    const Plan plan = MakePlan(FirstSeed() + i, kind);
    const Report first = RunPlan(plan);
    const Report second = RunPlan(plan);
    ASSERT_EQ(first.hash, second.hash) << plan.Describe();
    ASSERT_EQ(first.events, second.events) << plan.Describe();
    const Report other = RunPlan(MakePlan(FirstSeed() + i + 1000, kind));
    ASSERT_NE(first.hash, other.hash) << plan.Describe();
  }
}

TEST(SimTest, AHistoryWithoutLoadIsVoid) {
  Plan plan = MakePlan(FirstSeed(), Kind::kLegal);
  plan.length = std::chrono::milliseconds(1);
  plan.tags = 1;
  EXPECT_TRUE(RunPlan(plan).is_void);
}

// Stores and starts that break a rule on purpose: some history must show it, or the rule is not
// watched. Says in how many.
void ExpectFound(Kind kind, Rule rule, std::uint64_t seeds,
                 const std::function<void(Plan&)>& plant) {
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    Plan plan = MakePlan(FirstSeed() + i, kind);
    plant(plan);
    if (RunPlan(plan).Broke(rule)) ++found;
  }
  std::cout << "found in " << found << " of " << seeds << " histories from seed " << FirstSeed()
            << "\n";
  EXPECT_GT(found, 0u);
}

TEST(SimMutantTest, AHandBackThatIsTriedTwiceMakesDuplicates) {
  ExpectFound(Kind::kLegal, Rule::kUnique, 400, [](Plan& plan) {
    plan.servers = 3;
    plan.foreign = true;
    plan.batches = 0;
    plan.trouble = 1;
    plan.server.leaf_policy = false;
    plan.store.faults = 0;
    plan.store.mutant = Mutant::kRetryHandBack;
  });
}

TEST(SimMutantTest, ARangeGrantedTwiceIsFound) {
  ExpectFound(Kind::kLegal, Rule::kUnique, 60, [](Plan& plan) {
    plan.servers = 2;
    plan.store.mutant = Mutant::kGrantTwice;
  });
}

TEST(SimMutantTest, AGrantThatWasNotWrittenIsFound) {
  ExpectFound(Kind::kLegal, Rule::kUnique, 60, [](Plan& plan) {
    plan.servers = 2;
    plan.store.mutant = Mutant::kGrantUnwritten;
  });
}

TEST(SimMutantTest, AReservationInTwoStatementsIsFound) {
  ExpectFound(Kind::kLegal, Rule::kUnique, 60, [](Plan& plan) {
    plan.servers = 2;
    plan.store.mutant = Mutant::kLostUpdate;
  });
}

TEST(SimMutantTest, AStoreThatForgetsIsFound) {
  ExpectFound(Kind::kLegal, Rule::kUnique, 100, [](Plan& plan) {
    plan.undeclared_restores = true;
    plan.trouble = 1;
  });
  ExpectFound(Kind::kLegal, Rule::kFalseStop, 100, [](Plan& plan) {
    plan.undeclared_restores = true;
    plan.trouble = 1;
  });
}

TEST(SimMutantTest, ASkipThatIsTooSmallIsFound) {
  ExpectFound(Kind::kFailover, Rule::kUnique, 300, [](Plan& plan) {
    plan.servers = 3;
    plan.server.options.failover_skip = 1;
  });
}

TEST(SimMutantTest, MarksThatAreNotKeptAreMissed) {
  ExpectFound(Kind::kRegressing, Rule::kUnique, 200, [](Plan& plan) {
    plan.servers = 1;
    plan.server.wipes_journal = true;
    plan.trouble = 1;
  });
}

}  // namespace
}  // namespace leaf::sim
