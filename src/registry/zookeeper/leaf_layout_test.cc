// Leaf's layout on a real server, beside what Leaf itself leaves there.

#include <thread>

#include "registry/zookeeper/zookeeper_testing.h"

namespace leaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LeafLayoutTest : public ZooKeeperTest {
 protected:
  std::string Path(const std::string& identity, const std::string& counter) const {
    return forever() + "/" + identity + "-" + counter;
  }
  static std::string Text(const std::string& ip, const std::string& port, std::int64_t ms) {
    return R"({"ip":")" + ip + R"(","port":")" + port + R"(","timestamp":)" + std::to_string(ms) +
           "}";
  }
  static RightRecord JournalOf(const WorkerRight& right, std::int64_t short_ms) {
    return {right.worker, right.generation, right.owner, right.limit_ms, short_ms};
  }
};

TEST_F(LeafLayoutTest, LeavesWhatLeafAccepts) {
  const auto driver = NewDriver();
  const ClaimAsk ask = AskOf(kSelf);
  const WorkerRight right = Must(driver->Claim(ask));
  EXPECT_EQ(right.worker, 0);
  EXPECT_EQ(right.generation, 0);
  EXPECT_EQ(right.owner, ask.owner);
  EXPECT_EQ(right.floor_ms, 0);
  EXPECT_EQ(right.limit_ms, ask.now_ms + kLeaseMs);
  ASSERT_TRUE(right.registry_ms);
  EXPECT_NEAR(static_cast<double>(*right.registry_ms), static_cast<double>(ask.now_ms), 60'000);
  EXPECT_THAT(client().Children(base()), ElementsAre("forever"));
  EXPECT_THAT(client().Children(forever()), ElementsAre(std::string(kSelf) + "-0000000000"));
  EXPECT_EQ(client().Get(Path(kSelf, "0000000000")), Text("192.0.2.7", "8080", right.limit_ms));
  EXPECT_EQ(client().Get(forever()), "");
  EXPECT_EQ(client().Get(base()), "");
  EXPECT_EQ(client().Acl(Path(kSelf, "0000000000")), "world:anyone:31");
  EXPECT_EQ(client().Acl(forever()), "world:anyone:31");
}

TEST_F(LeafLayoutTest, JoinsATreeThatLeafMade) {
  client().Create(Path("192.0.2.2:8080", "0000000000"), Text("192.0.2.2", "8080", 1796071753590));
  client().Create(Path("192.0.2.2:8082", "0000000001"), Text("192.0.2.2", "8082", 1796071754195));
  const auto driver = NewDriver();
  EXPECT_EQ(Must(driver->Claim(AskOf(kSelf))).worker, 2);
  const auto records = Must(driver->List(In(kPatience)));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1].worker, 1);
  EXPECT_EQ(records[1].identity, "192.0.2.2:8082");
  EXPECT_EQ(records[1].limit_ms, 1796071754195);
  EXPECT_EQ(records[2].identity, kSelf);
}

