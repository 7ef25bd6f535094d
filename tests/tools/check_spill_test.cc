// The checker against a slow one that looks at each pair and each id: random histories with faults,
// with memory for all of it and with next to none, so that faults lie across the runs on disk.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "check.h"
#include "external_sort.h"
#include "history.h"
#include "id_union.h"

namespace leaf::tools {
namespace {

constexpr std::size_t kTiny = 1;  // each sorter then holds its least, 16 items

struct Expected {
  std::int64_t duplicates = 0, connection = 0, server = 0, global = 0;
};

using Files = std::vector<std::vector<HistoryRecord>>;

Expected JudgeSlowly(const Files& files) {
  Expected out;
  std::map<std::pair<std::uint32_t, std::int64_t>, int> seen;
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint32_t>, std::int64_t> reached;
  std::vector<HistoryRecord> all;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (const HistoryRecord& record : files[file]) {
      all.push_back(record);
      const std::int64_t last = record.first + record.count;
      for (std::int64_t id = record.first; id < last; ++id)
        out.duplicates += seen[{record.tag, id}]++ > 0 ? 1 : 0;
      const auto at = reached.try_emplace({file, record.client, record.tag}, -1).first;
      out.connection += record.first < at->second ? 1 : 0;
      at->second = std::max(at->second, last);
    }
  }
  for (const HistoryRecord& asked : all) {
    bool server = false, global = false;
    for (const HistoryRecord& answered : all) {
      if (answered.tag != asked.tag || answered.received_ns >= asked.sent_ns ||
          asked.first >= answered.first + answered.count)
        continue;
      global = true;
      server = server || answered.server == asked.server;
    }
    out.server += server ? 1 : 0;
    out.global += global ? 1 : 0;
  }
  return out;
}

class SpillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "idcheck-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Write(const Files& files) {
    std::vector<std::string> paths;
    for (const auto& records : files) {
      paths.push_back(folder_ + "/" + std::to_string(++files_));
      HistoryWriter writer(paths.back());
      for (std::uint32_t tag = 0; tag < 3; ++tag) writer.NameTag(tag, "t" + std::to_string(tag));
      for (std::uint16_t i = 0; i < 3; ++i) writer.NameServer(i, "s" + std::to_string(i));
      for (const HistoryRecord& record : records) writer.Write(record);
      EXPECT_TRUE(writer.Close());
    }
    return paths;
  }

  CheckReport Judge(const std::vector<std::string>& paths, std::size_t memory) {
    CheckOptions options;
    options.memory_bytes = memory;
    options.folder = folder_;
    Checker checker(options);
    for (const std::string& path : paths) EXPECT_EQ(checker.Add(path), "");
    CheckReport report = checker.Finish();
    EXPECT_EQ(report.error, "");
    return report;
  }

  static HistoryRecord Single(std::int64_t id, std::int64_t at, std::uint32_t client = 0) {
    HistoryRecord record;
    record.client = client;
    record.first = id;
    record.count = 1;
    record.sent_ns = at;
    record.received_ns = at;
    record.status = 200;
    record.seq = static_cast<std::uint64_t>(id);
    return record;
  }

  std::string folder_;
  int files_ = 0;
};

/// Rising ids with some overlaps and falls, so that every count is between none and all.
Files RandomFiles(std::mt19937_64& chance) {
  Files files(1 + chance() % 3);
  const std::size_t records = 20 + chance() % 200;
  const std::int64_t spread = 1 + static_cast<std::int64_t>(chance() % 60);
  const auto up_to = [&](std::int64_t most) {
    return static_cast<std::int64_t>(chance() % static_cast<std::uint64_t>(most));
  };
  for (std::size_t i = 0; i < records; ++i) {
    HistoryRecord record;
    record.client = static_cast<std::uint32_t>(chance() % 4);
    record.tag = static_cast<std::uint32_t>(chance() % 3);
    record.server = static_cast<std::uint16_t>(chance() % 3);
    record.seq = i;
    record.status = 200;
    record.first = static_cast<std::int64_t>(i) * 10 + up_to(spread);
    record.count = 1 + up_to(12);
    record.sent_ns = static_cast<std::int64_t>(i) * 5 + up_to(20);
    record.received_ns = record.sent_ns + up_to(30);
    files[chance() % files.size()].push_back(record);
  }
  return files;
}

