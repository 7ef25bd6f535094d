// A server that hangs, goes, comes back elsewhere, forgets the session or refuses it.

#include <atomic>
#include <future>
#include <thread>

#include "registry/blocking_registry.h"
#include "registry/zookeeper/zookeeper_testing.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr Duration kShort = milliseconds(400);
constexpr Duration kSlack = std::chrono::seconds(3);  // on machines that are busy with other tests

class ZooKeeperOutageTest : public ZooKeeperTest {
 protected:
  ZooKeeperOutageTest() { options_.servers = server_.address(); }
  std::string Path() const { return forever() + "/" + kSelf + "-0000000000"; }
  /// Extends as the engine does, until it works.
  WorkerRight ExtendAgain(RegistryDriver& driver, const WorkerRight& right) {
    Result<WorkerRight> result = Error{};
    EXPECT_TRUE(Eventually([&] {
      result = driver.Extend(right, right.limit_ms + 1000, kLeaseMs, In(std::chrono::seconds(2)));
      EXPECT_TRUE(result.ok() || result.error().code == Code::kUnavailable)
          << result.error().message;
      return result.ok() || result.error().code != Code::kUnavailable;
    }));
    return Must(result);
  }

  harness::ZooKeeper server_;
};

TEST_F(ZooKeeperOutageTest, AFrozenServerHoldsNobodyAndTheRightOutlivesIt) {
  const auto driver = NewDriver();
  WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  server_.Freeze();
  for (int i = 0; i < 3; ++i) {  // the first is sent, the later ones find no session
    const Instant from = SystemClock().Now();
    const Error error = MustFail(driver->Extend(right, right.limit_ms + i, kLeaseMs, In(kShort)));
    EXPECT_EQ(error.code, Code::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr(server_.address()));
    EXPECT_LT(SystemClock().Now() - from, kShort + kSlack);
    EXPECT_FALSE(driver->connected());
  }
  server_.Thaw();
  right = ExtendAgain(*driver, right);
  const auto client = server_.Connect();
  EXPECT_EQ(client->Version(Path()), right.generation);
  // What was sent before the server hung has happened, and was known for ours.
  EXPECT_GE(right.generation, 1);
  const auto text = client->Get(Path());
  EXPECT_THAT(text, HasSubstr(std::to_string(right.limit_ms)));
  ExtendAgain(*driver, right);
}

TEST_F(ZooKeeperOutageTest, AnExtensionWhoseAnswerWasLostIsAdopted) {
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  server_.Freeze();
  MustFail(driver->Extend(right, right.limit_ms + 7, kLeaseMs, In(kShort)));
  server_.Thaw();
  const auto client = server_.Connect();
  ASSERT_TRUE(Eventually([&] { return client->Version(Path()) == 1; }))
      << "what was sent did not land";
  const WorkerRight now = Must(driver->Extend(right, right.limit_ms + 9, kLeaseMs, In(kPatience)));
  EXPECT_EQ(now.generation, 2);
  EXPECT_EQ(now.limit_ms, right.limit_ms + 9);
}

TEST_F(ZooKeeperOutageTest, AClaimWhoseAnswerWasLostIsAdopted) {
  const auto driver = NewDriver();
  std::vector<std::string> warnings;
  ASSERT_TRUE(driver->Open(In(kPatience), warnings).ok());
  // The node is made in time and no answer comes: the server hangs at any moment of the claim.
  const auto client = server_.Connect();
  client->Create(forever(), "");
  for (int i = 0; i < 200 && client->Children(forever()).empty(); ++i) {
    ClaimAsk ask = AskOf(kSelf);
    ask.deadline = In(milliseconds(1 + i * i / 8));
    static_cast<void>(driver->Claim(ask));
  }
  ASSERT_EQ(client->Children(forever()).size(), 1U);
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  EXPECT_EQ(right.worker, 0);
  EXPECT_EQ(right.floor_ms, 0) << "its own node, not watched for a twin";
  EXPECT_EQ(client->Children(forever()).size(), 1U);
}

