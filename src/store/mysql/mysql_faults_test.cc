// What the store makes of lost answers, killed sessions, locks, frozen servers and idle
// connections. Every outcome must be honest: what was granted and what is unknown explain the row's
// whole movement.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <vector>

#include "base/random.h"
#include "store/blocking_store.h"
#include "store/mysql/mysql_testing.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using testing::AnyOf;
using testing::HasSubstr;

/// A relay before the server. Armed, it lets one reservation through, waits for the answer, keeps
/// that and resets both sides; silent, it swallows everything and says nothing.
class Relay {
 public:
  explicit Relay(int to) : to_(to), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = Address(0);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { Accept(stop); });
  }
  ~Relay() {
    thread_.request_stop();
    thread_.join();
    close(listener_);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const noexcept { return port_; }
  std::atomic<bool> swallow_answer{false}, silent{false};
  std::atomic<int> accepted{0}, swallowed{0};

 private:
  static sockaddr_in Address(int port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }
  static bool Readable(int fd) {
    pollfd at{fd, POLLIN, 0};
    return poll(&at, 1, 2) > 0;
  }
  static void Reset(int fd) {
    const linger now{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
  }

  void Accept(const std::stop_token& stop) {
    std::vector<std::jthread> pumps;
    while (!stop.stop_requested()) {
      if (!Readable(listener_)) continue;
      const int client = accept(listener_, nullptr, nullptr);
      const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_in at = Address(to_);
      EXPECT_EQ(connect(server, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
      ++accepted;
      pumps.emplace_back([this, client, server, stop] { Pump(client, server, stop); });
    }
  }

  // True: go on.
  bool Forward(int from, int to, bool from_client, bool& armed) {
    std::array<char, 65536> bytes;
    const ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    if (silent) return true;
    constexpr char kExecute = 0x17;
    if (from_client && swallow_answer && got > 4 && bytes[4] == kExecute) armed = true;
    if (!from_client && armed) {
      swallow_answer = false;
      ++swallowed;
      return false;
    }
    return send(to, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
  }

  void Pump(int client, int server, const std::stop_token& stop) {
    bool armed = false;
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> fds{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
      if (poll(fds.data(), fds.size(), 2) <= 0) continue;
      if (fds[0].revents != 0 && !Forward(client, server, true, armed)) break;
      if (fds[1].revents != 0 && !Forward(server, client, false, armed)) break;
    }
    Reset(client);
    Reset(server);
  }

  const int to_;
  const int listener_;
  int port_ = 0;
  std::jthread thread_;
};

/// Reservations of one tag in the order they were made.
class History {
 public:
  void Add(const Grant& grant, std::int64_t count) {
    switch (grant.outcome) {
      case Outcome::kGranted:
        Explain(grant.range.first);
        end_ = grant.range.last;
        ++granted;
        break;
      case Outcome::kUnknown:
        burnt_.push_back(count);
        ++unknown;
        break;
      case Outcome::kRefused:
        ++refused;
        break;
    }
  }
  /// The row stands at `next`: what lies between is a sum of some of the unknown ones since the
  /// last grant.
  void Explain(std::int64_t next) {
    ASSERT_LT(burnt_.size(), 20U);
    const std::int64_t gap = next - end_;
    bool explained = false;
    for (std::uint32_t chosen = 0; chosen < (1U << burnt_.size()); ++chosen) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < burnt_.size(); ++i) sum += (chosen >> i & 1) != 0 ? burnt_[i] : 0;
      explained = explained || sum == gap;
    }
    EXPECT_TRUE(explained) << "a gap of " << gap << " with " << burnt_.size()
                           << " unknown outcomes";
    happened += gap > 0 ? 1 : 0;
    burnt_.clear();
    end_ = next;
  }

  int granted = 0, unknown = 0, refused = 0, happened = 0;

 private:
  std::int64_t end_ = 1;
  std::vector<std::int64_t> burnt_;
};

class MysqlFaultsTest : public MysqlTest {
 protected:
  static std::shared_ptr<harness::SqlSession> Lock(const std::string& tag) {
    std::shared_ptr<harness::SqlSession> session = Server().Connect();
    session->Exec("START TRANSACTION; SELECT * FROM leaf.leaf_alloc WHERE biz_tag = '" + tag +
                  "' FOR UPDATE");
    return session;
  }
  /// Statements of the store that are under way on the server.
  static std::string Busy() {
    return Server().root().Value(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'leaf' AND COMMAND <> "
        "'Sleep'");
  }
  static std::string Sessions() {
    return Server().root().Value(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'leaf'");
  }
  static StoreOptions Quick(Duration timeout) {
    StoreOptions options = Options();
    options.timeout = timeout;
    return options;
  }
};

TEST_F(MysqlFaultsTest, ALostAcknowledgementIsAGapAndNeverADuplicate) {
  Put("order", 1, 10);
  Relay relay(Server().port());
  StoreOptions options = Options();
  options.port = relay.port();
  const auto driver = Open(options);
  History history;
  constexpr int kLosses = 100;
  for (int i = 0; i < kLosses; ++i) {
    const std::int64_t count = 1 + i % 50;
    relay.swallow_answer = true;
    Grant grant = Reserve(*driver, "order", count);
    EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
    EXPECT_FALSE(driver->connected());
    history.Add(grant, count);
    ASSERT_TRUE(driver->Open(In(kPatience)).ok());
    grant = Reserve(*driver, "order", 1000);
    ASSERT_EQ(grant.outcome, Outcome::kGranted) << Describe(grant);
    history.Add(grant, 1000);
  }
  EXPECT_EQ(relay.swallowed, kLosses);
  EXPECT_EQ(history.happened, kLosses) << "each lost one moved the row once";
  EXPECT_EQ(relay.accepted, kLosses + 1) << "nothing was repeated behind our back";
}

TEST_F(MysqlFaultsTest, KilledSessionsLeaveHonestOutcomes) {
  Put("order", 1, 10);
  const std::uint64_t seed = SystemRandom().Next();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto driver = Open();
  const auto killer_session = Server().Connect();
  std::atomic<int> killed{0};
  std::jthread killer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const auto& row : killer_session->Exec(
               "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'leaf'")) {
        if (killer_session->Try("KILL " + row[0].value_or("0")) == 0) ++killed;
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  History history;
  std::uint64_t draw = seed;
  const Instant until = In(std::chrono::seconds(4));
  while (SystemClock().Now() < until) {
    draw = draw * 6364136223846793005U + 1442695040888963407U;
    const auto count = static_cast<std::int64_t>(draw >> 40) + 1;
    const Grant grant = ReserveWithReopen(*driver, "order", count);
    history.Add(grant, count);
    if (testing::Test::HasFailure()) break;
  }
  killer.request_stop();
  killer.join();
  history.Explain(MaxId("order"));
  EXPECT_GT(history.granted, 0);
  EXPECT_GT(killed, 20);
  ASSERT_GT(history.unknown, 0) << "the killer never struck in the middle";
  std::printf("granted %d, unknown %d (of which happened %d), refused %d, killed %d\n",
              history.granted, history.unknown, history.happened, history.refused, killed.load());
}

TEST_F(MysqlFaultsTest, TheServersDeathInTheMiddleIsUnknown) {
  Put("order", 1, 10);
  const auto driver = Open();
  auto lock = Lock("order");
  auto call =
      std::async(std::launch::async, [&] { return Reserve(*driver, "order", 10, kPatience); });
  ASSERT_TRUE(Eventually([] { return Busy() == "1"; }));
  Server().Kill9();
  const Grant grant = call.get();
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  lock.reset();
  Server().Start();
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{1, 11}));
}

TEST_F(MysqlFaultsTest, EveryIsolationLevelLetsNodesCompete) {
  for (const char* level :
       {"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"}) {
    SCOPED_TRACE(level);
    Server().MakeTable();
    Server().Exec(std::string("SET GLOBAL tx_isolation = '") + level + "'");
    Put("order", 1, 1);
    std::vector<std::future<std::vector<Range>>> nodes;
    for (int n = 0; n < 4; ++n) {
      nodes.push_back(std::async(std::launch::async, [&] {
        const auto driver = Open();
        std::vector<Range> got;
        for (int i = 0; i < 50; ++i) {
          const Grant grant = Reserve(*driver, "order", 1, kPatience);
          EXPECT_EQ(grant.outcome, Outcome::kGranted) << Describe(grant);
          got.push_back(grant.range);
        }
        return got;
      }));
    }
    std::vector<Range> all;
    for (auto& node : nodes) {
      for (const Range& range : node.get()) all.push_back(range);
    }
    std::sort(all.begin(), all.end(), [](Range a, Range b) { return a.first < b.first; });
    ASSERT_EQ(all.size(), 200U);
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(all[i].first, static_cast<std::int64_t>(i) + 1);
  }
}

// --- Locks.

TEST_F(MysqlFaultsTest, WhatWasAbandonedBehindALockNeverCommits) {
  Put("order", 1, 10);
  const auto driver = Open(Quick(milliseconds(400)));
  auto lock = Lock("order");
  for (int i = 0; i < 3; ++i) {
    const Grant grant = ReserveWithReopen(*driver, "order", 10, milliseconds(400));
    EXPECT_NE(grant.outcome, Outcome::kGranted) << Describe(grant);
  }
  // Less than the timeout is left: the server is told so.
  const Grant late = ReserveWithReopen(*driver, "order", 10, milliseconds(150));
  EXPECT_NE(late.outcome, Outcome::kGranted);
  // The server's clockwork may be late on a loaded machine, but not as late as the longer limit.
  const Instant soon = In(milliseconds(150));
  while (Busy() != "0" && SystemClock().Now() < soon) std::this_thread::yield();
  EXPECT_EQ(Busy(), "0") << "the server gave up hardly later than we did";
  lock.reset();
  EXPECT_EQ(MaxId("order"), 1);
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{1, 11}));
}