TEST_F(SpillTest, JudgesAsTheSlowOneDoesWhateverTheMemory) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 chance(seed);
  int with_duplicates = 0, with_breaches = 0;
  for (int round = 0; round < 150; ++round) {
    const Files files = RandomFiles(chance);
    const Expected expected = JudgeSlowly(files);
    const std::vector<std::string> paths = Write(files);
    for (const std::size_t memory : {kTiny, std::size_t{8192}, std::size_t{1} << 26}) {
      const CheckReport report = Judge(paths, memory);
      ASSERT_EQ(report.total.duplicates, expected.duplicates) << round << " " << memory;
      ASSERT_EQ(report.total.connection_breaches, expected.connection) << round << " " << memory;
      ASSERT_EQ(report.total.server_breaches, expected.server) << round << " " << memory;
      ASSERT_EQ(report.total.global_breaches, expected.global) << round << " " << memory;
      ASSERT_TRUE(report.spilled || memory != kTiny) << round;
    }
    with_duplicates += expected.duplicates > 0 ? 1 : 0;
    with_breaches += expected.server > 0 ? 1 : 0;
  }
  EXPECT_GT(with_duplicates, 20);
  EXPECT_GT(with_breaches, 20);
}

TEST_F(SpillTest, ADuplicateIsFoundWhereverTheRunsOnDiskWereCut) {
  constexpr std::int64_t kIds = 70;  // with gaps, so that nothing melts: some runs of 16
  for (std::int64_t twice = 0; twice < kIds; ++twice) {
    Files files(2);
    for (std::int64_t i = 0; i < kIds; ++i) files[0].push_back(Single(i * 2, i));
    files[1].push_back(Single(twice * 2, twice));
    const CheckReport report = Judge(Write(files), kTiny);
    ASSERT_TRUE(report.spilled);
    ASSERT_EQ(report.total.duplicates, 1) << twice;
    ASSERT_EQ(report.findings.size(), 1U) << twice;
  }
}

TEST_F(SpillTest, NamesTheTwoAnswersThatClash) {
  Files files(2);
  for (std::int64_t i = 0; i < 100; ++i) files[0].push_back(Single(i * 2, i, 7));
  HistoryRecord range = Single(61, 500, 9);
  range.count = 2;
  range.server = 2;
  range.seq = 4711;
  files[1].push_back(range);
  const std::vector<std::string> paths = Write(files);
  const CheckReport report = Judge(paths, kTiny);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0],
            "t0: issued twice: 62 in [62,63) of file " + paths[0] +
                " client 7 sequence 62 server s0 sent 31 received 31 and in [61,63) of file " +
                paths[1] + " client 9 sequence 4711 server s2 sent 500 received 500");
}

TEST_F(SpillTest, AFallIsFoundAcrossTheRunsOnDisk) {
  for (std::int64_t fall : {1, 15, 16, 17, 60, 99}) {
    Files files(1);
    for (std::int64_t i = 0; i < 100; ++i)
      files[0].push_back(
          Single(i == fall ? i * 10 - 11 : i * 10, i, static_cast<std::uint32_t>(i)));
    if (fall == 1) files[0][1].first = 0;
    const CheckReport report = Judge(Write(files), kTiny);
    EXPECT_EQ(report.total.server_breaches, 1) << fall;
  }
}

TEST_F(SpillTest, AFolderThatCannotTakeItIsAnErrorWithAdvice) {
  Files files(1);
  for (std::int64_t i = 0; i < 100; ++i) files[0].push_back(Single(i * 2, i));
  const std::vector<std::string> paths = Write(files);
  CheckOptions options;
  options.memory_bytes = kTiny;
  options.folder = folder_ + "/absent";
  Checker checker(options);
  std::string error = checker.Add(paths[0]);
  if (error.empty()) error = checker.Finish().error;
  EXPECT_NE(error.find(options.folder), std::string::npos) << error;
  EXPECT_NE(error.find("--temp"), std::string::npos) << error;
}

TEST_F(SpillTest, DenseIdsMeltInAnyOrder) {
  std::vector<std::int64_t> ids(1000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  std::shuffle(ids.begin(), ids.end(), std::mt19937_64(42));
  IdUnion all(1 << 20, folder_, 5);
  for (const std::int64_t id : ids) all.Add({id, id + 1, 3});
  int tags = 0;
  EXPECT_TRUE(all.Finish([&](const IdUnion::Tag& tag) {
    ++tags;
    EXPECT_EQ(tag.tag, 3U);
    EXPECT_EQ(tag.first, 0);
    EXPECT_EQ(tag.last, 1000);
    EXPECT_EQ(tag.distinct, 1000);
  }));
  EXPECT_EQ(tags, 1);
  EXPECT_TRUE(all.clashes().empty());
  EXPECT_FALSE(all.spilled());
}

}  // namespace
}  // namespace leaf::tools