TEST_F(ZooKeeperOutageTest, ComesBackAtAnotherAddressOfTheList) {
  harness::ZooKeeper other;
  other.Stop();
  options_.servers = server_.address() + "," + other.address();
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  server_.Stop();
  EXPECT_EQ(MustFail(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kShort))).code,
            Code::kUnavailable);
  server_.StartAt(other.port());
  const WorkerRight now = ExtendAgain(*driver, right);
  EXPECT_EQ(now.worker, right.worker);
  EXPECT_EQ(server_.Connect()->Version(Path()), now.generation);
}

TEST_F(ZooKeeperTest, AnExpiredSessionCostsNothing) {
  harness::ZooKeeper server(std::chrono::milliseconds(1500));
  options_.servers = server.address();
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  server.ForgetSessions();
  ASSERT_TRUE(Eventually([&] { return !driver->connected(); })) << "never told of the expiry";
  const WorkerRight now = Must(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience)));
  EXPECT_EQ(now.generation, right.generation + 1);
  EXPECT_TRUE(driver->connected());
}

TEST_F(ZooKeeperOutageTest, NoServerAtAll) {
  server_.Stop();
  for (const bool leaf : {true, false}) {
    options_.leaf_layout = leaf;
    const auto driver = NewDriver();
    ClaimAsk ask = AskOf(kSelf);
    const Instant from = SystemClock().Now();
    ask.deadline = In(kShort);
    const Error error = MustFail(driver->Claim(ask));
    EXPECT_EQ(error.code, Code::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr(server_.address()));
    EXPECT_LT(SystemClock().Now() - from, kShort + kSlack);
  }
}

TEST_F(ZooKeeperOutageTest, AnInterruptedCallEnds) {
  const auto driver = NewDriver();
  const WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
  server_.Freeze();
  std::thread interrupter([&] {
    std::this_thread::sleep_for(milliseconds(100));  // likely in the middle; right at any time
    for (int i = 0; i < 20; ++i) {
      driver->Interrupt();
      std::this_thread::sleep_for(milliseconds(50));
    }
  });
  const Instant from = SystemClock().Now();
  MustFail(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience)));
  EXPECT_LT(SystemClock().Now() - from, kPatience / 2);
  interrupter.join();
  server_.Thaw();
}

// Behind the asynchronous port, as leafd has it.
TEST_F(ZooKeeperOutageTest, AFrozenServerHoldsNoStop) {
  BlockingRegistry::Options options;
  options.kind = "zookeeper";
  options.traits = ZooKeeperTraits(options_);
  auto registry = std::make_unique<BlockingRegistry>(options, FactoryOf(options_), SystemClock());
  std::promise<Result<WorkerRight>> claimed, extended;
  registry->Claim(AskOf(kSelf), [&](Result<WorkerRight> r) { claimed.set_value(std::move(r)); });
  const WorkerRight right = Must(claimed.get_future().get());
  server_.Freeze();
  Instant from = SystemClock().Now();
  registry->Extend(right, right.limit_ms + 1, kLeaseMs, In(kShort),
                   [&](Result<WorkerRight> r) { extended.set_value(std::move(r)); });
  EXPECT_EQ(MustFail(extended.get_future().get()).code, Code::kUnavailable);
  EXPECT_LT(SystemClock().Now() - from, kShort + kSlack);
  EXPECT_FALSE(registry->Status().up);
  std::atomic<int> after = 0;
  registry->Extend(right, right.limit_ms + 2, kLeaseMs, In(kPatience),
                   [&](const Result<WorkerRight>&) { ++after; });
  from = SystemClock().Now();
  registry.reset();
  EXPECT_LT(SystemClock().Now() - from, std::chrono::seconds(1) + kSlack);
  const int answered = after;
  server_.Thaw();
  EXPECT_EQ(server_.Connect()->Get(Path()).empty(), false);
  EXPECT_EQ(after, answered) << "called after its end";
}

