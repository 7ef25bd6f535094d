#include "check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "history.h"

namespace leaf::tools {
namespace {

using Verdict = CheckReport::Verdict;

HistoryRecord Answer(std::uint32_t client, std::int64_t sent, std::int64_t received,
                     std::int64_t first, std::int64_t count, std::uint16_t server = 0) {
  HistoryRecord record;
  record.client = client;
  record.sent_ns = sent;
  record.received_ns = received;
  record.first = first;
  record.count = count;
  record.server = server;
  record.status = 200;
  return record;
}

class CheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "idcheck-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::vector<HistoryRecord>& records) {
    const std::string path = folder_ + "/" + std::to_string(++files_);
    HistoryWriter writer(path);
    writer.NameTag(0, "order");
    writer.NameTag(1, "user");
    writer.NameServer(0, "a:1");
    writer.NameServer(1, "b:1");
    for (const HistoryRecord& record : records) writer.Write(record);
    EXPECT_TRUE(writer.Close());
    return path;
  }

  CheckReport Judge(const std::vector<std::string>& files, CheckOptions options = {}) {
    Checker checker(std::move(options));
    for (const std::string& file : files) EXPECT_EQ(checker.Add(file), "");
    return checker.Finish();
  }
  CheckReport Judge(const std::vector<HistoryRecord>& records, CheckOptions options = {}) {
    return Judge(std::vector<std::string>{File(records)}, std::move(options));
  }

  std::string folder_;
  int files_ = 0;
};

TEST_F(CheckTest, RisingRangesAreClean) {
  const CheckReport report =
      Judge({Answer(1, 0, 5, 1, 10), Answer(2, 1, 6, 11, 5), Answer(1, 7, 9, 16, 1)});
  EXPECT_EQ(report.verdict, Verdict::kClean);
  EXPECT_EQ(report.total.ids, 16);
  EXPECT_EQ(report.tags.at("order").first, 1);
  EXPECT_EQ(report.tags.at("order").last, 17);
  EXPECT_TRUE(report.findings.empty());
}

TEST_F(CheckTest, FindsOneIdIssuedTwice) {
  const CheckReport report = Judge({Answer(1, 0, 5, 7, 1), Answer(2, 0, 5, 7, 1)});
  EXPECT_EQ(report.verdict, Verdict::kBreach);
  EXPECT_EQ(report.total.duplicates, 1);
}

TEST_F(CheckTest, FindsAnOverlapWithARangeThatIsNotItsNeighbour) {
  const CheckReport report = Judge({Answer(1, 0, 9, 1, 100), Answer(2, 0, 9, 200, 1),
                                    Answer(3, 0, 9, 20, 1), Answer(4, 0, 9, 90, 20)});
  EXPECT_EQ(report.verdict, Verdict::kBreach);
  EXPECT_EQ(report.total.duplicates, 1 + 11);
}

TEST_F(CheckTest, FindsDuplicatesAcrossFiles) {
  const CheckReport report = Judge(
      std::vector<std::string>{File({Answer(1, 0, 5, 1, 10)}), File({Answer(1, 0, 5, 10, 10)})});
  EXPECT_EQ(report.verdict, Verdict::kBreach);
  EXPECT_EQ(report.total.duplicates, 1);
  EXPECT_EQ(report.total.connection_breaches, 0)
      << "client 1 of one file is not client 1 of the other";
}

TEST_F(CheckTest, TheSameIdOfTwoTagsIsNoDuplicate) {
  HistoryRecord other = Answer(1, 0, 5, 1, 10);
  other.tag = 1;
  EXPECT_EQ(Judge({Answer(1, 0, 5, 1, 10), other}).verdict, Verdict::kClean);
}

TEST_F(CheckTest, FindsAFallOnOneConnectionThoughItsRequestsOverlapped) {
  const CheckReport report = Judge({Answer(1, 0, 5, 11, 1), Answer(1, 0, 5, 10, 1)});
  EXPECT_EQ(report.verdict, Verdict::kBreach);
  EXPECT_EQ(report.total.connection_breaches, 1);
  EXPECT_EQ(report.total.server_breaches, 0);
}

TEST_F(CheckTest, FindsARealTimeFallBetweenConnectionsOfOneServer) {
  const CheckReport report = Judge({Answer(1, 0, 5, 11, 1), Answer(2, 6, 9, 10, 1)});
  EXPECT_EQ(report.verdict, Verdict::kBreach);
  EXPECT_EQ(report.total.server_breaches, 1);
}

TEST_F(CheckTest, FindsAFallBelowAnAnswerThatCameLongAgo) {
  const CheckReport report =
      Judge({Answer(1, 0, 1, 1000, 1), Answer(2, 2, 3, 1001, 1), Answer(3, 900, 901, 5, 1)});
  EXPECT_EQ(report.total.server_breaches, 1);
}

TEST_F(CheckTest, RequestsThatOverlapInTimeMayComeInAnyOrder) {
  EXPECT_EQ(Judge({Answer(1, 0, 5, 11, 1), Answer(2, 5, 9, 10, 1)}).verdict, Verdict::kClean);
}