TEST_F(LeafLayoutTest, AYoungRecordIsWatchedThenTakenAboveItsTime) {
  const std::string path = Path(kSelf, "0000000000");
  const std::int64_t before = SystemClock().WallMillis();
  client().Create(path, Text("192.0.2.7", "8080", before));
  const std::string ahead = "192.0.2.8:8080", ahead_path = Path(ahead, "0000000001");
  client().Create(ahead_path, Text("192.0.2.8", "8080", before + 86'400'000));
  const auto driver = NewDriver(), driver_ahead = NewDriver(ahead);
  EXPECT_THAT(MustFail(driver_ahead->Claim(AskOf(ahead))).message, HasSubstr("watched for 7 s"));
  const Instant from = SystemClock().Now();
  Result<WorkerRight> claim = driver->Claim(AskOf(kSelf));
  EXPECT_THAT(MustFail(claim).message, HasSubstr("watched for 7 s"));
  EXPECT_EQ(client().Version(path), 0) << "written while it was watched";
  ASSERT_TRUE(Eventually([&] {
    claim = driver->Claim(AskOf(kSelf));
    return claim.ok();
  }));
  EXPECT_GE(SystemClock().Now() - from, std::chrono::seconds(7));
  EXPECT_EQ(claim->worker, 0);
  EXPECT_EQ(claim->generation, 1);
  EXPECT_EQ(claim->floor_ms, before + 10'000);
  // A time that the lease does not reach says that the worker may be in use until then.
  EXPECT_THAT(MustFail(driver_ahead->Claim(AskOf(ahead))).message, HasSubstr("the worker rests"));
  EXPECT_EQ(client().Version(ahead_path), 0);
  EXPECT_THAT(client().Children(base()), ElementsAre("forever"));
}

TEST_F(LeafLayoutTest, ATwinThatReportsIsRefused) {
  const std::string path = Path(kSelf, "0000000000");
  client().Create(path, Text("192.0.2.7", "8080", SystemClock().WallMillis()));
  const auto driver = NewDriver();
  MustFail(driver->Claim(AskOf(kSelf)));
  for (int report = 0; report < 3; ++report) {
    client().Set(path, Text("192.0.2.7", "8080", SystemClock().WallMillis()));
    const Error error = MustFail(driver->Claim(AskOf(kSelf)));
    EXPECT_EQ(error.code, Code::kConflict);
    EXPECT_THAT(error.message, HasSubstr("another process writes node"));
    EXPECT_THAT(error.message, HasSubstr(path));
  }
  EXPECT_EQ(client().Version(path), 3);
}

TEST_F(LeafLayoutTest, TheJournalProvesARestart) {
  const WorkerRight first = Must(NewDriver()->Claim(AskOf(kSelf)));
  ClaimAsk again = AskOf(kSelf, 2);
  again.journal = JournalOf(first, first.limit_ms - kLeaseMs + 3000);
  const WorkerRight second = Must(NewDriver()->Claim(again));
  EXPECT_EQ(second.worker, first.worker);
  EXPECT_EQ(second.floor_ms, first.limit_ms - kLeaseMs + 3000);
  EXPECT_EQ(second.generation, first.generation + 1);
}

TEST_F(LeafLayoutTest, AJournalThatDoesNotMatchProvesNothing) {
  const WorkerRight first = Must(NewDriver()->Claim(AskOf(kSelf)));
  std::vector<RightRecord> wrong(3, JournalOf(first, first.limit_ms - 1));
  wrong[0].generation += 1;
  wrong[1].limit_ms += 1;
  wrong[2].worker += 1;
  for (const RightRecord& record : wrong) {
    ClaimAsk again = AskOf(kSelf, 2);
    again.journal = record;
    EXPECT_THAT(MustFail(NewDriver()->Claim(again)).message, HasSubstr("watched"));
  }
}

TEST_F(LeafLayoutTest, ARepeatedClaimIsAdopted) {
  const RegistryFactory factory = FactoryOf(options_);
  const WorkerRight first = Must(factory()->Claim(AskOf(kSelf)));
  const WorkerRight second = Must(factory()->Claim(AskOf(kSelf)));
  EXPECT_EQ(second.worker, first.worker);
  EXPECT_EQ(second.floor_ms, first.floor_ms);
  EXPECT_GE(second.limit_ms, first.limit_ms);
}

TEST_F(LeafLayoutTest, ExtendsAndLowers) {
  const auto driver = NewDriver();
  WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  const std::int64_t limit = right.limit_ms;
  right = Must(driver->Extend(right, limit + 5000, kLeaseMs, In(kPatience)));
  EXPECT_EQ(right.limit_ms, limit + 5000);
  EXPECT_EQ(right.generation, 1);
  right = Must(driver->Extend(right, limit, kLeaseMs, In(kPatience)));
  EXPECT_EQ(right.limit_ms, limit + 5000) << "never lowered by an extension";
  EXPECT_EQ(client().Version(Path(kSelf, "0000000000")), 2) << "but it reports";
  const WorkerRight far = Must(driver->Extend(right, limit * 2, kLeaseMs, In(kPatience)));
  EXPECT_LE(far.limit_ms, *far.registry_ms + kLeaseMs + kClockToleranceMs);
  const std::int64_t now = SystemClock().WallMillis();
  right = Must(driver->Lower(far, now, In(kPatience)));
  EXPECT_EQ(right.limit_ms, now);
  EXPECT_EQ(client().Get(Path(kSelf, "0000000000")), Text("192.0.2.7", "8080", now));
  EXPECT_EQ(client().Version(Path(kSelf, "0000000000")), right.generation);
}

TEST_F(LeafLayoutTest, AForeignWriteEndsTheRight) {
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  const std::string path = Path(kSelf, "0000000000");
  client().Set(path, Text("192.0.2.7", "8080", 5));
  for (const auto& result : {driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience)),
                             driver->Lower(right, right.limit_ms - 1, In(kPatience))}) {
    const Error error = MustFail(result);
    EXPECT_EQ(error.code, Code::kConflict);
    EXPECT_THAT(error.message, HasSubstr(path));
  }
  EXPECT_EQ(client().Get(path), Text("192.0.2.7", "8080", 5));
  client().Delete(path);
  EXPECT_EQ(MustFail(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience))).code,
            Code::kConflict);
  EXPECT_THAT(client().Children(forever()), IsEmpty());
}

