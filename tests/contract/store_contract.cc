#include "contract/store_contract.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "store/driver_testing.h"

namespace leaf::contract {
namespace {

using testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(10);

void ExpectGranted(const Grant& grant, Range range) {
  EXPECT_EQ(grant.outcome, Outcome::kGranted) << Describe(grant);
  EXPECT_EQ(grant.range, range) << Describe(grant);
}

void ExpectRefused(const Grant& grant, Code code) {
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_EQ(grant.error.code, code) << Describe(grant);
  EXPECT_FALSE(grant.error.message.empty());
}

// Tries `attempt` until it is true, for as long as a store may take to come back.
template <typename F>
bool Eventually(F attempt) {
  const Instant until = SystemClock().Now() + kPatience;
  while (SystemClock().Now() < until) {
    if (attempt()) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

std::unique_ptr<SegmentDriver> StoreContract::Open(int node) {
  std::unique_ptr<SegmentDriver> driver = store_->MakeDriver(node);
  const Result<StoreInfo> info = driver->Open(SystemClock().Now() + kPatience);
  EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.error().message);
  EXPECT_EQ(driver->connected(), info.ok());
  return driver;
}

Instant StoreContract::Soon() const { return SystemClock().Now() + traits().timeout; }

Grant StoreContract::Reserve(SegmentDriver& driver, std::string_view tag, std::int64_t count) {
  return Reserve(driver, tag, count, SystemClock().Now() + kPatience);
}

Grant StoreContract::Reserve(SegmentDriver& driver, std::string_view tag, std::int64_t count,
                             Instant deadline) {
  const Ask ask{7, tag, count, deadline};
  Grant grant;
  driver.Reserve({&ask, 1}, {&grant, 1});
  EXPECT_EQ(grant.flight, 7U);
  return grant;
}

// --- What a session says of the store.

TEST_P(StoreContract, TellsItsDurabilityRightly) {
  const auto driver = store_->MakeDriver(0);
  const Result<StoreInfo> info = driver->Open(SystemClock().Now() + kPatience);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->durability, traits().durability);
}

TEST_P(StoreContract, KeepsItsIdentityOverSessionsAndNodes) {
  const auto identity = [&](int node) {
    const auto driver = store_->MakeDriver(node);
    const Result<StoreInfo> info = driver->Open(SystemClock().Now() + kPatience);
    EXPECT_TRUE(info.ok());
    return info.ok() ? info->identity : std::string();
  };
  const std::string first = identity(0);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(identity(0), first);
  EXPECT_EQ(identity(1), first);
}

TEST_P(StoreContract, IsNotConnectedBeforeOpenAndAfterClose) {
  const auto driver = store_->MakeDriver(0);
  EXPECT_FALSE(driver->connected());
  driver->Close();
  driver->Interrupt();
  ASSERT_TRUE(driver->Open(SystemClock().Now() + kPatience).ok());
  EXPECT_TRUE(driver->connected());
  driver->Close();
  EXPECT_FALSE(driver->connected());
  ASSERT_TRUE(driver->Open(SystemClock().Now() + kPatience).ok());
  EXPECT_TRUE(driver->connected());
}

// --- Reserving.

TEST_P(StoreContract, ReservesWhatWasAskedFromWhereTheRowStands) {
  store_->Put("order", {1, 1000, "orders"});
  const auto driver = Open();
  const Grant first = Reserve(*driver, "order", 2000);
  ExpectGranted(first, {1, 2001});
  if (traits().knows_row_step) {
    EXPECT_EQ(first.row_step, 1000);
  }
  ExpectGranted(Reserve(*driver, "order", 1), {2001, 2002});
  const auto row = store_->Get("order");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->max_id, 2002);
  EXPECT_EQ(row->step, 1000) << "a reservation never writes the step";
  if (traits().keeps_description) {
    EXPECT_EQ(row->description, "orders");
  }
}

TEST_P(StoreContract, MovesTheRowOnlyByWhatItGrants) {
  store_->Put("a", {1, 10, ""});
  store_->Put("b", {1, 10, ""});
  const auto driver = Open();
  ExpectGranted(Reserve(*driver, "a", 10), {1, 11});
  EXPECT_EQ(store_->Get("a")->max_id, 11);
  EXPECT_EQ(store_->Get("b")->max_id, 1);
}

TEST_P(StoreContract, AnswersEachAskOfABatchByItself) {
  store_->Put("a", {1, 10, ""});
  store_->Put("bad", {1, 0, ""});
  store_->Put("full", {kMaxEnd - 1, 10, ""});
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  const std::vector<Ask> asks = {{1, "a", 10, later},   {2, "none", 10, later},
                                 {3, "bad", 10, later}, {4, "full", 10, later},
                                 {5, "a", 5, later},    {6, "a", 5, Instant{}}};
  std::vector<Grant> grants(asks.size());
  const auto limit = static_cast<std::size_t>(driver->batch_limit());
  for (std::size_t i = 0; i < asks.size(); i += limit) {
    const std::size_t size = std::min(limit, asks.size() - i);
    driver->Reserve({asks.data() + i, size}, {grants.data() + i, size});
  }
  for (std::size_t i = 0; i < asks.size(); ++i) EXPECT_EQ(grants[i].flight, asks[i].flight);
  ExpectGranted(grants[0], {1, 11});
  ExpectRefused(grants[1], Code::kNotFound);
  ExpectRefused(grants[2], Code::kUnavailable);
  ExpectRefused(grants[3], Code::kExhausted);
  ExpectGranted(grants[4], {11, 16});
  ExpectRefused(grants[5], Code::kUnavailable);
  EXPECT_EQ(store_->Get("a")->max_id, 16);
}

TEST_P(StoreContract, GivesTwoCompetingNodesDisjointRanges) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  const std::uint64_t seed = SystemRandom().Next();
  SCOPED_TRACE("seed " + std::to_string(seed));
  store_->Put("order", {1, 100, ""});
  std::vector<std::vector<Range>> got(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto driver = Open(t % 2);
      std::uint64_t draw = seed + static_cast<std::uint64_t>(t);
      for (int i = 0; i < kRounds; ++i) {
        draw = draw * 6364136223846793005U + 1442695040888963407U;
        const auto count = static_cast<std::int64_t>(draw >> 60) + 1;
        const Grant grant = Reserve(*driver, "order", count);
        ASSERT_EQ(grant.outcome, Outcome::kGranted) << Describe(grant);
        ASSERT_EQ(grant.range.size(), count);
        got[static_cast<std::size_t>(t)].push_back(grant.range);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Range> all;
  for (const auto& ranges : got) {
    EXPECT_TRUE(std::is_sorted(ranges.begin(), ranges.end(),
                               [](Range a, Range b) { return a.first < b.first; }));
    all.insert(all.end(), ranges.begin(), ranges.end());
  }
  std::sort(all.begin(), all.end(), [](Range a, Range b) { return a.first < b.first; });
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kThreads * kRounds));
  std::int64_t end = 1;
  for (const Range& range : all) {
    ASSERT_EQ(range.first, end) << "neither an overlap nor a hole";
    end = range.last;
  }
  EXPECT_EQ(store_->Get("order")->max_id, end);
}