TEST_F(MysqlFaultsTest, ALockHeldForLongIsARefusalThatSaysSo) {
  Put("order", 1, 10);
  Put("other", 1, 10);
  const auto driver = Open();
  const auto lock = Lock("order");
  const Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_LT(SystemClock().Now() - before, milliseconds(1000)) << "the server gives up before we do";
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("lock"));
  EXPECT_TRUE(driver->connected()) << "a definite answer costs no session";
  EXPECT_EQ(Reserve(*driver, "other", 10).outcome, Outcome::kGranted);
}

TEST_F(MysqlFaultsTest, ALockOnTheTableIsBoundedToo) {
  Put("order", 1, 10);
  const auto driver = Open(Quick(milliseconds(400)));
  const auto session = Server().Connect();
  session->Exec("LOCK TABLES leaf.leaf_alloc WRITE");
  const Instant before = SystemClock().Now();
  EXPECT_NE(Reserve(*driver, "order", 10, milliseconds(400)).outcome, Outcome::kGranted);
  EXPECT_LT(SystemClock().Now() - before, milliseconds(600));
  EXPECT_TRUE(Eventually([] { return Busy() == "0"; }));
  session->Exec("UNLOCK TABLES");
  EXPECT_EQ(MaxId("order"), 1);
}

TEST_F(MysqlFaultsTest, AnInterruptEndsAWaitingCallAtOnce) {
  Put("order", 1, 10);
  const auto driver = Open();
  auto lock = Lock("order");
  auto call = std::async(std::launch::async, [&] { return Reserve(*driver, "order", 10); });
  ASSERT_TRUE(Eventually([] { return Busy() == "1"; }));
  const Instant before = SystemClock().Now();
  driver->Interrupt();
  const Grant grant = call.get();
  EXPECT_LT(SystemClock().Now() - before, milliseconds(300));
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_TRUE(Eventually([] { return Busy() == "0"; })) << "and the server gives it up by itself";
  lock.reset();
  EXPECT_EQ(MaxId("order"), 1);
}