TEST_F(CheckTest, OrderAcrossServersIsJudgedOnlyOnDemand) {
  const std::vector<HistoryRecord> records = {Answer(1, 0, 5, 2001, 1, 0),
                                              Answer(2, 6, 9, 1001, 1, 1)};
  const CheckReport lax = Judge(records);
  EXPECT_EQ(lax.verdict, Verdict::kClean);
  EXPECT_EQ(lax.total.global_breaches, 1);
  EXPECT_TRUE(lax.findings.empty());
  CheckOptions strict;
  strict.global_order = true;
  EXPECT_EQ(Judge(records, strict).verdict, Verdict::kBreach);
}

TEST_F(CheckTest, AServerIsKnownByItsNameInAllFiles) {
  const CheckReport report = Judge(
      std::vector<std::string>{File({Answer(1, 0, 5, 11, 1)}), File({Answer(1, 6, 9, 10, 1)})});
  EXPECT_EQ(report.total.server_breaches, 1);
}

TEST_F(CheckTest, CountsUnsureAndFailedRequestsWithoutBlame) {
  HistoryRecord unsure = Answer(2, 0, 5, 0, 100);
  unsure.status = HistoryRecord::kNoAnswer;
  HistoryRecord failed = Answer(3, 0, 5, 0, 7);
  failed.status = 503;
  const CheckReport report = Judge({Answer(1, 0, 5, 1, 1), unsure, failed});
  EXPECT_EQ(report.verdict, Verdict::kClean);
  EXPECT_EQ(report.total.unsure, 1);
  EXPECT_EQ(report.total.unsure_ids, 100);
  EXPECT_EQ(report.total.failed, 1);
  EXPECT_EQ(report.total.ids, 1);
}

TEST_F(CheckTest, CountsLostIdsBelowTheStoresMaximum) {
  CheckOptions options;
  options.high["order"] = 2001;
  options.low["order"] = 1;
  const CheckReport report = Judge({Answer(1, 0, 5, 1, 10)}, options);
  EXPECT_EQ(report.verdict, Verdict::kClean);
  EXPECT_EQ(report.total.lost, 1990);
  options.max_lost["order"] = 1989;
  EXPECT_EQ(Judge({Answer(1, 0, 5, 1, 10)}, options).verdict, Verdict::kBreach);
}

TEST_F(CheckTest, DuplicatesDoNotHideLostIds) {
  CheckOptions options;
  options.high["order"] = 21;
  options.low["order"] = 1;
  EXPECT_EQ(Judge({Answer(1, 0, 5, 1, 10), Answer(2, 0, 5, 1, 10)}, options).total.lost, 10);
}

TEST_F(CheckTest, AnIdAtTheStoresMaximumWasNeverReserved) {
  CheckOptions options;
  options.high["order"] = 11;
  EXPECT_EQ(Judge({Answer(1, 0, 5, 1, 10)}, options).verdict, Verdict::kClean);
  const CheckReport report = Judge({Answer(1, 0, 5, 2, 10)}, options);
  EXPECT_EQ(report.verdict, Verdict::kBreach);
  EXPECT_EQ(report.total.beyond, 1);
}

TEST_F(CheckTest, NegativeIdsAreABreach) {
  EXPECT_EQ(Judge({Answer(1, 0, 5, -3, 2)}).total.beyond, 2);
  EXPECT_EQ(Judge({Answer(1, 0, 5, 0, 1)}).verdict, Verdict::kClean);
}

TEST_F(CheckTest, TooFewIdsMakeTheRunVoid) {
  EXPECT_EQ(Judge(std::vector<HistoryRecord>{}).verdict, Verdict::kVoid);
  CheckOptions options;
  options.min_ids = 11;
  EXPECT_EQ(Judge({Answer(1, 0, 5, 1, 10)}, options).verdict, Verdict::kVoid);
  EXPECT_EQ(Judge({Answer(1, 0, 5, 1, 10), Answer(2, 0, 5, 1, 1)}, options).verdict,
            Verdict::kBreach)
      << "a breach outweighs it";
}

TEST_F(CheckTest, ReadsUpToATornTail) {
  const std::string path = File({Answer(1, 0, 5, 1, 10), Answer(1, 6, 7, 11, 10)});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  const CheckReport report = Judge(std::vector<std::string>{path});
  EXPECT_EQ(report.truncated_files, 1);
  EXPECT_EQ(report.total.ids, 10);
}

TEST_F(CheckTest, RefusesWhatIsNoHistory) {
  const std::string path = folder_ + "/other";
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("something else altogether", file);
  std::fclose(file);
  EXPECT_NE(Checker({}).Add(path), "");
  EXPECT_NE(Checker({}).Add(folder_ + "/absent"), "");
}

TEST_F(CheckTest, RefusesARangeThatPassesTheEndOfTheIdSpace) {
  const std::string path = File({Answer(1, 0, 5, std::numeric_limits<std::int64_t>::max() - 1, 2)});
  EXPECT_NE(Checker({}).Add(path), "");
}

TEST_F(CheckTest, JsonEscapesNames) {
  CheckOptions options;
  options.high["a\"\n"] = 0;
  EXPECT_NE(Judge({Answer(1, 0, 5, 1, 1)}, options).Json().find("\"a\\\"\\u000a\":"),
            std::string::npos);
}

}  // namespace
}  // namespace leaf::tools
