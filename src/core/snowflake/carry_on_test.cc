// A server bound to its worker that starts while the registry is away: what its own journal lets it
// mint.

#include <gtest/gtest.h>

#include "core/snowflake/right_keeper.h"
#include "core/snowflake/snowflake_test_support.h"

namespace leaf::test {
namespace {

class CarryOnTest : public SnowflakeRig {
 protected:
  CarryOnTest() {
    registry.its_traits.bound = true;
    journal.found = RightJournal::Found{
        {3, 7, std::string(32, 'a'), kStart + 600'000, kStart + 2000}, /*same_place=*/true};
  }
};

TEST_F(CarryOnTest, AProvenJournalMintsAboveWhatItSaysWhileTheRegistryIsAway) {
  Start();
  EXPECT_EQ(registry.calls.front().ask.journal, journal.found->record);
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  EXPECT_FALSE(Mints()) << "before the journal allows more";
  ASSERT_EQ(journal.writes.size(), 1U);
  EXPECT_EQ(journal.writes.front().record.short_ms, kStart + 3000);
  EXPECT_EQ(journal.writes.front().record.generation, 7);
  Saved();
  const auto parts = MintOne();
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->worker, 3);
  EXPECT_EQ(parts->time_ms, kStart + 2000);
  EXPECT_TRUE(engine->View().serving);
  // The registry is back: a right of this process.
  Pass(milliseconds(100));
  GrantClaim(3, 8);
  EXPECT_TRUE(Mints());
  Saved();
  EXPECT_EQ(WorkerOfNext(), 3);
  EXPECT_EQ(engine->View().generation, 8);
}

TEST_F(CarryOnTest, ASpentJournalProvesItsRecordAndMintsNothingByItself) {
  journal.found->record.spent = true;
  Start();
  EXPECT_EQ(registry.calls.front().ask.journal, journal.found->record);
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  EXPECT_TRUE(journal.writes.empty());
  EXPECT_FALSE(Mints());
}

TEST_F(CarryOnTest, ACopiedJournalProvesNothing) {
  journal.found->same_place = false;
  Start();
  EXPECT_EQ(registry.calls.front().ask.journal, std::nullopt);
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  EXPECT_TRUE(journal.writes.empty());
  EXPECT_EQ(engine->View().worker, -1);
}

TEST_F(CarryOnTest, AJournalWhoseRightHasEndedProvesNothing) {
  journal.found->record.limit_ms = kStart;
  journal.found->record.short_ms = kStart - 1000;
  Start();
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  EXPECT_EQ(engine->View().worker, -1);
}

TEST_F(CarryOnTest, ARegistryThatCallsTheRightAnothersIsBelieved) {
  Start();
  Fail(Kind::kClaim, Code::kConflict, "the node is another's");
  EXPECT_EQ(engine->View().worker, -1);
  ASSERT_EQ(journal.writes.size(), 1U);
  EXPECT_EQ(journal.writes.front().record.limit_ms, 0);
  Saved();
  Pass(milliseconds(100));
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  EXPECT_EQ(engine->View().worker, -1) << "it stays disowned";
}

TEST_F(CarryOnTest, ARegistryThatComesBackAndCallsTheRightAnothersIsBelieved) {
  registry.its_traits.foreign_writers = true;
  Start();
  Fail(Kind::kClaim, Code::kUnavailable, "nobody answers");
  Saved();
  ASSERT_TRUE(Mints());
  Pass(milliseconds(100));
  while (!journal.writes.empty()) Saved();
  Fail(Kind::kClaim, Code::kConflict, "the node is another's");
  EXPECT_FALSE(Mints());
  ASSERT_FALSE(journal.writes.empty());
  EXPECT_EQ(journal.writes.front().record.limit_ms, 0);
}

}  // namespace
}  // namespace leaf::test
