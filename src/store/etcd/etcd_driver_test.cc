// What only etcd can do wrong, on one real member.

#include "store/etcd/etcd_driver.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "store/etcd/etcd_testing.h"
#include "tests/harness/certificates.h"
#include "tests/harness/tcp_relay.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

class EtcdDriverTest : public EtcdTest {
 protected:
  static harness::Etcd& Server() {
    static harness::Etcd server;
    return server;
  }
  void SetUp() override { Server().DeleteAll("/leafd/"); }

  static StoreOptions Options() { return Server().options(); }
  static StoreOptions Through(const harness::TcpRelay& way) {
    StoreOptions options = Options();
    options.servers = "127.0.0.1:" + std::to_string(way.port());
    return options;
  }
  static void Put(const std::string& tag, std::int64_t max_id, std::int64_t step) {
    Server().Put(kKeys + tag, EtcdValue{max_id, step}.Text());
  }
  static std::int64_t MaxId(const std::string& tag) {
    const auto value = ParseEtcdValue(tag, Server().Get(kKeys + tag).value_or(""));
    EXPECT_TRUE(value.ok());
    return value.ok() ? value->max_id : -1;
  }
};

TEST_F(EtcdDriverTest, TheClusterIsTheIdentityAndOneMemberIsOnlyPower) {
  const auto info = Make(Options())->Open(In(kPatience));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_THAT(info->identity, ContainsRegex("^etcd:[0-9a-f]+$"));
  EXPECT_EQ(info->durability, Durability::kPower);
  EXPECT_THAT(info->warnings, IsEmpty());
}

TEST_F(EtcdDriverTest, OpenChangesNothing) {
  const std::int64_t revision = Server().Revision();
  Open(Options());
  EXPECT_EQ(Server().Revision(), revision);
  EXPECT_EQ(Server().Get(kKeys), std::nullopt);
}

TEST_F(EtcdDriverTest, OneReservationIsOneRevision) {
  Put("order", 1, 10);
  const auto driver = Open(Options());
  const std::int64_t revision = Server().Revision();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  EXPECT_EQ(Server().Revision(), revision + 5);
}

// --- B66.

TEST_F(EtcdDriverTest, AValueThatIsNoRowIsNamedAndHealsWithoutANewSession) {
  Put("good", 1, 10);
  const auto driver = Open(Options());
  for (const std::string& value :
       {std::string("abc"), std::string(), std::string("1001"), std::string("9223372036854775807"),
        std::string("12345678901234567890"), std::string(" {\"max_id\":\"1\",\"step\":10}"),
        std::string(R"({"max_id":" 1","step":10})"),
        std::string(R"({"max_id":"12345678901234567890","step":10})"),
        std::string(R"({"max_id":"1","step":10)"), std::string("\x00\xff\x80", 3)}) {
    SCOPED_TRACE(value);
    Put("bad", 1, 10);
    ASSERT_EQ(Reserve(*driver, "bad", 10).outcome, Outcome::kGranted);
    Server().Put(kKeys + std::string("bad"), value);
    const std::int64_t revision = Server().Revision();
    for (int i = 0; i < 2; ++i) {
      const Grant grant = Reserve(*driver, "bad", 10);
      EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
      EXPECT_EQ(grant.error.code, Code::kUnavailable);
      EXPECT_THAT(grant.error.message, HasSubstr("/leafd/leaf_alloc/bad"));
      EXPECT_THAT(grant.error.message, HasSubstr(ShownBytes(value)));
    }
    EXPECT_FALSE(driver->Find("bad", In(kPatience)).ok());
    EXPECT_FALSE(driver->SetStep("bad", 5, In(kPatience)).ok());
    EXPECT_FALSE(driver->Raise("bad", 5, 5, In(kPatience)).ok());
    EXPECT_FALSE(driver->Delete("bad", In(kPatience)).ok());
    EXPECT_FALSE(driver->HandBack("bad", {1, 7}, In(kPatience)).ok());
    EXPECT_EQ(Server().Revision(), revision) << "nothing half done";
    EXPECT_EQ(Reserve(*driver, "good", 1).outcome, Outcome::kGranted) << "others are not touched";
    EXPECT_TRUE(driver->connected());
    Put("bad", 500, 10);
    const Grant healed = Reserve(*driver, "bad", 10);
    EXPECT_EQ(healed.range, (Range{500, 510})) << Describe(healed);
  }
}

