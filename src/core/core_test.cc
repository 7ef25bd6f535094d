// Use cases, layouts and counters.

#include <gtest/gtest.h>

#include "core/id_service.h"
#include "core/request_stats.h"
#include "core/segment/engine_test_support.h"
#include "core/snowflake/layout.h"

namespace leaf::test {
namespace {

class IdServiceTest : public EngineTest {
 protected:
  Result<Ranges> Next(IdService& service, std::string_view tag, std::int64_t n) {
    TestWaiter waiter(tasks, n, false);
    Result<Ranges> out = Ranges{};
    if (service.NextIds(*reader, tag, waiter, clock.now, out)) return out;
    tasks.RunAll();
    EXPECT_EQ(waiter.runs, 1);
    return waiter.result;
  }
};

TEST_F(IdServiceTest, ChecksTheRequestAndServesIt) {
  store.AddRow("order", 1, 100);
  store.AddRow("caf\xC3\xA9", 7, 100);
  Start();
  IdService service(engine.get(), IdLimits{});
  EXPECT_EQ(Next(service, "order", 3)->count(), 3);
  EXPECT_EQ(Next(service, "caf\xC3\xA9", 1)->at[0].first, 7) << "others are served if they exist";
  EXPECT_EQ(Next(service, "", 1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Next(service, std::string(129, 'a'), 1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Next(service, "order", 0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Next(service, "order", -1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Next(service, "order", 1'000'001).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(Next(service, "order", 1'000'000).ok());
  EXPECT_EQ(Next(service, "none", 1).error().code, Code::kNotFound);
}

TEST_F(IdServiceTest, ADisabledModeSaysSo) {
  Start();
  IdService service(nullptr, IdLimits{});
  EXPECT_FALSE(service.segment_enabled());
  EXPECT_EQ(Next(service, "order", 1).error().code, Code::kDisabled);
}

TEST(TagNameTest, PlainNamesAreShortAndOfTheAlphabet) {
  EXPECT_TRUE(IsPlainTag("leaf-segment_test.a:B9"));
  EXPECT_TRUE(IsPlainTag(std::string(128, 'x')));
  for (const std::string& bad :
       {std::string(), std::string(129, 'x'), std::string("a b"), std::string("a/b"),
        std::string("a\0b", 3), std::string("\xC3\xA9")}) {
    EXPECT_FALSE(IsPlainTag(bad)) << bad;
  }
}

TEST(LayoutTest, DecodesLeafsIds) {
  const SnowflakeParts parts = Decode(kLeafLayout, 1169787233612513672);
  const std::int64_t back =
      ((parts.time_ms - kLeafLayout.epoch_ms) << 22) | (parts.worker << 12) | parts.sequence;
  EXPECT_EQ(back, 1169787233612513672);
  EXPECT_EQ(Decode(kLeafLayout, 0).time_ms, 1288834974657);
  EXPECT_EQ(Decode(kLeafLayout, kMaxEnd).time_ms, 1288834974657 + ((1LL << 41) - 1));
  EXPECT_EQ(Decode(kLeafLayout, kMaxEnd).worker, 1023);
  EXPECT_EQ(Decode(kLeafLayout, kMaxEnd).sequence, 4095);
}

TEST(LayoutTest, ANegativeNumberYieldsATimeBeforeTheEpoch) {
  const SnowflakeParts parts = Decode(kLeafLayout, -1);
  EXPECT_EQ(parts.time_ms, 1288834974656);
  EXPECT_EQ(parts.worker, 1023);
  EXPECT_EQ(parts.sequence, 4095);
  EXPECT_EQ(Decode(kLeafLayout, -kMaxEnd - 1).time_ms, 1288834974657 - (1LL << 41));
}

TEST(LayoutTest, LayoutsAreFoundByName) {
  EXPECT_EQ(FindLayout("leaf")->worker_bits, 10);
  EXPECT_EQ(FindLayout("js53")->epoch_ms, 1577836800000);
  EXPECT_FALSE(FindLayout("nothing").has_value());
}

TEST(RequestStatsTest, PutsDurationsIntoTheirBuckets) {
  RequestStats stats;
  stats.Took(Protocol::kHttp, std::chrono::microseconds(5), 2);
  stats.Took(Protocol::kHttp, std::chrono::microseconds(6), 1);
  stats.Took(Protocol::kHttp, seconds(3), 1);
  stats.Took(Protocol::kHttp, seconds(4), 1);
  EXPECT_EQ(stats.bucket(Protocol::kHttp, 0), 2U) << "bounds belong to their bucket";
  EXPECT_EQ(stats.bucket(Protocol::kHttp, 1), 1U);
  EXPECT_EQ(stats.bucket(Protocol::kHttp, 13), 1U);
  EXPECT_EQ(stats.bucket(Protocol::kHttp, 14), 1U);
  EXPECT_DOUBLE_EQ(stats.seconds(Protocol::kHttp), 7.000016);
}

TEST(RequestStatsTest, CountsRequestsIdsAndConnections) {
  RequestStats stats;
  stats.Count(Protocol::kHttp, RequestStats::kOk);
  stats.Count(Protocol::kHttp, static_cast<int>(Code::kNotFound));
  stats.Issued(7);
  stats.Connected(Protocol::kHttp, 1);
  stats.Connected(Protocol::kHttp, 1);
  stats.Connected(Protocol::kHttp, -1);
  stats.Refused();
  EXPECT_EQ(stats.requests(Protocol::kHttp, RequestStats::kOk), 1U);
  EXPECT_EQ(stats.requests(Protocol::kHttp, static_cast<int>(Code::kNotFound)), 1U);
  EXPECT_EQ(stats.ids(), 7U);
  EXPECT_EQ(stats.connections(Protocol::kHttp), 1);
  EXPECT_EQ(stats.refused(), 1U);
}

}  // namespace
}  // namespace leaf::test
