// Several hosts in the URL, standbys, promotion, and a pooler between.

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <vector>

#include "store/postgres/postgres_testing.h"
#include "tests/harness/tcp_relay.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kUser = "postgres";

/// A streaming hot standby of a server, made by pg_basebackup.
class Standby {
 public:
  explicit Standby(harness::Postgres& primary) : folder_(primary.folder()) {
    const std::string bin = "/usr/lib/postgresql/15/bin/";
    const std::string data = folder_ + "/standby-" + std::to_string(harness::FreePort());
    const std::string log = data + ".log";
    harness::RunOrGiveUp(
        {bin + "pg_basebackup", "-h", folder_, "-p", std::to_string(primary.port()), "-U", kUser,
         "-D", data, "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast",
         "--no-sync"},
        log, kUser);
    harness::StartServer(
        process_, port_, log,
        [&] {
          process_.Launch({bin + "postgres", "-D", data, "-p", std::to_string(port_)}, log, kUser);
        },
        [&] { return Connect()->connected(); });
  }
  ~Standby() { process_.Stop(SIGQUIT); }
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  int port() const noexcept { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::unique_ptr<harness::PgSession> Connect() const {
    return std::make_unique<harness::PgSession>(
        "host=" + folder_ + " port=" + std::to_string(port_) + " user=postgres dbname=leaf");
  }
  void Promote() { EXPECT_EQ(Connect()->Value("SELECT pg_promote()"), "t"); }

 private:
  const std::string folder_;
  int port_ = 0;
  harness::ChildProcess process_;
};

class PostgresClusterTest : public PostgresTest {
 protected:
  static StoreOptions Hosts(const std::string& servers) {
    StoreOptions options = Options();
    options.servers = servers;
    return options;
  }
  static std::string Primary() { return Options().servers; }
  static std::string Nobody() { return "127.0.0.1:" + std::to_string(harness::FreePort()); }
};

// --- Several hosts.

TEST_F(PostgresClusterTest, PassesOverAStandbyAndTakesThePrimaryWhereverItStands) {
  Put("order", 1, 10);
  const Standby standby(Server());
  EXPECT_THAT(Refusal(Hosts(standby.address())), AllOf(HasSubstr("standby"), HasSubstr("primary")));
  EXPECT_EQ(Reserve(*Open(Hosts(standby.address() + "," + Primary())), "order", 10).range,
            (Range{1, 11}));
  EXPECT_EQ(Reserve(*Open(Hosts(Primary() + "," + standby.address())), "order", 10).range,
            (Range{11, 21}));
}

TEST_F(PostgresClusterTest, PassesOverAHostThatRefusesHangsOrDoesNotExist) {
  Put("order", 1, 10);
  EXPECT_EQ(Reserve(*Open(Hosts(Nobody() + "," + Primary())), "order", 10).range, (Range{1, 11}));
  EXPECT_EQ(Reserve(*Open(Hosts("no-such-host.invalid:5432," + Primary())), "order", 10).range,
            (Range{11, 21}));
  harness::TcpRelay relay(Server().port());
  const auto hold = relay.Hold();
  const auto driver = Make(Hosts("127.0.0.1:" + std::to_string(relay.port()) + "," + Primary()));
  const Instant before = SystemClock().Now();
  const Result<StoreInfo> info = driver->Open(In(std::chrono::seconds(2)));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_LT(SystemClock().Now() - before, milliseconds(1700))
      << "a hanging one gets its share only";
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{21, 31}));
}

TEST_F(PostgresClusterTest, SaysWhyTheLastOneWasRefused) {
  EXPECT_THAT(Refusal(Hosts(Nobody() + "," + Nobody())), HasSubstr("refused"));
}

TEST_F(PostgresClusterTest, APromotionIsAnotherIdentityAndNothingOfTheOldSessionCounts) {
  Put("order", 1, 10);
  Standby standby(Server());
  const StoreOptions options = Hosts(standby.address() + "," + Primary());
  const std::string identity = Info(options).identity;
  const auto driver = Open(options);
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  ASSERT_TRUE(Eventually([&] {
    return standby.Connect()->Value("SELECT max_id FROM leaf_alloc WHERE biz_tag = 'order'") ==
           "11";
  }));
  Server().Stop();
  standby.Promote();
  const Result<StoreInfo> info = driver->Open(In(kPatience));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_NE(info->identity, identity);
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{11, 21}));
  Server().Start();
}