class ZooKeeperAccessTest : public ZooKeeperTest {
 protected:
  ZooKeeperAccessTest() { options_.chroot = "/chroot-of-" + options_.cluster; }
  std::string Forever() const { return options_.chroot + forever(); }
};

TEST_F(ZooKeeperAccessTest, AMissingChrootIsNamedAndHeals) {
  const auto driver = NewDriver();
  std::vector<std::string> warnings;
  const Error error = MustFail(driver->Open(In(kPatience), warnings));
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("there is no node " + options_.chroot));
  client().Create(options_.chroot, "");
  EXPECT_EQ(Must(driver->Claim(AskOf(kSelf))).worker, 0);
  EXPECT_EQ(client().Children(Forever()).size(), 1U);
}

TEST_F(ZooKeeperAccessTest, PrivateNodesAreTheUsersAlone) {
  client().Create(options_.chroot, "");
  options_.user = "leaf";
  options_.password = "secret";
  options_.private_nodes = true;
  for (const bool leaf : {true, false}) {
    options_.leaf_layout = leaf;
    options_.cluster += leaf ? "-a" : "-b";
    const auto driver = NewDriver();
    WorkerRight right = Must(driver->Claim(AskOf(kSelf)));
    right = Must(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience)));
    const std::string path =
        options_.chroot + "/snowflake/" + options_.cluster +
        (leaf ? "/forever/" + std::string(kSelf) + "-0000000000" : "/workers/0000");
    const auto owner = TestServer().Connect("leaf:secret");
    EXPECT_THAT(owner->Acl(path), testing::MatchesRegex("digest:leaf:[^ ]*:31"));
    EXPECT_FALSE(owner->Get(path).empty());

    RegistryOptions strangers[2] = {options_, options_};
    strangers[0].password = "wrong";
    strangers[1].user = strangers[1].password = "";
    strangers[1].private_nodes = false;
    for (const RegistryOptions& stranger : strangers) {
      const Error error = MustFail(FactoryOf(stranger)()->Claim(AskOf("192.0.2.8:1", 2)));
      EXPECT_EQ(error.code, Code::kUnavailable);
      EXPECT_THAT(error.message, HasSubstr("access list refuses"));
      EXPECT_THAT(error.message, HasSubstr("/snowflake/" + options_.cluster));
    }
    EXPECT_TRUE(driver->Extend(right, right.limit_ms + 1, kLeaseMs, In(kPatience)).ok());
  }
}

TEST(ZooKeeperOptionsTest, BadOnesAreRefused) {
  RegistryOptions good;
  good.servers = "h:2181";
  good.identity = "192.0.2.7:8080";
  ASSERT_TRUE(MakeZooKeeperRegistry(good).ok());
  std::vector<RegistryOptions> bad(7, good);
  bad[0].servers = "";
  bad[1].chroot = "leaf";
  bad[2].chroot = "/leaf/";
  bad[3].cluster = "a/b";
  bad[4].identity = "192.0.2.7";
  bad[5].identity = "a/b:8080";
  bad[6].private_nodes = true;
  for (const RegistryOptions& options : bad) {
    const auto result = MakeZooKeeperRegistry(options);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kInvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr("snowflake."));
  }
}

TEST(ZooKeeperOptionsTest, Traits) {
  RegistryOptions options;
  const RegistryTraits leaf = ZooKeeperTraits(options);
  EXPECT_TRUE(leaf.bound && leaf.foreign_writers);
  EXPECT_EQ(leaf.renew, std::chrono::seconds(3));
  options.leaf_layout = false;
  const RegistryTraits native = ZooKeeperTraits(options);
  EXPECT_FALSE(native.bound || native.foreign_writers);
  EXPECT_EQ(native.renew, Duration::zero());
}

}  // namespace
}  // namespace leaf
