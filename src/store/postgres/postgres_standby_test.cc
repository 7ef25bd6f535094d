// What the store makes of commits that wait for a synchronous standby that is away.

#include <future>
#include <vector>

#include "store/postgres/postgres_testing.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

using PostgresStandbyTest = PostgresTest;

TEST_F(PostgresStandbyTest, ACommitThatWaitsForAnAbsentStandbyEndsByTheDeadlineAsUnknown) {
  Put("order", 1, 10);
  Put("other", 1, 10);
  const AbsentStandby standby(Server());
  const auto driver = Open();
  const std::vector<Ask> asks = {{1, "order", 10, In(milliseconds(400))},
                                 {2, "other", 10, In(milliseconds(400))}};
  std::vector<Grant> grants(2);
  const Instant before = SystemClock().Now();
  driver->Reserve(asks, grants);
  EXPECT_LT(SystemClock().Now() - before, milliseconds(700));
  EXPECT_EQ(grants[0].outcome, Outcome::kUnknown) << Describe(grants[0]);
  EXPECT_EQ(grants[1].outcome, Outcome::kUnknown) << Describe(grants[1]);
  EXPECT_FALSE(driver->connected());
}

TEST_F(PostgresStandbyTest, ACancelledWaitForAStandbyIsUnknownAndNeverGranted) {
  Put("order", 1, 10);
  const AbsentStandby standby(Server());
  const auto driver = Open();
  const Grant grant = Meanwhile(*driver, OneThat(kWaitsForStandby),
                                [&] { Each("pg_cancel_backend", kWaitsForStandby); });
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("synchronous replication"));
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(MaxId("order"), 11) << "it is committed here";
}

TEST_F(PostgresStandbyTest, ARoleThatHearsNoWarningsHearsThisOne) {
  Put("order", 1, 10);
  Server().Exec("ALTER ROLE leaf SET client_min_messages = error");
  {
    const AbsentStandby standby(Server());
    const auto driver = Open();
    const Grant grant = Meanwhile(*driver, OneThat(kWaitsForStandby),
                                  [&] { Each("pg_cancel_backend", kWaitsForStandby); });
    EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  }
  Server().Exec("ALTER ROLE leaf RESET client_min_messages");
}

TEST_F(PostgresStandbyTest, ATerminatedWaitForAStandbyIsUnknown) {
  Put("order", 1, 10);
  const AbsentStandby standby(Server());
  const auto driver = Open();
  const Grant grant = Meanwhile(*driver, OneThat(kWaitsForStandby),
                                [&] { Each("pg_terminate_backend", kWaitsForStandby); });
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_FALSE(driver->connected());
}

TEST_F(PostgresStandbyTest, ARoleWithLocalCommitsWaitsForTheStandbyAllTheSame) {
  Put("order", 1, 10);
  for (const char* weaker : {"off", "local", "remote_write"}) {
    SCOPED_TRACE(weaker);
    Server().Exec(std::string("ALTER ROLE leaf SET synchronous_commit = ") + weaker);
    const AbsentStandby standby(Server());
    const auto driver = Open();
    EXPECT_EQ(Reserve(*driver, "order", 10, milliseconds(200)).outcome, Outcome::kUnknown);
  }
  Server().Exec("ALTER ROLE leaf RESET synchronous_commit");
}

TEST_F(PostgresStandbyTest, AWaitThatEndsBecauseTheSettingIsClearedIsUnknown) {
  Put("order", 1, 10);
  AbsentStandby standby(Server());
  const auto driver = Open();
  const Grant grant = Meanwhile(*driver, OneThat(kWaitsForStandby), [&] { standby.GiveUp(); });
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("waited for a standby"));
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(MaxId("order"), 11) << "it is committed here";
}

TEST_F(PostgresStandbyTest, NothingOfABatchIsGrantedWhenItsWaitEndsLikeThat) {
  Put("order", 1, 10);
  Put("other", 1, 10);
  AbsentStandby standby(Server());
  const auto driver = Open();
  const std::vector<Ask> asks = {{1, "order", 10, In(kPatience)}, {2, "other", 10, In(kPatience)}};
  std::vector<Grant> grants(2);
  auto call = std::async(std::launch::async, [&] { driver->Reserve(asks, grants); });
  EXPECT_TRUE(Eventually(OneThat(kWaitsForStandby)));
  standby.GiveUp();
  call.get();
  for (const Grant& grant : grants) EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
}

TEST_F(PostgresStandbyTest, AStoreWhoseCommitsWaitTakesNoMoreSessions) {
  Put("order", 1, 10);
  const StoreOptions options = Quick(milliseconds(200));
  {
    const AbsentStandby standby(Server());
    const auto driver = Open(options);
    EXPECT_EQ(Reserve(*driver, "order", 10, milliseconds(200)).outcome, Outcome::kUnknown);
    EXPECT_TRUE(Eventually([&] {
      return Refusal(options).find("standby is away") != std::string::npos;
    })) << "one connection waits; more would fill the server";
    EXPECT_THAT(Refusal(options), HasSubstr("synchronous_standby_names = 'absent'"));
    EXPECT_EQ(Sessions(kWaitsForStandby), 1);
  }
  EXPECT_EQ(Reserve(*Open(options), "order", 10, kPatience).range, (Range{11, 21}));
}

TEST_F(PostgresStandbyTest, NothingIsRaisedOrHandedBackWhereTheSettingsAreOthers) {
  Put("order", 100, 10);
  const auto driver = Open();
  ASSERT_EQ(*driver->Raise("order", 110, 0, In(kPatience)), 110);
  ASSERT_TRUE(*driver->HandBack("order", {100, 110}, In(kPatience)));
  const AbsentStandby standby(Server());
  EXPECT_FALSE(*driver->HandBack("order", {90, 100}, In(kPatience)));
  EXPECT_FALSE(driver->Raise("order", 200, 0, In(kPatience)).ok());
  EXPECT_FALSE(driver->connected()) << "to be examined anew";
  EXPECT_EQ(MaxId("order"), 100);
}

}  // namespace
}  // namespace leaf