TEST_F(PostgresClusterTest, ASynchronousStandbyMakesACommitReplicatedAndItIsThere) {
  Put("order", 1, 10);
  const Standby standby(Server());
  Server().Set("synchronous_standby_names", "*");
  ASSERT_TRUE(Eventually([] { return Info().durability == Durability::kReplicated; }));
  const auto driver = Open();
  EXPECT_EQ(Reserve(*driver, "order", 10, kPatience).range, (Range{1, 11}));
  Server().Set("synchronous_standby_names", "");
  Grant grant;
  EXPECT_TRUE(Eventually([&] {
    grant = Reserve(*driver, "order", 10);
    return grant.outcome != Outcome::kGranted;
  })) << "a level that was lowered is noticed";
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_TRUE(Eventually([] { return Info().durability == Durability::kPower; }));
}

TEST_F(PostgresClusterTest, NamesOfStandbysThatNoneCanBeMakeNothingReplicated) {
  harness::Postgres alone({"max_wal_senders = 0", "synchronous_standby_names = 'absent'"});
  alone.MakeTable();
  EXPECT_EQ(Info(alone.options()).durability, Durability::kPower);
}

TEST_F(PostgresClusterTest, ARestartKeepsTheIdentityAndAnotherServerHasAnother) {
  const std::string identity = Info().identity;
  Server().Stop();
  Server().Start();
  EXPECT_EQ(Info().identity, identity);
  Server().Kill9();
  Server().Start();
  EXPECT_EQ(Info().identity, identity);
  harness::Postgres other;
  other.MakeTable();
  EXPECT_NE(Info(other.options()).identity, identity);
}

// --- A pooler between.

/// PgBouncer in transaction mode before the server, with `pool` connections to it.
class Pooler {
 public:
  Pooler(harness::Postgres& server, int pool) : folder_(server.folder()) {
    const std::string base = folder_ + "/pooler-" + std::to_string(harness::FreePort());
    harness::StartServer(
        process_, port_, base + ".log",
        [&] {
          std::ofstream(base + ".ini")
              << "[databases]\nleaf = host=127.0.0.1 port=" << server.port()
              << " dbname=leaf user=leaf password=secret pool_size=" << pool
              << "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << port_
              << "\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
              << "max_client_conn = 100\n";
          process_.Launch({"/usr/sbin/pgbouncer", base + ".ini"}, base + ".log", kUser);
        },
        [&] { return Connect()->connected(); });
  }
  ~Pooler() {
    if (process_.running()) process_.Kill9();
  }
  Pooler(const Pooler&) = delete;
  Pooler& operator=(const Pooler&) = delete;

  int port() const noexcept { return port_; }
  std::unique_ptr<harness::PgSession> Connect() const {
    return std::make_unique<harness::PgSession>("host=127.0.0.1 port=" + std::to_string(port_) +
                                                " user=leaf dbname=leaf");
  }
  void Kill9() { process_.Kill9(); }

 private:
  const std::string folder_;
  int port_ = 0;
  harness::ChildProcess process_;
};

class PostgresPoolerTest : public PostgresClusterTest {
 protected:
  static std::vector<std::string> PutMany(std::size_t count) {
    std::vector<std::string> tags;
    for (std::size_t i = 0; i < count; ++i) {
      tags.push_back("t" + std::to_string(i));
      Put(tags.back(), 1, 10);
    }
    return tags;
  }
};

TEST_F(PostgresPoolerTest, ServesReservationsAndTheRestAndSendsNothingAhead) {
  const Pooler pooler(Server(), 1);
  const auto tags = PutMany(32);
  const auto driver = Open(Through(pooler.port()));
  EXPECT_EQ(Info(Through(pooler.port())).identity, Info().identity);
  EXPECT_EQ(driver->batch_limit(), 1) << "a pooler can mix up what is sent ahead";
  EXPECT_GT(Open()->batch_limit(), 1);
  for (int round = 0; round < 10; ++round) {
    std::vector<Ask> asks;
    for (const std::string& tag : tags) asks.push_back({7, tag, 10, In(kPatience)});
    std::vector<Grant> grants(asks.size());
    driver->Reserve(asks, grants);
    for (const Grant& grant : grants)
      ASSERT_EQ(grant.range, (Range{1 + 10 * round, 11 + 10 * round})) << Describe(grant);
  }
  EXPECT_EQ(driver->List("", 100, In(kPatience))->size(), 32U);
  EXPECT_TRUE(driver->Create("new", 10, 1, In(kPatience)).ok());
  EXPECT_EQ(*driver->Raise("new", 100, 5, In(kPatience)), 105);
  EXPECT_TRUE(*driver->HandBack("new", {50, 105}, In(kPatience)));
  EXPECT_TRUE(driver->Delete("new", In(kPatience)).ok());
  EXPECT_TRUE(driver->connected());
}