TEST_P(StoreContract, RefusesATagWithoutARow) {
  const auto driver = Open();
  ExpectRefused(Reserve(*driver, "none", 10), Code::kNotFound);
  EXPECT_FALSE(store_->Get("none"));
  EXPECT_TRUE(driver->connected());
}

TEST_P(StoreContract, RefusesABadStepAndLeavesTheRow) {
  store_->Put("zero", {5, 0, ""});
  store_->Put("minus", {5, -1, ""});
  const auto driver = Open();
  for (const char* tag : {"zero", "minus"}) {
    const Grant grant = Reserve(*driver, tag, 10);
    ExpectRefused(grant, Code::kUnavailable);
    EXPECT_THAT(grant.error.message, HasSubstr("step"));
    EXPECT_EQ(store_->Get(tag)->max_id, 5);
  }
  EXPECT_TRUE(driver->connected()) << "one bad row must not cost the session";
}

TEST_P(StoreContract, RefusesARowWhoseStepIsAbsent) {
  if (!traits().row_can_be_odd) {
    store_->Put("odd", {5, std::numeric_limits<std::int32_t>::min(), ""});
  } else {
    store_->PutOdd("odd");
  }
  const auto driver = Open();
  ExpectRefused(Reserve(*driver, "odd", 10), Code::kUnavailable);
  EXPECT_TRUE(driver->connected());
}

