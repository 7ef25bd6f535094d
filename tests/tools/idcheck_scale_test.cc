// idcheck as a program on big histories: 10^8 single ids and 10^9 in 2 * 10^7 ranges with
// LEAF_LONG=1, a hundredth of them with little memory otherwise. Several clients' files, servers
// and tags, one of them as sparse as snowflake ids are; a last file has a few faults, and the
// report must count these and no other.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "history.h"

extern char** environ;

namespace leaf::tools {
namespace {

constexpr std::size_t kFiles = 4, kServers = 3, kTags = 8;
constexpr std::size_t kSparse = kTags - 1;  // the tag whose ids have gaps
constexpr std::uint32_t kClients = 60;      // in each file
constexpr std::int64_t kBegin = 1000;       // no id is below; the planted ones are
constexpr std::int64_t kEnd = std::int64_t{1} << 60;

// With --memory 8: the program itself and what it holds a connection and a tag are in it too.
#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kShortMib = 1000;  // freed memory is kept for a while
#else
constexpr std::int64_t kShortMib = 40;
#endif

bool IsLong() { return std::getenv("LEAF_LONG") != nullptr; }

struct Outcome {
  int status = -1;
  double seconds = 0;
  std::int64_t rss_mib = 0;
  std::string out;
};

Outcome RunProgram(std::vector<std::string> words, const std::string& out_path) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  Outcome outcome;
  if (posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) == 0) {
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.rss_mib = usage.ru_maxrss / 1024;
  }
  posix_spawn_file_actions_destroy(&actions);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::stringstream text;
  text << std::ifstream(out_path).rdbuf();
  outcome.out = text.str();
  return outcome;
}

/// Makes histories as a correct cluster would: each server hands out leases, rising.
class Cluster {
 public:
  Cluster(const std::string& folder, std::uint64_t seed) : chance_(seed) {
    for (std::size_t i = 0; i <= kFiles; ++i) {
      paths_.push_back(folder + "/history" + std::to_string(i));
      files_.push_back(std::make_unique<HistoryWriter>(paths_.back()));
      for (std::uint32_t tag = 0; tag < kTags; ++tag)
        files_.back()->NameTag(tag, "tag" + std::to_string(tag));
      for (std::uint16_t server = 0; server < kServers; ++server)
        files_.back()->NameServer(server, "host" + std::to_string(server) + ":1");
    }
    top_.fill(kBegin);
  }

