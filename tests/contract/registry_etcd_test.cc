#include <gmock/gmock.h>

#include "contract/registry_contract.h"
#include "harness/etcd.h"
#include "harness/tcp_relay.h"
#include "registry/etcd/etcd_registry.h"

namespace leaf::contract {
namespace {

using testing::HasSubstr;

constexpr const char* kKeys = "/leafd/worker/leaf/";

harness::Etcd& Server() {
  static harness::Etcd server;
  return server;
}

RegistryOptions Options() {
  RegistryOptions options;
  options.kind = "etcd";
  options.servers = Server().servers();
  options.chroot = "/leafd";
  options.timeout = std::chrono::seconds(10);
  return options;
}

class OneMember final : public RegistryUnderTest {
 public:
  OneMember() {
    Server().DeleteAll("/leafd/");
    factory_ = *MakeEtcdRegistry(Options(), Durability::kPower);
  }
  Traits traits() const override {
    Traits traits;
    traits.restarts = true;
    return traits;
  }
  std::unique_ptr<RegistryDriver> MakeSession(int) override { return factory_(); }
  void Restart() override {
    Server().Kill9();
    Server().Start();
  }

 private:
  RegistryFactory factory_;
};

INSTANTIATE_TEST_SUITE_P(Etcd, RegistryContract,
                         testing::Values(RegistryParam{
                             "etcd", [] { return std::make_unique<OneMember>(); }}));

class EtcdRegistryTest : public testing::Test {
 protected:
  EtcdRegistryTest() { Server().DeleteAll("/leafd/"); }