TEST_F(PostgresPoolerTest, ManySessionsShareTwoConnectionsAndEachIdIsGrantedOnce) {
  Put("order", 1, 1);
  const Pooler pooler(Server(), 2);
  constexpr int kSessions = 8, kEach = 25;
  std::vector<std::future<std::vector<std::int64_t>>> nodes;
  for (int n = 0; n < kSessions; ++n) {
    nodes.push_back(std::async(std::launch::async, [&] {
      const auto driver = Open(Through(pooler.port()));
      std::vector<std::int64_t> got;
      for (int i = 0; i < kEach; ++i) {
        const Grant grant = Reserve(*driver, "order", 1, kPatience);
        EXPECT_EQ(grant.outcome, Outcome::kGranted) << Describe(grant);
        got.push_back(grant.range.first);
      }
      return got;
    }));
  }
  std::vector<std::int64_t> all;
  for (auto& node : nodes) {
    for (const std::int64_t id : node.get()) all.push_back(id);
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kSessions * kEach));
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::int64_t>(i) + 1);
  EXPECT_LE(Sessions(), 2);
}

TEST_F(PostgresPoolerTest, WhatAReservationSetsIsNotSeenByTheNextUserOfTheConnection) {
  Put("order", 1, 10);
  Server().Exec("ALTER ROLE leaf SET synchronous_commit = off");
  const Pooler pooler(Server(), 1);
  const auto driver = Open(Through(pooler.port()));
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  const auto other = pooler.Connect();
  EXPECT_EQ(other->Value("SELECT current_setting('lock_timeout') || ' ' || "
                         "current_setting('statement_timeout') || ' ' || "
                         "current_setting('synchronous_commit')"),
            "0 0 off");
  Server().Exec("ALTER ROLE leaf RESET synchronous_commit");
}

TEST_F(PostgresPoolerTest, ATemporaryTableOfAnotherClientIsNotTakenForTheTable) {
  Put("order", 1, 10);
  const Pooler pooler(Server(), 1);
  const auto driver = Open(Through(pooler.port()));
  const auto other = pooler.Connect();
  other->Exec("CREATE TEMPORARY TABLE leaf_alloc (LIKE leaf_alloc INCLUDING ALL)");
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11})) << "it was found before";
  EXPECT_THAT(Refusal(Through(pooler.port())), HasSubstr("temporary"));
  StoreOptions options = Through(pooler.port());
  options.table = "public.leaf_alloc";
  EXPECT_EQ(Reserve(*Open(options), "order", 10).range, (Range{11, 21}));
}

TEST_F(PostgresPoolerTest, AWaitForAStandbyThatEndsBecauseTheSettingIsClearedIsUnknown) {
  Put("order", 1, 10);
  AbsentStandby standby(Server());
  const Pooler pooler(Server(), 2);
  const auto driver = Open(Through(pooler.port()));
  const Grant grant = Meanwhile(*driver, OneThat(kWaitsForStandby), [&] { standby.GiveUp(); });
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("waited for a standby"));
}

TEST_F(PostgresPoolerTest, APoolerKilledInFlightIsUnknown) {
  Put("order", 1, 10);
  Pooler pooler(Server(), 1);
  const auto driver = Open(Through(pooler.port()));
  auto lock = Lock("order");
  const Grant grant = Meanwhile(*driver, OneThat(kWaitsForLock), [&] { pooler.Kill9(); });
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  lock.reset();
  // The statement is still on the server, and nobody is there to hear of it.
  ASSERT_TRUE(Eventually([] { return Sessions(kBusy) == 0; }));
  EXPECT_THAT(MaxId("order"), AnyOf(1, 11));
}

TEST_F(PostgresPoolerTest, AServerThatThePoolerLostInFlightIsUnknown) {
  Put("order", 1, 10);
  const Pooler pooler(Server(), 1);
  const auto driver = Open(Through(pooler.port()));
  auto lock = Lock("order");
  const Grant grant = Meanwhile(*driver, OneThat(kWaitsForLock), [&] {
    Server().Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'leaf'");
  });
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  lock.reset();
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{1, 11}));
}

TEST_F(PostgresPoolerTest, APoolThatIsUsedUpEndsByTheDeadline) {
  Put("order", 1, 10);
  const Pooler pooler(Server(), 1);
  const auto driver = Open(Through(pooler.port()));
  const auto other = pooler.Connect();
  other->Exec("BEGIN");
  const Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 10, milliseconds(300));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(600));
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  other->Exec("COMMIT");
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).outcome, Outcome::kGranted);
}

}  // namespace
}  // namespace leaf
