// The native layout on a real server, and both layouts when many servers start at once.

#include <cstdlib>
#include <set>
#include <thread>

#include "registry/zookeeper/zookeeper_testing.h"

namespace leaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class NativeLayoutTest : public ZooKeeperTest {
 protected:
  NativeLayoutTest() { options_.leaf_layout = false; }
  std::string Node(const std::string& digits) const { return base() + "/workers/" + digits; }
};

TEST_F(NativeLayoutTest, ClaimsExtendsLowersAndIsTakenOver) {
  const auto driver = NewDriver();
  const ClaimAsk ask = AskOf(kSelf);
  WorkerRight right = Must(driver->Claim(ask));
  EXPECT_EQ(right.worker, 0);
  EXPECT_EQ(right.floor_ms, 0);
  EXPECT_EQ(right.limit_ms, ask.now_ms + kLeaseMs);
  EXPECT_TRUE(right.registry_ms);
  EXPECT_THAT(client().Children(base()), ElementsAre("workers"));
  const std::int64_t generation = right.generation;
  right = Must(driver->Extend(right, right.limit_ms + 5000, kLeaseMs, In(kPatience)));
  EXPECT_EQ(right.limit_ms, ask.now_ms + kLeaseMs + 5000);
  EXPECT_EQ(right.generation, generation);
  const WorkerRight other = Must(NewDriver()->Claim(AskOf("192.0.2.8:8080", 2)));
  EXPECT_EQ(other.worker, 1);

  const std::int64_t end = SystemClock().WallMillis() - 10;
  EXPECT_EQ(Must(driver->Lower(right, end, In(kPatience))).limit_ms, end);
  const WorkerRight next = Must(NewDriver()->Claim(AskOf(kSelf, 3)));
  EXPECT_EQ(next.worker, 0);
  EXPECT_EQ(next.floor_ms, end);
  EXPECT_GT(next.generation, generation);
  EXPECT_EQ(MustFail(driver->Extend(right, end + 9, kLeaseMs, In(kPatience))).code,
            Code::kConflict);
}

TEST_F(NativeLayoutTest, ARepeatedClaimIsAdopted) {
  const auto driver = NewDriver();
  const WorkerRight first = Must(driver->Claim(AskOf(kSelf)));
  const WorkerRight second = Must(NewDriver()->Claim(AskOf(kSelf)));
  EXPECT_EQ(second.worker, first.worker);
  EXPECT_EQ(second.generation, first.generation + 1);
  EXPECT_EQ(second.limit_ms, first.limit_ms);
}

TEST_F(NativeLayoutTest, ARetiredOwnerExtendsNoMore) {
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  EXPECT_EQ(Must(driver->Retire(0, In(kPatience))).owner, right.owner);
  const Error error = MustFail(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience)));
  EXPECT_EQ(error.code, Code::kConflict);
  EXPECT_THAT(error.message, HasSubstr("retired"));
  EXPECT_EQ(Must(NewDriver()->Claim(AskOf(kSelf, 2))).worker, 1) << "0 rests up to its limit";
  EXPECT_EQ(MustFail(driver->Retire(77, In(kPatience))).code, Code::kNotFound);
}

TEST_F(NativeLayoutTest, NumbersOfLeafsNodesAreTakenUntilRetired) {
  const std::string text = R"({"ip":"192.0.2.2","port":"8080","timestamp":1796071753590})";
  const std::string leafs = forever() + "/192.0.2.2:8080-0000000000";
  client().Create(leafs, text);
  client().Create(forever() + "/192.0.2.3:8080-0000000002", text);
  const auto driver = NewDriver();
  EXPECT_EQ(Must(driver->Claim(AskOf(kSelf))).worker, 1);
  EXPECT_EQ(Must(driver->Claim(AskOf("192.0.2.8:8080", 2))).worker, 3);
  const auto records = Must(driver->List(In(kPatience)));
  ASSERT_EQ(records.size(), 4U);
  EXPECT_THAT(records[2].note, HasSubstr("192.0.2.3:8080-0000000002"));

  const Error young = MustFail(driver->Retire(0, In(kPatience)));
  EXPECT_EQ(young.code, Code::kConflict) << "it was written just now";
  EXPECT_TRUE(client().Exists(leafs));
  client().Delete(leafs);
  EXPECT_EQ(Must(driver->Claim(AskOf("192.0.2.9:8080", 3))).worker, 0);
}

TEST_F(NativeLayoutTest, ALeafNodeThatComesLaterEndsTheRight) {
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  client().Create(forever(), "");
  client().CreateSequential(forever() + "/192.0.2.2:8080-", "x");
  const Error error = MustFail(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience)));
  EXPECT_EQ(error.code, Code::kConflict);
  EXPECT_THAT(error.message, HasSubstr(forever()));
}

TEST_F(NativeLayoutTest, ABrokenNodeIsLeftAloneAndShown) {
  client().Create(Node("0000"), R"({"owner":"abc","gener)");
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  EXPECT_EQ(right.worker, 1);
  EXPECT_THAT(Must(driver->List(In(kPatience)))[0].note, HasSubstr(Node("0000")));
  client().Set(Node("0001"), "9223372036854775807");
  const Error error = MustFail(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience)));
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr(Node("0001")));
  EXPECT_THAT(error.message, HasSubstr("9223372036854775807"));
}

TEST_F(NativeLayoutTest, AClockTooFarAheadIsRefused) {
  ClaimAsk ask = AskOf(kSelf);
  ask.now_ms += 2 * kLeaseMs;
  EXPECT_THAT(MustFail(NewDriver()->Claim(ask)).message, HasSubstr("clock_ahead"));
  EXPECT_THAT(client().Children(base() + "/workers"), testing::IsEmpty());
}

// Each server with a session of its own, released together on an empty path.
class FirstStartTest : public ZooKeeperTest, public testing::WithParamInterface<bool> {};

TEST_P(FirstStartTest, SixteenAtOnceGetSixteenWorkers) {
  constexpr int kServers = 16;
  options_.leaf_layout = GetParam();
  const bool is_long = std::getenv("LEAF_LONG") != nullptr;
  const std::string cluster = options_.cluster;
  for (int round = 0; round < (is_long ? 200 : 5); ++round) {
    options_.cluster = cluster + "-" + std::to_string(round);
    std::vector<std::unique_ptr<RegistryDriver>> drivers;
    for (int i = 0; i < kServers; ++i) {
      drivers.push_back(NewDriver("192.0.2.7:" + std::to_string(i)));
      std::vector<std::string> warnings;
      ASSERT_TRUE(drivers.back()->Open(In(kPatience), warnings).ok());
    }
    std::vector<Result<WorkerRight>> rights(kServers, Error{});
    std::vector<std::thread> threads;
    for (int i = 0; i < kServers; ++i) {
      threads.emplace_back([&, i] {
        rights[static_cast<std::size_t>(i)] =
            drivers[static_cast<std::size_t>(i)]->Claim(AskOf("192.0.2.7:" + std::to_string(i), i));
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::set<std::int64_t> workers;
    for (const auto& right : rights) workers.insert(Must(right).worker);
    EXPECT_EQ(workers.size(), static_cast<std::size_t>(kServers)) << "round " << round;
    EXPECT_EQ(*workers.rbegin(), kServers - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, FirstStartTest, testing::Bool(),
                         [](const auto& suite) { return suite.param ? "Leaf" : "Native"; });

}  // namespace
}  // namespace leaf