TEST_F(EtcdDriverTest, AListShowsRowsThatAreNoneWithZeros) {
  Put("a", 7, 10);
  Server().Put(kKeys + std::string("b"), "abc");
  Put("c", 9, 10);
  const auto rows = Open(Options())->List("", 10, In(kPatience));
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ((*rows)[0].max_id, 7);
  EXPECT_EQ((*rows)[1].tag, "b");
  EXPECT_EQ((*rows)[1].max_id, 0);
  EXPECT_EQ((*rows)[1].step, 0);
  EXPECT_EQ((*rows)[2].max_id, 9);
}

TEST_F(EtcdDriverTest, NamesWithSlashesAndOtherTablesStayApart) {
  Put("a/b", 5, 10);
  Server().Put("/leafd/leaf_alloc2/x", EtcdValue{1, 1}.Text());
  Server().Put("/leafd/leaf_alloc", EtcdValue{1, 1}.Text());
  const auto driver = Open(Options());
  EXPECT_EQ(Reserve(*driver, "a/b", 10).range, (Range{5, 15}));
  const auto rows = driver->List("", 10, In(kPatience));
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].tag, "a/b");
}

// --- Many at once.

TEST_F(EtcdDriverTest, ABatchTravelsTogether) {
  constexpr int kTags = 256;
  for (int i = 0; i < kTags; ++i) Put("t" + std::to_string(i), 1, 10);
  const auto driver = Open(Options());
  std::vector<std::string> names;
  for (int i = 0; i < kTags; ++i) names.push_back("t" + std::to_string(i));
  ASSERT_GE(driver->batch_limit(), kTags);
  for (int round = 0; round < 2; ++round) {
    std::vector<Ask> asks;
    for (const std::string& name : names) asks.push_back({1, name, 10, In(kPatience)});
    std::vector<Grant> grants(asks.size());
    driver->Reserve(asks, grants);
    for (const Grant& grant : grants)
      EXPECT_EQ(grant.range, (Range{1 + round * 10, 11 + round * 10})) << Describe(grant);
  }
}

TEST_F(EtcdDriverTest, OneTagManyTimesInABatchGetsItsRangesInOrder) {
  Put("order", 1, 10);
  const auto driver = Open(Options());
  std::vector<Ask> asks;
  for (std::int64_t i = 1; i <= 5; ++i) asks.push_back({1, "order", i, In(kPatience)});
  std::vector<Grant> grants(asks.size());
  driver->Reserve(asks, grants);
  std::int64_t end = 1;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    ASSERT_EQ(grants[i].outcome, Outcome::kGranted) << Describe(grants[i]);
    EXPECT_EQ(grants[i].range.first, end);
    end += asks[i].count;
    EXPECT_EQ(grants[i].range.last, end);
  }
}

TEST_F(EtcdDriverTest, SessionsOfOneServerShareWhatTheyRemember) {
  Put("order", 1, 10);
  const auto factory = MakeEtcdFactory(Options());
  ASSERT_TRUE(factory.ok());
  const auto a = (*factory)(), b = (*factory)();
  ASSERT_TRUE(a->Open(In(kPatience)).ok());
  ASSERT_TRUE(b->Open(In(kPatience)).ok());
  std::int64_t end = 1;
  for (int i = 0; i < 6; ++i) {
    const Grant grant = Reserve(i % 2 == 0 ? *a : *b, "order", 10);
    EXPECT_EQ(grant.range, (Range{end, end + 10})) << Describe(grant);
    end += 10;
  }
}

// --- Hand-back.

TEST_F(EtcdDriverTest, ATailIsNotTakenBackFromARowThatMovedAndCameBack) {
  Put("order", 1, 100);
  const auto driver = Open(Options());
  ASSERT_EQ(Reserve(*driver, "order", 100).range, (Range{1, 101}));
  Put("order", 151, 100);
  Put("order", 101, 100);
  const auto back = driver->HandBack("order", {40, 101}, In(kPatience));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_FALSE(*back);
  EXPECT_EQ(MaxId("order"), 101);
}

