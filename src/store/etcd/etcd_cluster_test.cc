// Three real members: leaders that freeze or die, a minority that is cut off.

#include <algorithm>
#include <array>
#include <atomic>

#include "base/mutex.h"
#include "base/random.h"
#include "store/etcd/etcd_testing.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AnyOf;
using testing::HasSubstr;

class EtcdClusterTest : public EtcdTest {
 protected:
  static harness::Etcd& Cluster() {
    static harness::Etcd cluster({.members = 3});
    return cluster;
  }
  void SetUp() override {
    Cluster().Start();
    Cluster().DeleteAll("/leafd/");
    Cluster().Put(kKeys + std::string("order"), EtcdValue{1, 10}.Text());
  }
  void TearDown() override {
    for (int i = 0; i < Cluster().size(); ++i) Cluster().Thaw(i);
    Cluster().Start();
  }

  /// All members, beginning with `first`.
  static StoreOptions From(int first) {
    StoreOptions options = Cluster().options();
    options.servers.clear();
    for (int i = 0; i < Cluster().size(); ++i) {
      options.servers += (i == 0 ? "" : ",") + Cluster().address((first + i) % Cluster().size());
    }
    return options;
  }
  static StoreOptions Only(int member) {
    StoreOptions options = Cluster().options();
    options.servers = Cluster().address(member);
    return options;
  }
  static std::int64_t MaxId() {
    const auto value =
        ParseEtcdValue("order", Cluster().Get(kKeys + std::string("order")).value_or(""));
    EXPECT_TRUE(value.ok());
    return value.ok() ? value->max_id : -1;
  }
};

/// What a server does between two reservations. Without it, who is nearest to the leader would
/// always be first.
void Serve(std::uint64_t& draw) {
  draw = draw * 6364136223846793005U + 1442695040888963407U;
  std::this_thread::sleep_for(std::chrono::microseconds((draw >> 32) % 20'000));
}

/// One tag's grants from several servers: disjoint, and nothing taken back.
class Ledger {
 public:
  void Add(const Grant& grant) {
    if (grant.outcome != Outcome::kGranted) return;
    const MutexLock lock(mu_);
    ranges_.push_back(grant.range);
  }
  void Check(std::int64_t row) {
    const MutexLock lock(mu_);
    std::sort(ranges_.begin(), ranges_.end(), [](Range a, Range b) { return a.first < b.first; });
    std::int64_t end = 1;
    for (const Range& range : ranges_) {
      EXPECT_GE(range.first, end) << "an id was granted twice";
      end = range.last;
    }
    EXPECT_LE(end, row) << "an acknowledged reservation was forgotten";
  }

 private:
  Mutex mu_;
  std::vector<Range> ranges_ GUARDED_BY(mu_);
};

TEST_F(EtcdClusterTest, ThreeMembersAreReplicated) {
  const auto info = Make(From(0))->Open(In(kPatience));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->durability, Durability::kReplicated);
}

TEST_F(EtcdClusterTest, EveryMemberServesAndIsOfTheSameIdentity) {
  const std::string identity = Make(Only(0))->Open(In(kPatience))->identity;
  for (int i = 0; i < Cluster().size(); ++i) {
    const auto driver = Make(Only(i));
    const auto info = driver->Open(In(kPatience));
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_EQ(info->identity, identity);
    EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1 + i * 10, 11 + i * 10}));
  }
}

TEST_F(EtcdClusterTest, ADeadMemberIsLeftForTheNextOne) {
  const auto driver = Open(From(0));
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Cluster().Kill9(0);
  Grant grant;
  ASSERT_TRUE(Eventually([&] {
    grant = ReserveWithReopen(*driver, "order", 10, seconds(1));
    return grant.outcome == Outcome::kGranted;
  })) << Describe(grant);
  EXPECT_GE(grant.range.first, 11);
}