TEST_F(LeafLayoutTest, OfTwoThatTakeOneNodeAtOnceOneGetsIt) {
  const WorkerRight dead = Must(NewDriver()->Claim(AskOf(kSelf)));
  for (int round = 0; round < 10; ++round) {
    WorkerRight last = dead;
    last.generation = client().Version(Path(kSelf, "0000000000"));
    const auto text = client().Get(Path(kSelf, "0000000000"));
    last.limit_ms = std::stoll(text.substr(text.rfind(':') + 1));
    std::vector<Result<WorkerRight>> results(4, Error{});
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < results.size(); ++i) {
      threads.emplace_back([&, i] {
        const auto driver = NewDriver();
        ClaimAsk ask = AskOf(kSelf, 100 + static_cast<int>(i));
        ask.journal = JournalOf(last, last.limit_ms);
        ask.journal->short_ms = last.limit_ms - 1;
        results[i] = driver->Claim(ask);
      });
    }
    for (std::thread& thread : threads) thread.join();
    int won = 0;
    for (const auto& result : results) won += result.ok() ? 1 : 0;
    EXPECT_EQ(won, 1);
  }
}

TEST_F(LeafLayoutTest, NamesWithDashes) {
  const std::string identity = "pod-7-a:8080";
  const auto driver = NewDriver(identity);
  const WorkerRight right = Must(driver->Claim(AskOf(identity)));
  EXPECT_EQ(right.worker, 0);
  EXPECT_EQ(client().Get(Path(identity, "0000000000")), Text("pod-7-a", "8080", right.limit_ms));
  EXPECT_EQ(Must(NewDriver("pod-7-b:8080")->Claim(AskOf("pod-7-b:8080"))).worker, 1);
}

TEST_F(LeafLayoutTest, ForeignChildrenAreSkippedAndToldOf) {
  client().Create(forever() + "/lock", "x");
  client().Create(forever() + "/192.0.2.9:8080-12", "x");
  const auto driver = NewDriver();
  std::vector<std::string> warnings;
  ASSERT_TRUE(driver->Open(In(kPatience), warnings).ok());
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0] + warnings[1], HasSubstr(forever() + "/lock"));
  EXPECT_EQ(Must(driver->Claim(AskOf(kSelf))).worker, 2) << "ZooKeeper counts them too";
  EXPECT_EQ(Must(driver->List(In(kPatience))).size(), 1U);
}

TEST_F(LeafLayoutTest, ABrokenNodeIsNamedAndHealsWithoutARestart) {
  const WorkerRight right = Must(NewDriver()->Claim(AskOf(kSelf)));
  const std::string path = Path(kSelf, "0000000000");
  const std::string good = client().Get(path);
  const auto driver = NewDriver();
  for (const std::string& bad : {good.substr(0, 20), std::string("abc"), std::string()}) {
    client().Set(path, bad);
    const Error error = MustFail(driver->Claim(AskOf(kSelf)));
    EXPECT_EQ(error.code, Code::kConflict);
    EXPECT_THAT(error.message, HasSubstr(path));
    EXPECT_EQ(Must(driver->List(In(kPatience)))[0].note.find(path), 5U);
  }
  EXPECT_EQ(client().Children(forever()).size(), 1U) << "nothing half done";
  client().Set(path, good);
  ClaimAsk ask = AskOf(kSelf);
  ask.journal = JournalOf(right, right.limit_ms - 1);
  ask.journal->generation = client().Version(path);
  EXPECT_EQ(Must(driver->Claim(ask)).worker, 0);
}

TEST_F(LeafLayoutTest, AClockTooFarAheadIsRefusedBeforeANodeIsMade) {
  ClaimAsk ask = AskOf(kSelf);
  ask.now_ms += 2 * kLeaseMs;
  EXPECT_THAT(MustFail(NewDriver()->Claim(ask)).message, HasSubstr("clock_ahead"));
  EXPECT_THAT(client().Children(forever()), IsEmpty());
}