TEST_P(StoreContract, RefusesANegativeMaxId) {
  store_->Put("minus", {-5, 10, ""});
  const auto driver = Open();
  ExpectRefused(Reserve(*driver, "minus", 10), Code::kUnavailable);
  EXPECT_EQ(store_->Get("minus")->max_id, -5);
}

TEST_P(StoreContract, TakesAStepChangedByHandAtOnce) {
  store_->Put("order", {1, 10, ""});
  const auto driver = Open();
  ExpectGranted(Reserve(*driver, "order", 10), {1, 11});
  store_->Put("order", {500, 77, ""});
  const Grant grant = Reserve(*driver, "order", 10);
  ExpectGranted(grant, {500, 510});
  if (traits().knows_row_step) {
    EXPECT_EQ(grant.row_step, 77);
  }
}

TEST_P(StoreContract, EndsAtTheLastIdAndStaysThere) {
  store_->Put("end", {kMaxEnd - 10, 10, ""});
  const auto driver = Open();
  ExpectRefused(Reserve(*driver, "end", 11), Code::kExhausted);
  ExpectGranted(Reserve(*driver, "end", 4), {kMaxEnd - 10, kMaxEnd - 6});
  ExpectGranted(Reserve(*driver, "end", 6), {kMaxEnd - 6, kMaxEnd});
  ExpectRefused(Reserve(*driver, "end", 1), Code::kExhausted);
  ExpectRefused(Reserve(*driver, "end", kMaxEnd), Code::kExhausted);
  EXPECT_EQ(store_->Get("end")->max_id, kMaxEnd);
  EXPECT_TRUE(driver->connected());
}

TEST_P(StoreContract, StopsBeforeTheEndOfSixtyThreeBits) {
  store_->Put("order", {9223372036854775000, 10, ""});
  const auto driver = Open();
  ExpectRefused(Reserve(*driver, "order", 1000), Code::kExhausted);
  EXPECT_EQ(store_->Get("order")->max_id, 9223372036854775000);
  ExpectGranted(Reserve(*driver, "order", 807), {9223372036854775000, kMaxEnd});
  ExpectRefused(Reserve(*driver, "order", 1), Code::kExhausted);
  EXPECT_TRUE(driver->connected());
}

TEST_P(StoreContract, IsExactAboveFiftyThreeBits) {
  store_->Put("order", {9007199254740993, 10, ""});
  const auto driver = Open();
  ExpectGranted(Reserve(*driver, "order", 1), {9007199254740993, 9007199254740994});
  EXPECT_EQ(*driver->Raise("order", 9007199254740995, 2, SystemClock().Now() + kPatience),
            9007199254740997);
  EXPECT_EQ(store_->Get("order")->max_id, 9007199254740997);
}