// B43 and F27: the leader stands still, and with it whoever talks to it.
TEST_F(EtcdClusterTest, AFrozenLeaderCostsNoIdTwiceAndServersGoOnWithoutIt) {
  constexpr int kServers = 8;
  const std::uint64_t seed = SystemRandom().Next();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const int leader = Cluster().Leader();
  ASSERT_GE(leader, 0);
  Ledger ledger;
  std::atomic<bool> stop{false};
  std::array<std::atomic<int>, kServers> granted{};
  std::vector<std::jthread> servers;
  for (int i = 0; i < kServers; ++i) {
    servers.emplace_back([&, i] {
      const auto driver = Make(From(i % Cluster().size()));
      std::uint64_t draw = seed + static_cast<std::uint64_t>(i);
      while (!stop) {
        Serve(draw);
        const Grant grant = ReserveWithReopen(*driver, "order", 10, milliseconds(800));
        ledger.Add(grant);
        if (grant.outcome == Outcome::kGranted) ++granted[static_cast<std::size_t>(i)];
      }
    });
  }
  const auto everyone_serves = [&] {
    std::array<int, kServers> before{};
    for (std::size_t i = 0; i < kServers; ++i) before[i] = granted[i];
    return Eventually([&] {
      for (std::size_t i = 0; i < kServers; ++i) {
        if (granted[i] == before[i]) return false;
      }
      return true;
    });
  };
  EXPECT_TRUE(everyone_serves());
  Cluster().Freeze(leader);
  EXPECT_GE(Cluster().Leader(leader), 0);
  EXPECT_TRUE(everyone_serves()) << "also those that began with the frozen one";
  Cluster().Thaw(leader);
  EXPECT_TRUE(everyone_serves());
  stop = true;
  servers.clear();
  ledger.Check(MaxId());
}

TEST_F(EtcdClusterTest, LeadersThatDieCostNoIdTwice) {
  constexpr int kServers = 3;
  const std::uint64_t seed = SystemRandom().Next();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Ledger ledger;
  std::atomic<bool> stop{false};
  std::atomic<int> granted{0};
  std::vector<std::jthread> servers;
  for (int i = 0; i < kServers; ++i) {
    servers.emplace_back([&, i] {
      const auto driver = Make(From(i));
      std::uint64_t draw = seed + static_cast<std::uint64_t>(i);
      while (!stop) {
        Serve(draw);
        const auto count = static_cast<std::int64_t>(draw >> 58) + 1;
        const Grant grant = ReserveWithReopen(*driver, "order", count, milliseconds(800));
        ledger.Add(grant);
        if (grant.outcome == Outcome::kGranted) ++granted;
      }
    });
  }
  const auto goes_on = [&] {
    const int before = granted;
    return Eventually([&] { return granted > before + 5; });
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(goes_on());
    const int leader = Cluster().Leader();
    ASSERT_GE(leader, 0);
    Cluster().Kill9(leader);
    EXPECT_TRUE(goes_on()) << "two of three are enough";
    Cluster().Start();
  }
  stop = true;
  servers.clear();
  ledger.Check(MaxId());
}

TEST_F(EtcdClusterTest, AMemberWithoutAMajorityServesNothing) {
  const auto before = Open(Only(0));
  Cluster().Freeze(1);
  Cluster().Freeze(2);
  const Grant grant = Reserve(*before, "order", 10, milliseconds(500));
  EXPECT_NE(grant.outcome, Outcome::kGranted) << Describe(grant);
  EXPECT_FALSE(before->connected());
  // At first it waits for the others, then it knows that it has no leader. Neither is an answer.
  std::string refusal;
  EXPECT_TRUE(Eventually([&] {
    const Instant begin = SystemClock().Now();
    refusal = Refusal(Only(0), milliseconds(500));
    EXPECT_LT(SystemClock().Now(), begin + seconds(3));
    return refusal.find("no leader") != std::string::npos;
  })) << refusal;
}

// It accepts connections, as the kernel does that for it, and says nothing.
TEST_F(EtcdClusterTest, AFrozenServerIsNoEndOfTheList) {
  Cluster().Freeze(0);
  const auto driver = Make(From(0));
  std::string why;
  EXPECT_TRUE(Eventually([&] {
    const auto info = driver->Open(In(seconds(1)));
    if (!info.ok()) why = info.error().message;
    return info.ok();
  })) << why;
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
}

}  // namespace
}  // namespace leaf