TEST_F(LeafLayoutTest, AUsedUpLayoutIsRefusedBeforeANodeIsMade) {
  client().Create(forever(), "");
  for (int i = 0; i < kLeafLayout.workers(); ++i) {
    const std::string identity = "198.51.100.1:" + std::to_string(i);
    client().CreateSequential(forever() + "/" + identity + "-",
                              Text("198.51.100.1", std::to_string(i), 1));
    // The number rises with each node that ever was, whether it is there still or not.
    if (i % 2 == 0) {
      client().Delete(forever() + "/" + client().Children(forever()).back());
    }
  }
  const std::size_t before = client().Children(forever()).size();
  const auto driver = NewDriver();
  const Error error = MustFail(driver->Claim(AskOf(kSelf)));
  EXPECT_EQ(error.code, Code::kConflict);
  EXPECT_THAT(error.message, HasSubstr("0 to 1023"));
  EXPECT_THAT(error.message, HasSubstr("native"));
  EXPECT_EQ(client().Children(forever()).size(), before);
  ClaimAsk wider = AskOf(kSelf);
  wider.workers = 2048;
  EXPECT_EQ(Must(driver->Claim(wider)).worker, 1024);
  EXPECT_THAT(MustFail(NewDriver()->Claim(AskOf(kSelf, 2))).message, HasSubstr("0 to 1023"));
}

TEST_F(LeafLayoutTest, OfSeveralNodesTheLowestIsOurs) {
  const std::int64_t old = SystemClock().WallMillis() - 60'000;
  for (const char* counter : {"0000000005", "0000000003"})
    client().Create(Path(kSelf, counter), Text("192.0.2.7", "8080", old));
  const auto driver = NewDriver();
  std::vector<std::string> warnings;
  ASSERT_TRUE(driver->Open(In(kPatience), warnings).ok());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr(std::string(kSelf) + "-0000000003"));
  ClaimAsk ask = AskOf(kSelf);
  ask.journal = RightRecord{3, 0, Owner(9), old, old - 5};
  const WorkerRight right = Must(driver->Claim(ask));
  EXPECT_EQ(right.worker, 3);
  EXPECT_EQ(right.floor_ms, old - 5);
}

TEST_F(LeafLayoutTest, AWorkerInUseOnThisHostIsNotTaken) {
  Must(NewDriver()->Claim(AskOf(kSelf)));
  ClaimAsk ask = AskOf(kSelf, 2);
  ask.excluded = {0};
  EXPECT_THAT(MustFail(NewDriver()->Claim(ask)).message, HasSubstr("this host"));
}

TEST_F(LeafLayoutTest, RetiresWhatIsOver) {
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  EXPECT_EQ(MustFail(driver->Retire(7, In(kPatience))).code, Code::kNotFound);
  EXPECT_EQ(MustFail(driver->Retire(0, In(kPatience))).code, Code::kConflict);
  const std::int64_t past = SystemClock().WallMillis() - 20'000;
  Must(driver->Lower(right, past, In(kPatience)));
  const Error young = MustFail(NewDriver("a:1")->Retire(0, In(kPatience)));
  EXPECT_EQ(young.code, Code::kConflict) << "a Java node with a slow clock may live";
  const WorkerRecord record = Must(driver->Retire(0, In(kPatience)));
  EXPECT_EQ(record.identity, kSelf);
  EXPECT_EQ(record.limit_ms, past);
  EXPECT_THAT(client().Children(forever()), IsEmpty());
  EXPECT_EQ(Must(driver->Claim(AskOf(kSelf))).worker, 1) << "no number twice";
}

TEST_F(LeafLayoutTest, ANativeWorkerThatHoldsIsNotDoubled) {
  RegistryOptions native = options_;
  native.leaf_layout = false;
  const auto other = FactoryOf(native)();
  const WorkerRight held = Must(other->Claim(AskOf("192.0.2.8:8080", 2)));
  ASSERT_EQ(held.worker, 0);
  const auto driver = NewDriver();
  EXPECT_THAT(MustFail(driver->Claim(AskOf(kSelf))).message, HasSubstr("native"));
  EXPECT_TRUE(!client().Exists(forever()) || client().Children(forever()).empty());
  const std::int64_t now = SystemClock().WallMillis() - 1000;
  Must(other->Lower(held, now, In(kPatience)));
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  EXPECT_EQ(right.worker, 0);
  EXPECT_EQ(right.floor_ms, now);
  EXPECT_EQ(MustFail(other->Extend(held, now + 5, kLeaseMs, In(kPatience))).code, Code::kConflict);
}

}  // namespace
}  // namespace leaf