TEST_P(StoreContract, CrossesThirtyTwoBits) {
  store_->Put("wide", {2147483640, 10, ""});
  const auto driver = Open();
  ExpectGranted(Reserve(*driver, "wide", 10), {2147483640, 2147483650});
  ExpectGranted(Reserve(*driver, "wide", 5'000'000'000), {2147483650, 7147483650});
}

TEST_P(StoreContract, StartsNothingAfterTheDeadline) {
  store_->Put("order", {1, 10, ""});
  const auto driver = Open();
  const Instant past = SystemClock().Now() - std::chrono::milliseconds(1);
  ExpectRefused(Reserve(*driver, "order", 10, past), Code::kUnavailable);
  EXPECT_FALSE(driver->Find("order", past).ok());
  EXPECT_FALSE(driver->List("", 10, past).ok());
  EXPECT_FALSE(driver->Create("new", 10, 1, past).ok());
  EXPECT_FALSE(driver->SetStep("order", 20, past).ok());
  EXPECT_FALSE(driver->Raise("order", 100, 1, past).ok());
  EXPECT_FALSE(driver->Delete("order", past).ok());
  EXPECT_FALSE(driver->HandBack("order", {0, 1}, past).ok());
  const auto row = store_->Get("order");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->max_id, 1);
  EXPECT_EQ(row->step, 10);
  EXPECT_FALSE(store_->Get("new"));
}

// --- Names.

TEST_P(StoreContract, ComparesNamesByteByByte) {
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  store_->Put("order", {1, 10, ""});
  store_->Put("caf\xc3\xa9", {1, 10, ""});
  for (const char* other :
       {"ORDER", "order ", " order", "orde", "orders", "\xc3\xb3rder", "o%", "_rder", "*", "cafe",
        "cafe\xcc\x81", "caf\xc3\x89", "order' OR '1'='1"}) {
    SCOPED_TRACE(other);
    ExpectRefused(Reserve(*driver, other, 10), Code::kNotFound);
    const auto found = driver->Find(other, later);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_FALSE(found->has_value());
    EXPECT_EQ(driver->SetStep(other, 99, later).error().code, Code::kNotFound);
    EXPECT_EQ(driver->Raise(other, 9, 9, later).error().code, Code::kNotFound);
    EXPECT_EQ(driver->Delete(other, later).error().code, Code::kNotFound);
    EXPECT_FALSE(*driver->HandBack(other, {0, 1}, later));
  }
  EXPECT_EQ(store_->Get("order")->max_id, 1);
  EXPECT_EQ(store_->Get("caf\xc3\xa9")->max_id, 1);
  ExpectGranted(Reserve(*driver, "caf\xc3\xa9", 10), {1, 11});
}

TEST_P(StoreContract, TakesEveryNameThatAColumnHolds) {
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  for (const std::string& name :
       {std::string(128, 'x'), std::string("it's"), std::string("50%"), std::string("a\"b`c\\d"),
        std::string("a_b"), std::string("x;--"), std::string("0"), std::string("A.b:c-d")}) {
    SCOPED_TRACE(name);
    const Result<Row> made = driver->Create(name, 10, 1, later);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->tag, name);
    ExpectGranted(Reserve(*driver, name, 3), {1, 4});
    const auto found = driver->Find(name, later);
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_EQ((*found)->tag, name);
    EXPECT_EQ((*found)->max_id, 4);
  }
}

// --- Reading.

TEST_P(StoreContract, FindsARowAsItIs) {
  store_->Put("order", {42, 1000, ""});
  const auto driver = Open();
  const auto row = driver->Find("order", SystemClock().Now() + kPatience);
  ASSERT_TRUE(row.ok() && row->has_value());
  EXPECT_EQ((*row)->tag, "order");
  EXPECT_EQ((*row)->max_id, 42);
  EXPECT_EQ((*row)->step, 1000);
  EXPECT_THAT((*row)->updated,
              testing::MatchesRegex(traits().keeps_time ? "....-..-.. ..:..:..\\.0" : ""));
}

TEST_P(StoreContract, ListsEveryRowOnceInPages) {
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  std::vector<std::string> names;
  for (int i = 0; i < 57; ++i) {
    std::string name = (i % 3 == 0 ? "t" : i % 3 == 1 ? "T" : "t_") + std::to_string(i);
    store_->Put(name, {i + 1, 10, ""});
    names.push_back(std::move(name));
  }
  for (const int limit : {1, 10, 57, 1000}) {
    std::vector<std::string> seen;
    std::string after;
    for (;;) {
      const auto page = driver->List(after, limit, later);
      ASSERT_TRUE(page.ok()) << page.error().message;
      ASSERT_LE(page->size(), static_cast<std::size_t>(limit));
      for (const Row& row : *page) seen.push_back(row.tag);
      if (page->size() < static_cast<std::size_t>(limit)) break;
      after = page->back().tag;
    }
    EXPECT_THAT(seen, testing::UnorderedElementsAreArray(names)) << "limit " << limit;
  }
}

TEST_P(StoreContract, ListsAnEmptyTableAsEmpty) {
  const auto driver = Open();
  const auto page = driver->List("", 10, SystemClock().Now() + kPatience);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_TRUE(page->empty());
}

// --- Administration.