// --- F27: compaction.

TEST_F(EtcdDriverTest, CompactionMakesNoDifference) {
  Put("order", 1, 10);
  Put("idle", 1, 10);
  const auto driver = Open(Options());
  ASSERT_EQ(Reserve(*driver, "idle", 10).range, (Range{1, 11}));
  std::int64_t end = 1;
  for (int i = 0; i < 20; ++i) {
    const Grant grant = Reserve(*driver, "order", 10);
    ASSERT_EQ(grant.range, (Range{end, end + 10})) << Describe(grant);
    end += 10;
    Server().Compact(Server().Revision());
  }
  const Grant idle = Reserve(*driver, "idle", 10);
  EXPECT_EQ(idle.range, (Range{11, 21})) << "its revision is compacted away: " << Describe(idle);
  EXPECT_TRUE(*driver->HandBack("idle", {15, 21}, In(kPatience)));
  EXPECT_EQ(driver->List("", 10, In(kPatience))->size(), 2U);
}

// --- The way to the member.

TEST_F(EtcdDriverTest, ALostAnswerIsUnknownAndItsIdsAreBurnt) {
  Put("order", 1, 10);
  harness::TcpRelay way(Server().port());
  const auto driver = Open(Through(way));
  std::int64_t end = 1;
  for (int i = 0; i < 5; ++i) {
    const Grant first = ReserveWithReopen(*driver, "order", 10, kPatience);
    ASSERT_EQ(first.outcome, Outcome::kGranted) << Describe(first);
    EXPECT_EQ(first.range.first, end);
    end = first.range.last;
    way.DropAnswers(true);
    std::jthread breaker([&] {
      EXPECT_TRUE(Eventually([&] { return MaxId("order") != end; }));
      way.Reset();
    });
    const Grant lost = Reserve(*driver, "order", 7);
    breaker.join();
    way.DropAnswers(false);
    EXPECT_EQ(lost.outcome, Outcome::kUnknown) << Describe(lost);
    EXPECT_FALSE(driver->connected());
    EXPECT_EQ(MaxId("order"), end + 7) << "exactly one reservation was lost";
    end += 7;
  }
}

TEST_F(EtcdDriverTest, AConnectionCutWhileIdleCostsNothing) {
  Put("order", 1, 10);
  harness::TcpRelay way(Server().port());
  const auto driver = Open(Through(way));
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  way.Reset();
  const Grant cut = Reserve(*driver, "order", 10);
  EXPECT_EQ(cut.outcome, Outcome::kRefused) << Describe(cut);
  EXPECT_FALSE(driver->connected());
  const Grant again = ReserveWithReopen(*driver, "order", 10, kPatience);
  EXPECT_EQ(again.range, (Range{11, 21})) << "nothing was burnt: " << Describe(again);
}

TEST_F(EtcdDriverTest, AFrozenMemberIsLeftByTheDeadline) {
  Put("order", 1, 10);
  const auto driver = Open(Options());
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  Server().Freeze();
  const Instant begin = SystemClock().Now();
  const Grant lost = Reserve(*driver, "order", 10, milliseconds(300));
  EXPECT_NE(lost.outcome, Outcome::kGranted);
  EXPECT_GE(SystemClock().Now(), begin + milliseconds(290));
  EXPECT_LT(SystemClock().Now(), begin + std::chrono::seconds(3));
  EXPECT_FALSE(driver->connected());
  EXPECT_FALSE(driver->Open(In(milliseconds(300))).ok());
  Server().Thaw();
  Grant grant;
  ASSERT_TRUE(Eventually([&] {
    grant = ReserveWithReopen(*driver, "order", 10, std::chrono::seconds(1));
    return grant.outcome == Outcome::kGranted;
  })) << Describe(grant);
  EXPECT_GE(grant.range.first, 11);
}