TEST_F(MysqlFaultsTest, AnInterruptBetweenCallsCostsASessionButNoRequest) {
  Put("order", 1, 10);
  const auto driver = Open();
  driver->Interrupt();
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{1, 11}));
}

// --- Idle connections and silent servers.

TEST_F(MysqlFaultsTest, AnIdleConnectionThatTheServerClosedFailsNoRequest) {
  Put("order", 1, 1);
  Server().Exec("SET GLOBAL wait_timeout = 1");
  const auto driver = Open();
  ASSERT_EQ(Reserve(*driver, "order", 1).outcome, Outcome::kGranted);
  ASSERT_TRUE(Eventually([] { return Sessions() == "0"; }));
  const Grant first = Reserve(*driver, "order", 1);
  EXPECT_EQ(first.outcome, Outcome::kRefused)
      << "known before anything was sent: " << Describe(first);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 1).range, (Range{2, 3}));
}

TEST_F(MysqlFaultsTest, BehindTheStoreAnIdleKillIsNotEvenSeen) {
  Put("order", 1, 1);
  Server().Exec("SET GLOBAL wait_timeout = 1");
  {
    BlockingStore::Options options;
    options.kind = "mysql";
    BlockingStore store(options, *MakeMysqlFactory(Options()), SystemClock());
    const auto reserve = [&] {
      const Ask ask{1, "order", 1, In(std::chrono::seconds(1))};
      OneGrant sink;
      store.Reserve({&ask, 1}, sink);
      return sink.Get();
    };
    ASSERT_TRUE(Eventually([&] { return store.Status().up; }));
    EXPECT_EQ(reserve().range, (Range{1, 2}));
    ASSERT_TRUE(Eventually([] { return Sessions() == "0"; }));
    const Grant grant = reserve();
    EXPECT_EQ(grant.range, (Range{2, 3})) << Describe(grant);
  }
}