TEST_P(StoreContract, CreatesARowOnce) {
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  const Result<Row> made = driver->Create("new", 500, 77, later);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->tag, "new");
  EXPECT_EQ(made->max_id, 77);
  EXPECT_EQ(made->step, 500);
  EXPECT_EQ(driver->Create("new", 1, 1, later).error().code, Code::kConflict);
  EXPECT_EQ(store_->Get("new")->max_id, 77);
  EXPECT_EQ(store_->Get("new")->step, 500);
  EXPECT_TRUE(driver->connected());
}

TEST_P(StoreContract, ChangesTheStepAndNothingElse) {
  store_->Put("order", {42, 10, "kept"});
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  const Result<Row> row = driver->SetStep("order", 2000, later);
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->step, 2000);
  EXPECT_EQ(row->max_id, 42);
  EXPECT_EQ(driver->SetStep("order", 2000, later)->step, 2000) << "no change is no missing row";
  EXPECT_EQ(driver->SetStep("none", 2000, later).error().code, Code::kNotFound);
  if (traits().keeps_description) {
    EXPECT_EQ(store_->Get("order")->description, "kept");
  }
}

TEST_P(StoreContract, DeletesARowAndTellsWhatItWas) {
  store_->Put("order", {42, 10, ""});
  store_->Put("other", {1, 10, ""});
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  const Result<Row> row = driver->Delete("order", later);
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->max_id, 42);
  EXPECT_FALSE(store_->Get("order"));
  EXPECT_TRUE(store_->Get("other"));
  EXPECT_EQ(driver->Delete("order", later).error().code, Code::kNotFound);
}

TEST_P(StoreContract, RaisesUpwardsOnly) {
  store_->Put("order", {100, 10, ""});
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  EXPECT_EQ(*driver->Raise("order", 500, 7, later), 507);
  EXPECT_EQ(*driver->Raise("order", 3, 0, later), 507);
  EXPECT_EQ(*driver->Raise("order", 0, 3, later), 510);
  EXPECT_EQ(store_->Get("order")->max_id, 510);
  EXPECT_EQ(driver->Raise("order", kMaxEnd, 1, later).error().code, Code::kExhausted);
  EXPECT_EQ(driver->Raise("order", 0, kMaxEnd, later).error().code, Code::kExhausted);
  EXPECT_EQ(driver->Raise("none", 5, 5, later).error().code, Code::kNotFound);
  EXPECT_EQ(store_->Get("order")->max_id, 510);
  EXPECT_EQ(*driver->Raise("order", kMaxEnd, 0, later), kMaxEnd);
}

TEST_P(StoreContract, TakesATailBackOnlyFromWhereItLeftTheRow) {
  store_->Put("order", {1, 100, ""});
  const auto driver = Open();
  const Instant later = SystemClock().Now() + kPatience;
  ExpectGranted(Reserve(*driver, "order", 100), {1, 101});
  EXPECT_TRUE(*driver->HandBack("order", {40, 101}, later));
  EXPECT_EQ(store_->Get("order")->max_id, 40);

  ExpectGranted(Reserve(*driver, "order", 60), {40, 100});
  const auto other = Open(1);
  ExpectGranted(Reserve(*other, "order", 10), {100, 110});
  EXPECT_FALSE(*driver->HandBack("order", {50, 100}, later)) << "another node reserved meanwhile";
  EXPECT_EQ(store_->Get("order")->max_id, 110);
  EXPECT_FALSE(*driver->HandBack("none", {50, 100}, later));
}

// --- Trouble.

TEST_P(StoreContract, KeepsWhatItAcknowledgedOverARestart) {
  if (!traits().survives_restart) {
    EXPECT_EQ(traits().durability, Durability::kVolatile) << "only a volatile store may forget";
    return;
  }
  store_->Put("order", {1, 10, ""});
  const auto driver = Open();
  std::int64_t end = 1;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) {
      const Grant grant = Reserve(*driver, "order", 10);
      ASSERT_EQ(grant.outcome, Outcome::kGranted) << Describe(grant);
      EXPECT_GE(grant.range.first, end);
      end = grant.range.last;
    }
    store_->Restart();
    driver->Close();
    ASSERT_TRUE(Eventually([&] { return driver->Open(SystemClock().Now() + kPatience).ok(); }));
    EXPECT_GE(store_->Get("order")->max_id, end);
  }
}