TEST_F(EtcdDriverTest, AnotherClusterBehindTheSameAddressIsNoticed) {
  harness::Etcd other({.arguments = {"--initial-cluster-token=other"}});
  Put("order", 1, 10);
  other.Put(kKeys + std::string("order"), EtcdValue{1, 10}.Text());
  harness::TcpRelay way(Server().port());
  const auto driver = Make(Through(way));
  const auto here = driver->Open(In(kPatience));
  ASSERT_TRUE(here.ok());
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  way.Retarget(other.port());
  way.Reset();
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kRefused);
  ASSERT_FALSE(driver->connected());
  const auto there = driver->Open(In(kPatience));
  ASSERT_TRUE(there.ok()) << there.error().message;
  EXPECT_NE(there->identity, here->identity);
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}))
      << "nothing of the other cluster is remembered";
}

TEST_F(EtcdDriverTest, RowsThatVanishAreNotFoundAndNotMadeAgain) {
  Put("order", 1, 10);
  const auto driver = Open(Options());
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().DeleteAll("/");
  const Grant gone = Reserve(*driver, "order", 10);
  EXPECT_EQ(gone.outcome, Outcome::kRefused);
  EXPECT_EQ(gone.error.code, Code::kNotFound);
  EXPECT_TRUE(driver->List("", 10, In(kPatience))->empty());
  Put("order", 3, 10);
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{3, 13})) << "as the store says";
}

// --- Options.

TEST_F(EtcdDriverTest, OptionsThatCannotBeUsedAreNamed) {
  StoreOptions options = Options();
  options.table = "a/b";
  auto factory = MakeEtcdFactory(options);
  ASSERT_FALSE(factory.ok());
  EXPECT_EQ(factory.error().code, Code::kInvalidArgument);
  EXPECT_THAT(factory.error().message, HasSubstr("'a/b'"));
  options = Options();
  options.servers = "h:0";
  factory = MakeEtcdFactory(options);
  ASSERT_FALSE(factory.ok());
  EXPECT_THAT(factory.error().message, HasSubstr("'h:0'"));
}

// --- Backups.

TEST_F(EtcdDriverTest, ARestoredClusterIsAnotherStoreThoughItKeepsItsId) {
  Put("order", 1, 10);
  const auto driver = Open(Options());
  const std::string identity = driver->Open(In(kPatience))->identity;
  Server().Save(Server().folder() + "/backup");
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  const auto later = Open(Options());  // of another process
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{11, 21}));

  Server().Restore(Server().folder() + "/backup");
  EXPECT_NE(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  const Result<StoreInfo> restored = driver->Open(In(kPatience));
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_NE(restored->identity, identity);
  EXPECT_EQ(driver->Open(In(kPatience))->identity, restored->identity) << "once";
  EXPECT_NE(later->Open(In(kPatience))->identity, identity);
}

TEST_F(EtcdDriverTest, ARestartIsNoRestore) {
  Put("order", 1, 10);
  const auto driver = Open(Options());
  const std::string identity = driver->Open(In(kPatience))->identity;
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  Server().Kill9();
  Server().Start();
  EXPECT_EQ(driver->Open(In(kPatience))->identity, identity);
}

// --- Encryption.

TEST(EtcdTlsTest, AMemberIsSpokenToInsideTlsAndByCertificate) {
  const harness::TestFolder folder("etcd-tls");
  harness::Certificates certs(folder.path());
  harness::Etcd server(
      {.cert = certs.Pem("good"), .key = certs.Key("good"), .client_ca = certs.Pem("ca")});
  StoreOptions options = server.options();
  options.servers = "localhost:" + std::to_string(server.port());
  const auto open = [&] {
    const auto driver = (*MakeEtcdFactory(options))();
    return driver->Open(SystemClock().Now() + std::chrono::seconds(20));
  };
  EXPECT_FALSE(open().ok()) << "without TLS";
  options.parameters = {{"ssl-ca", certs.Pem("ca")}};
  EXPECT_FALSE(open().ok()) << "without a certificate";
  options.parameters["ssl-cert"] = certs.Pem("by-name");
  options.parameters["ssl-key"] = certs.Key("by-name");
  const auto opened = open();
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  options.parameters["ssl-ca"] = certs.Pem("other");
  const auto foreign = open();
  ASSERT_FALSE(foreign.ok());
  EXPECT_THAT(foreign.error().message, HasSubstr("not trusted"));
}

}  // namespace
}  // namespace leaf