TEST_F(MysqlFaultsTest, ASilentlyDroppedConnectionIsNoticedBeforeItIsUsed) {
  Put("order", 1, 1);
  Relay relay(Server().port());
  StoreOptions options = Options();
  options.port = relay.port();
  const auto driver = Open(options);
  ASSERT_EQ(Reserve(*driver, "order", 1).outcome, Outcome::kGranted);
  std::this_thread::sleep_for(milliseconds(5100));  // idle time is what the driver measures
  relay.silent = true;
  const Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 1);
  EXPECT_LT(SystemClock().Now() - before, milliseconds(600)) << "time is left for a new session";
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(MaxId("order"), 2);
}

TEST_F(MysqlFaultsTest, AFrozenServerHoldsNobodyBeyondTheDeadline) {
  Put("order", 1, 10);
  const auto driver = Open(Quick(milliseconds(300)));
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  const auto unopened = Make(Options());
  Server().Freeze();
  Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 10, milliseconds(300));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(500));
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("no answer in time"));
  before = SystemClock().Now();
  EXPECT_FALSE(unopened->Open(In(milliseconds(300))).ok());
  EXPECT_LT(SystemClock().Now() - before, milliseconds(500));
  Server().Thaw();
  const Grant after = ReserveWithReopen(*driver, "order", 10, kPatience);
  EXPECT_EQ(after.outcome, Outcome::kGranted);
  EXPECT_THAT(after.range.first, AnyOf(11, 21)) << "the frozen one may have happened";
}

// --- Identity and copies.