  static Instant Soon() { return SystemClock().Now() + std::chrono::seconds(20); }
  static std::unique_ptr<RegistryDriver> Open(const RegistryOptions& options = Options()) {
    auto driver = (*MakeEtcdRegistry(options, Durability::kPower))();
    std::vector<std::string> warnings;
    const Result<void> opened = driver->Open(Soon(), warnings);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    return driver;
  }
  static ClaimAsk Ask() {
    ClaimAsk ask;
    ask.owner = std::string(32, 'a');
    ask.identity = "h:1";
    ask.workers = 32;
    ask.layout = "41/10/12@1288834974657";
    ask.now_ms = SystemClock().WallMillis();
    ask.lease_ms = 600'000;
    ask.deadline = Soon();
    return ask;
  }
};

TEST_F(EtcdRegistryTest, ABrokenWorkerIsNamedAndHeals) {
  const auto driver = Open();
  const std::string owner = std::string(32, 'b');
  for (const std::string& value :
       {std::string("abc"), std::string(), std::string("7"), std::string("\x00\xff", 2),
        std::string(R"({"generation":"1","owner":"","identity":"h:1"})"),
        std::string(R"({"generation":1,"owner":"","identity":"h:1","limit_ms":"5"})"),
        std::string(R"({"generation":"1","owner":"","identity":"h:1","limit_ms":" 5"})"),
        std::string(R"({"generation":"1","owner":"","identity":"h:1","limit_ms":"05"})"),
        std::string(R"({"generation":"1","owner":"","identity":"h:1","limit_ms":"-5"})"),
        std::string(R"({"generation":"-1","owner":"","identity":"h:1","limit_ms":"5"})"),
        std::string(R"({"generation":"1","owner":"me","identity":"h:1","limit_ms":"5"})"),
        std::string(R"({"generation":"1","owner":"","identity":"h","limit_ms":"5","x":"1"})"),
        std::string(
            R"({"generation":"1","owner":"","identity":"h","limit_ms":"12345678901234567890"})"),
        std::string(
            R"({"generation":"9223372036854775807","owner":"","identity":"h","limit_ms":"5"})")}) {
    SCOPED_TRACE(value);
    Server().Put(kKeys + std::string("7"), value);
    const auto right = driver->Claim(Ask());
    ASSERT_FALSE(right.ok());
    EXPECT_EQ(right.error().code, Code::kUnavailable);
    EXPECT_THAT(right.error().message, HasSubstr("the row of worker 7 is broken"));
    EXPECT_EQ(Server().Get(kKeys + std::string("7")), value) << "nothing half done";
    Server().DeleteAll(kKeys);
    EXPECT_TRUE(driver->Claim(Ask()).ok());
    Server().DeleteAll(kKeys);
  }
}

TEST_F(EtcdRegistryTest, AForeignKeyAmongTheWorkersIsNamed) {
  const auto driver = Open();
  for (const char* name : {"x", "07", "-1", "7/8", "99999999999999999999", ""}) {
    SCOPED_TRACE(name);
    Server().Put(kKeys + std::string(name), "1");
    const auto right = driver->Claim(Ask());
    ASSERT_FALSE(right.ok());
    EXPECT_THAT(right.error().message, HasSubstr(kKeys + std::string(name) + "'"));
    Server().DeleteAll(kKeys);
  }
}

TEST_F(EtcdRegistryTest, OtherClustersAreNotTouched) {
  Server().Put("/leafd/worker/lea/0", "not ours");
  Server().Put("/leafd/worker/leaf0/0", "not ours");
  Server().Put("/leafd/worker/leaf.x/0", "not ours");
  const auto right = Open()->Claim(Ask());
  ASSERT_TRUE(right.ok()) << right.error().message;
  EXPECT_EQ(right->worker, 0);
  EXPECT_EQ(Server().Get("/leafd/worker/leaf0/0"), "not ours");
}

TEST_F(EtcdRegistryTest, EveryWorkerOfALargeLayoutIsListedInItsOrder) {
  constexpr int kWorkers = 1024;  // more than one page, and not in the order of their names
  const auto driver = Open();
  ClaimAsk ask = Ask();
  ask.workers = kWorkers;
  const std::string row =
      R"({"generation":"1","owner":"","identity":"h:1","limit_ms":"99999999999999"})";
  for (int i = 0; i < kWorkers; ++i) {
    if (i != 777) Server().Put(kKeys + std::to_string(i), row);
  }
  const auto right = driver->Claim(ask);
  ASSERT_TRUE(right.ok()) << right.error().message;
  EXPECT_EQ(right->worker, 777);
  const auto all = driver->List(Soon());
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 1024U);
  for (std::size_t i = 0; i < all->size(); ++i)
    EXPECT_EQ((*all)[i].worker, static_cast<std::int64_t>(i));
}

TEST_F(EtcdRegistryTest, AConnectionThatWasCutCostsNoCall) {
  harness::TcpRelay way(Server().port());
  RegistryOptions options = Options();
  options.servers = "127.0.0.1:" + std::to_string(way.port());
  const auto driver = Open(options);
  const auto right = driver->Claim(Ask());
  ASSERT_TRUE(right.ok()) << right.error().message;
  way.Reset();
  const auto later = driver->Extend(*right, right->limit_ms + 1000, 600'000, Soon());
  ASSERT_TRUE(later.ok()) << later.error().message;
  Server().Kill9();
  Server().Start();
  const auto lowered = driver->Lower(*later, later->limit_ms - 500, Soon());
  ASSERT_TRUE(lowered.ok()) << "the clean stop gives the worker back: " << lowered.error().message;
}

TEST_F(EtcdRegistryTest, AClusterOfOneIsRefusedWhereACopyIsDemanded) {
  std::vector<std::string> warnings;
  const auto driver = (*MakeEtcdRegistry(Options(), Durability::kReplicated))();
  const Result<void> opened = driver->Open(Soon(), warnings);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("store.min_durability is 'replicated'"));
  EXPECT_FALSE(driver->connected());
}

TEST_F(EtcdRegistryTest, OptionsThatCannotBeUsedAreNamed) {
  const auto refusal = [](void (*change)(RegistryOptions&)) {
    RegistryOptions options = Options();
    change(options);
    const auto made = MakeEtcdRegistry(options, Durability::kPower);
    EXPECT_FALSE(made.ok());
    if (made.ok()) return std::string();
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    return made.error().message;
  };
  EXPECT_THAT(refusal([](RegistryOptions& o) { o.servers = ""; }), HasSubstr("no host"));
  EXPECT_THAT(refusal([](RegistryOptions& o) { o.chroot = "/a/"; }), HasSubstr("'/a/'"));
  EXPECT_THAT(refusal([](RegistryOptions& o) { o.cluster = "a/b"; }), HasSubstr("'a/b'"));
  EXPECT_THAT(refusal([](RegistryOptions& o) { o.parameters["ssl-mod"] = "x"; }),
              HasSubstr("'ssl-mod'"));
}

// B43: with the leader stands still whoever talks to it.
TEST(EtcdRegistryClusterTest, AFrozenLeaderCostsNoServerItsWorker) {
  constexpr int kServers = 8;
  const auto later = [](Duration after) { return SystemClock().Now() + after; };
  harness::Etcd cluster({.members = 3});
  std::vector<std::unique_ptr<RegistryDriver>> servers;
  std::vector<WorkerRight> rights;
  std::vector<std::string> warnings;
  for (int i = 0; i < kServers; ++i) {
    RegistryOptions options = Options();
    options.servers.clear();
    for (int m = 0; m < 3; ++m)
      options.servers += (m == 0 ? "" : ",") + cluster.address((i + m) % 3);
    servers.push_back((*MakeEtcdRegistry(options, Durability::kPower))());
    ASSERT_TRUE(servers.back()->Open(later(std::chrono::seconds(20)), warnings).ok());
    ClaimAsk ask;
    ask.owner = std::string(31, 'a') + std::to_string(i);
    ask.identity = "h:" + std::to_string(i);
    ask.workers = kServers;
    ask.layout = "41/10/12@1288834974657";
    ask.now_ms = SystemClock().WallMillis();
    ask.lease_ms = 600'000;
    ask.deadline = later(std::chrono::seconds(20));
    const auto right = servers.back()->Claim(ask);
    ASSERT_TRUE(right.ok()) << right.error().message;
    rights.push_back(*right);
  }
  const auto extend_all = [&](std::int64_t by_ms) {
    for (std::size_t i = 0; i < kServers; ++i) {
      const Instant until = later(std::chrono::seconds(20));
      for (;;) {
        const Instant deadline = later(std::chrono::milliseconds(500));
        if (!servers[i]->connected()) (void)servers[i]->Open(deadline, warnings).ok();
        const auto right =
            servers[i]->Extend(rights[i], rights[i].limit_ms + by_ms, 600'000, deadline);
        if (right.ok()) {
          EXPECT_EQ(right->worker, rights[i].worker);
          EXPECT_EQ(right->limit_ms, rights[i].limit_ms + by_ms);
          break;
        }
        ASSERT_NE(right.error().code, Code::kConflict) << right.error().message;
        ASSERT_LT(SystemClock().Now(), until) << right.error().message;
      }
    }
  };
  extend_all(1000);
  const int leader = cluster.Leader();
  ASSERT_GE(leader, 0);
  cluster.Freeze(leader);
  extend_all(2000);
  cluster.Thaw(leader);
  extend_all(3000);
  const auto all = servers[0]->List(later(std::chrono::seconds(20)));
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->size(), 8U);
}

}  // namespace
}  // namespace leaf::contract