TEST_P(StoreContract, TellsThatItIsReadOnlyAndHeals) {
  if (!traits().can_be_read_only) {
    EXPECT_EQ(traits().durability, Durability::kVolatile)
        << "every store that keeps can be read-only";
    return;
  }
  store_->Put("order", {1, 10, ""});
  const auto driver = Open();
  ExpectGranted(Reserve(*driver, "order", 10), {1, 11});
  store_->SetReadOnly(true);
  const auto refusal = [&]() -> std::string {
    if (!driver->connected()) {
      const auto opened = driver->Open(SystemClock().Now() + kPatience);
      if (!opened.ok()) {
        EXPECT_EQ(opened.error().code, Code::kUnavailable);
        return opened.error().message;
      }
    }
    const Grant grant = Reserve(*driver, "order", 10);
    EXPECT_NE(grant.outcome, Outcome::kGranted) << Describe(grant);
    EXPECT_EQ(grant.error.code, Code::kUnavailable);
    return grant.error.message;
  };
  // A session that was open may first learn that it is cut.
  std::string said = refusal();
  if (!testing::Matches(testing::ContainsRegex("[Rr]ead-?only|readonly"))(said)) said = refusal();
  EXPECT_THAT(said, testing::ContainsRegex("[Rr]ead-?only|readonly"));
  store_->SetReadOnly(false);
  Grant grant;
  ASSERT_TRUE(Eventually([&] {
    if (!driver->connected() && !driver->Open(SystemClock().Now() + kPatience).ok()) return false;
    grant = Reserve(*driver, "order", 10);
    return grant.outcome == Outcome::kGranted;
  })) << Describe(grant);
  EXPECT_GE(grant.range.first, 11);
}

TEST_P(StoreContract, NeverCommitsAfterItsTimeoutWhatWaitedForALock) {
  if (!traits().has_locks) {
    EXPECT_EQ(traits().durability, Durability::kVolatile) << "every store that keeps has locks";
    return;
  }
  store_->Put("order", {1, 10, ""});
  const auto driver = Open();
  const Instant deadline = Soon();
  std::shared_ptr<void> held = store_->LockRow("order");
  ASSERT_NE(held, nullptr);
  const Grant grant = Reserve(*driver, "order", 10, deadline);
  EXPECT_NE(grant.outcome, Outcome::kGranted) << Describe(grant);
  EXPECT_GE(SystemClock().Now(), deadline - std::chrono::milliseconds(50))
      << "it waits for the lock";
  EXPECT_LT(SystemClock().Now(), deadline + traits().timeout + traits().late_commit);
  const Instant settled = SystemClock().Now() + traits().late_commit;
  ASSERT_TRUE(Eventually([&] { return SystemClock().Now() >= settled; }));
  held.reset();
  // Whatever waited has now its chance; a reservation that got the lock after it shows the row.
  const auto other = Open(1);
  ExpectGranted(Reserve(*other, "order", 10), {1, 11});
  EXPECT_EQ(store_->Get("order")->max_id, 11);
}

TEST_P(StoreContract, AnInterruptEndsACallThatWaitsForALock) {
  if (!traits().has_locks) {
    EXPECT_EQ(traits().durability, Durability::kVolatile) << "every store that keeps has locks";
    return;
  }
  store_->Put("order", {1, 10, ""});
  const auto driver = Open();
  std::shared_ptr<void> held = store_->LockRow("order");
  std::atomic<bool> ended{false};
  Grant grant;
  std::thread caller([&] {
    grant = Reserve(*driver, "order", 10, SystemClock().Now() + traits().timeout);
    ended = true;
  });
  EXPECT_TRUE(Eventually([&] {
    driver->Interrupt();  // again and again: the first may come before the call began
    return ended.load();
  }));
  caller.join();
  EXPECT_NE(grant.outcome, Outcome::kGranted);
  held.reset();
  // What was sent before the session was cut may still happen: that is what kUnknown says.
  const std::int64_t row = store_->Get("order")->max_id;
  EXPECT_TRUE(row == 1 || (row == 11 && grant.outcome == Outcome::kUnknown))
      << row << " " << Describe(grant);
}

}  // namespace leaf::contract