TEST_F(MysqlFaultsTest, ARestartKeepsTheIdentityAndAnotherServerHasAnother) {
  const std::string identity = Info()->identity;
  Server().Restart({});
  EXPECT_EQ(Info()->identity, identity);

  harness::MariaDb other({"--log-bin=log", "--binlog-format=STATEMENT", "--server-id=7"});
  other.MakeTable();
  other.Exec("INSERT INTO leaf.leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)");
  const auto driver = Make(other.options());
  Result<StoreInfo> info = driver->Open(In(kPatience));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_NE(info->identity, identity);
  EXPECT_EQ(info->durability, Durability::kProcess)
      << "sync_binlog = 0: a power loss rolls back what the log had not kept";
  EXPECT_THAT(info->warnings, testing::Contains(HasSubstr("sync_binlog")));
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted)
      << "a log of statements is no hindrance";
  other.Exec("SET GLOBAL sync_binlog = 1");
  EXPECT_EQ(driver->Open(In(kPatience))->durability, Durability::kPower);

  // Semi-synchronous replication counts only with all that makes it so.
  other.Exec(
      "CREATE USER repl@'%' IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; SET "
      "GLOBAL rpl_semi_sync_master_enabled = 1, "
      "GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC, GLOBAL rpl_semi_sync_master_timeout = "
      "18446744073709551615");
  EXPECT_EQ(driver->Open(In(kPatience))->durability, Durability::kPower)
      << "no replica is connected";
  Server().Exec(
      "INSERT INTO leaf.leaf_alloc (biz_tag, max_id, step) VALUES ('order', 11, 10); "
      "SET GLOBAL server_id = 8; SET GLOBAL rpl_semi_sync_slave_enabled = 1; CHANGE MASTER TO "
      "MASTER_HOST = '127.0.0.1', MASTER_PORT = " +
      std::to_string(other.port()) +
      ", MASTER_USER = 'repl', MASTER_PASSWORD = 'r', MASTER_LOG_FILE = '" +
      other.Exec("SHOW MASTER STATUS")[0][0].value_or("") + "', MASTER_LOG_POS = " +
      other.Exec("SHOW MASTER STATUS")[0][1].value_or("") + "; START SLAVE");
  EXPECT_TRUE(Eventually(
      [&] { return driver->Open(In(kPatience))->durability == Durability::kReplicated; }));
  // A replica that runs our statements has other settings.
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{11, 21}));
  EXPECT_TRUE(Eventually([&] { return MaxId("order") == 21; })) << "on the replica";
  other.Exec("SET GLOBAL binlog_format = MIXED");
  ASSERT_TRUE(driver->Open(In(kPatience)).ok());
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{21, 31}));
  EXPECT_TRUE(Eventually([&] { return MaxId("order") == 31; })) << "on the replica";

  // A wait that is under way when it is switched off ends as a success.
  Server().Exec("STOP SLAVE IO_THREAD");
  Grant grant;
  std::thread waiting([&] { grant = Reserve(*driver, "order", 10); });
  EXPECT_TRUE(Eventually([&] {
    return other.Exec("SHOW STATUS LIKE 'Rpl_semi_sync_master_wait_sessions'")[0][1] == "1";
  }));
  other.Exec("SET GLOBAL rpl_semi_sync_master_enabled = 0");
  waiting.join();
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("while it waited for a replica"));
  EXPECT_FALSE(driver->connected());
  other.Exec("SET GLOBAL rpl_semi_sync_master_enabled = 1");
  Server().Exec("START SLAVE IO_THREAD");
  EXPECT_TRUE(Eventually(
      [&] { return driver->Open(In(kPatience))->durability == Durability::kReplicated; }));

  other.Exec("SET GLOBAL rpl_semi_sync_master_timeout = 10000");
  EXPECT_EQ(driver->Open(In(kPatience))->durability, Durability::kPower)
      << "after ten seconds it would go on without the copy";
  other.Exec("SET GLOBAL rpl_semi_sync_master_enabled = 0");
  Server().Exec("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL rpl_semi_sync_slave_enabled = 0");
}

}  // namespace
}  // namespace leaf