  void Answer(std::int64_t count) {
    now_ += static_cast<std::int64_t>(chance_() % 2000);
    const std::size_t file = chance_() % kFiles;
    const auto tag = static_cast<std::uint32_t>(chance_() % kTags);
    HistoryRecord record;
    record.client = static_cast<std::uint32_t>(chance_() % kClients);
    record.server = static_cast<std::uint16_t>(record.client % kServers);
    record.seq = seq_++;
    record.tag = tag;
    record.status = 200;
    record.count = count;
    record.first = Take(record.server, tag, count);
    record.sent_ns = now_ - static_cast<std::int64_t>(chance_() % 400'000);
    record.received_ns = now_ + static_cast<std::int64_t>(chance_() % 400'000);
    ids_ += count;
    files_[file]->Write(record);
  }

  /// In a file of its own: a request that was under way all the time, so that only its ids tell.
  /// How many of these ids were not left over in an open lease.
  std::int64_t Plant(std::uint32_t tag, std::int64_t first, std::int64_t count) {
    Put(tag, first, count, 0, kEnd, clients_++);
    for (const auto& server : leases_) {
      const Lease& open = server[tag];
      count -=
          std::max<std::int64_t>(0, std::min(open.end, first + count) - std::max(open.next, first));
    }
    return count;
  }
  /// The lowest id of all, asked for at the very end.
  void PlantFall(std::uint32_t tag) { Put(tag, 1, 1, kEnd, kEnd, clients_++); }

  std::int64_t LatestSparse() const { return leases_[0][kSparse].next - 1; }
  std::int64_t top(std::uint32_t tag) const { return top_[tag]; }
  std::int64_t ids() const { return ids_; }
  const std::vector<std::string>& paths() const { return paths_; }
  bool Close() {
    bool whole = true;
    for (const auto& file : files_) whole = file->Close() && whole;
    return whole;
  }

 private:
  struct Lease {
    std::int64_t next = 0, end = 0;
  };

  std::int64_t Take(std::size_t server, std::size_t tag, std::int64_t count) {
    Lease& lease = leases_[server][tag];
    if (tag == kSparse) lease.next += static_cast<std::int64_t>(chance_() % 3);
    if (lease.end - lease.next < count) {
      const std::int64_t size = count * (100 + static_cast<std::int64_t>(chance_() % 10'000));
      lease = {top_[tag], top_[tag] + size};
      top_[tag] += size;
    }
    lease.next += count;
    return lease.next - count;
  }

  void Put(std::uint32_t tag, std::int64_t first, std::int64_t count, std::int64_t sent,
           std::int64_t received, std::uint32_t client) {
    HistoryRecord record;
    record.client = client;
    record.tag = tag;
    record.status = 200;
    record.first = first;
    record.count = count;
    record.sent_ns = sent;
    record.received_ns = received;
    ids_ += count;
    files_.back()->Write(record);
  }

  std::mt19937_64 chance_;
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<HistoryWriter>> files_;
  std::array<std::int64_t, kTags> top_{};
  std::array<std::array<Lease, kTags>, kServers> leases_{};
  std::int64_t now_ = 1'000'000'000, ids_ = 0;
  std::uint64_t seq_ = 0;
  std::uint32_t clients_ = 0;
};

class IdcheckScaleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "idcheck-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Judge(std::int64_t records, std::int64_t count) {
    const std::uint64_t seed = std::random_device{}();
    Cluster cluster(folder_, seed);
    for (std::int64_t i = 0; i < records; ++i) cluster.Answer(count);
    // The first id, some across the border, a great part of all, and one amid gaps.
    std::int64_t planted = cluster.Plant(0, kBegin, 1);
    planted += cluster.Plant(1, kBegin - 5, 10) - 5;
    planted += cluster.Plant(2, kBegin, cluster.top(2) / 2);
    planted += cluster.Plant(kSparse, cluster.LatestSparse(), 1);
    cluster.PlantFall(3);
    ASSERT_TRUE(cluster.Close());
    const Outcome outcome = RunProgram(Words(cluster), folder_ + "/report");
    std::printf("%lld ids in %lld records: %.1f s, %lld MiB, seed %llu\n",
                static_cast<long long>(cluster.ids()), static_cast<long long>(records),
                outcome.seconds, static_cast<long long>(outcome.rss_mib),
                static_cast<unsigned long long>(seed));
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    Expect(outcome, "\"ids\":" + std::to_string(cluster.ids()) + ",");
    Expect(outcome, "\"duplicates\":" + std::to_string(planted) + ",");
    Expect(outcome, "\"connection_breaches\":0,\"server_breaches\":1,");
    Expect(outcome, "\"spilled\":true");
    Expect(outcome, "tag0: issued twice: " + std::to_string(kBegin) + " in ");
    Expect(outcome, "tag1: issued twice: " + std::to_string(kBegin) + " in ");
    Expect(outcome, "tag3: order of a server: [1,2) of file " + cluster.paths().back());
    EXPECT_EQ(outcome.out.find("tag4: "), std::string::npos) << outcome.out;
    Expect(outcome, "tag7: issued twice: ");
    EXPECT_LE(outcome.rss_mib, IsLong() ? 2000 : kShortMib);
    if (IsLong()) {
      EXPECT_LE(outcome.seconds, 300);
    }
  }

  std::vector<std::string> Words(const Cluster& cluster) const {
    const char* program = std::getenv("IDCHECK_BIN");
    std::vector<std::string> words = {program == nullptr ? "idcheck" : program, "--json"};
    if (!IsLong()) words.insert(words.end(), {"--memory", "8"});
    words.insert(words.end(), {"--temp", folder_});
    words.insert(words.end(), cluster.paths().begin(), cluster.paths().end());
    return words;
  }

  static void Expect(const Outcome& outcome, const std::string& part) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in " << outcome.out;
  }

  std::string folder_;
};

TEST_F(IdcheckScaleTest, SingleIds) { Judge(IsLong() ? 100'000'000 : 1'000'000, 1); }

TEST_F(IdcheckScaleTest, Ranges) { Judge(IsLong() ? 20'000'000 : 200'000, 50); }

}  // namespace
}  // namespace leaf::tools
