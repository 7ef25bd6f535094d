#include "state/mark_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "state/mark_record.h"

namespace leaf {

bool operator==(const Mark& a, const Mark& b) {
  return a.end == b.end && a.seen == b.seen && a.regressed == b.regressed && a.store == b.store &&
         a.generation == b.generation;
}

namespace {

using testing::HasSubstr;
using Marks = std::map<std::string, Mark>;

class MarkFileTest : public testing::Test {
 protected:
  MarkFileTest() {
    std::string folder = testing::TempDir() + "leaf-marks-XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/marks";
  }
  ~MarkFileTest() override { std::filesystem::remove_all(folder_); }

  static Marks Load(MarkFile& file) {
    const auto entries = file.Load();
    EXPECT_TRUE(entries.ok()) << entries.error().message;
    Marks marks;
    if (entries.ok()) {
      for (const auto& entry : *entries) EXPECT_TRUE(marks.emplace(entry.tag, entry.mark).second);
    }
    return marks;
  }
  Marks Reload() const {
    MarkFile file(path_);
    return Load(file);
  }
  std::string LoadError() const {
    MarkFile file(path_);
    const auto entries = file.Load();
    EXPECT_FALSE(entries.ok());
    return entries.ok() ? "" : entries.error().message;
  }
  std::string Bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void SetBytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  void WriteThree() const {
    MarkFile file(path_);
    Load(file);
    for (const char* tag : {"a", "bb", "ccc"}) {
      file.Record(tag, {100, 200, false});
      ASSERT_TRUE(file.Sync().ok());
    }
  }

  std::string folder_, path_;
};

// Writing beyond `bytes` of a file fails while this lives.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(MarkFileTest, BeginsEmptyAndRemembers) {
  MarkFile file(path_);
  EXPECT_TRUE(Load(file).empty());
  EXPECT_FALSE(file.existed());
  file.Record("order", {2001, 5000, false});
  file.Record("pay", {7, 9, true});
  file.Record("order", {3001, 5000, false});
  ASSERT_TRUE(file.Sync().ok());
  MarkFile again(path_);
  EXPECT_EQ(Load(again), (Marks{{"order", {3001, 5000, false}}, {"pay", {7, 9, true}}}));
  EXPECT_TRUE(again.existed());
}

TEST_F(MarkFileTest, RemembersWhichStoreALeaseCameFrom) {
  {
    MarkFile file(path_);
    Load(file);
    file.Record("a", {10, 20, false, 0xfedcba, 0xfedcba98});
    file.Record("b", {10, 20, true, 2, 0});
    file.Record("c", {10, 20, false});
    ASSERT_TRUE(file.Sync().ok());
  }
  EXPECT_EQ(Reload(), (Marks{{"a", {10, 20, false, 0xfedcba, 0xfedcba98}},
                             {"b", {10, 20, true, 2, 0}},
                             {"c", {10, 20, false}}}));
}

// As version 2 wrote them: order, leased from the store 7 after it had taken over, and pay, before.
TEST_F(MarkFileTest, ReadsTheStoresOfAFileOfVersion2) {
  using namespace std::string_literals;
  SetBytes(
      "leafd marks 2\n\n\n"
      "\x5b\xc5\xfb\xf2\x05\0\0\0\x0a\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0\x06\x07\0\0\0order"
      "\x0f\x3b\xb5\x9b\x03\0\0\0\x0a\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0\x02\x06\0\0\0pay"s);
  EXPECT_EQ(Reload(), (Marks{{"order", {10, 20, false, 2, 7}}, {"pay", {10, 20, false, 1, 6}}}));
}

// The same records without a store, under another header.
TEST_F(MarkFileTest, ReadsAndContinuesAFileOfVersion1) {
  {
    MarkFile file(path_);
    Load(file);
    file.Record("a", {10, 20, false});
    ASSERT_TRUE(file.Sync().ok());
  }
  std::string bytes = Bytes();
  bytes[12] = '1';
  SetBytes(bytes);
  {
    MarkFile file(path_);
    EXPECT_EQ(Load(file), (Marks{{"a", {10, 20, false}}}));
    file.Record("b", {10, 20, false, 3, 7});
    ASSERT_TRUE(file.Sync().ok());
  }
  EXPECT_EQ(Reload(), (Marks{{"a", {10, 20, false}}, {"b", {10, 20, false, 3, 7}}}));
}

TEST_F(MarkFileTest, ExistsFromTheFirstStartOn) {
  Reload();
  MarkFile file(path_);
  EXPECT_TRUE(Load(file).empty());
  EXPECT_TRUE(file.existed()) << "a server that had no marks is not one that lost them";
}

TEST_F(MarkFileTest, KeepsExtremeValuesAndAnyName) {
  const std::string odd("a\0b\xff\n", 5);
  {
    MarkFile file(path_);
    Load(file);
    file.Record(odd, {std::numeric_limits<std::int64_t>::max(),
                      std::numeric_limits<std::int64_t>::min(), true});
    file.Record(std::string(512, 'x'), {1, -1, false});
    ASSERT_TRUE(file.Sync().ok());
  }
  const Marks marks = Reload();
  EXPECT_EQ(marks.at(odd).end, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(marks.at(odd).seen, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(marks.at(std::string(512, 'x')).seen, -1);
}

TEST_F(MarkFileTest, IsForItsOwnerOnly) {
  WriteThree();
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(MarkFileTest, CutsOffATailTornAtAnyByte) {
  WriteThree();
  const std::string whole = Bytes();
  const std::size_t third = whole.size() - (25 + 3);
  for (std::size_t size = kMarkHeader.size(); size < whole.size(); ++size) {
    SCOPED_TRACE("torn at byte " + std::to_string(size));
    SetBytes(whole.substr(0, size));
    const std::size_t sound = size >= third ? 2 : size >= third - 27 ? 1 : 0;
    {
      MarkFile file(path_);
      ASSERT_EQ(Load(file).size(), sound);
      file.Record("new", {1, 2, false});
      ASSERT_TRUE(file.Sync().ok());
    }
    EXPECT_EQ(Reload().size(), sound + 1) << "what is written behind a cut tail is found again";
  }
}

TEST_F(MarkFileTest, TakesZerosAtTheEndForATornTail) {
  WriteThree();
  SetBytes(Bytes() + std::string(4096, '\0'));
  EXPECT_EQ(Reload().size(), 3U);
}

TEST_F(MarkFileTest, RefusesABrokenRecordInTheMiddle) {
  WriteThree();
  const std::string whole = Bytes();
  for (std::size_t at = 0; at < whole.size() - (25 + 3); ++at) {
    SCOPED_TRACE("broken at byte " + std::to_string(at));
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    SetBytes(bytes);
    const std::string error = LoadError();
    EXPECT_THAT(error, HasSubstr(path_));
    EXPECT_THAT(error, HasSubstr("damaged"));
  }
}

TEST_F(MarkFileTest, LeavesADamagedFileAsItIs) {
  WriteThree();
  std::string bytes = Bytes();
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  SetBytes(bytes);
  MarkFile file(path_);
  EXPECT_FALSE(file.Load().ok());
  file.Record("a", {1, 1, false});
  EXPECT_FALSE(file.Sync().ok());
  EXPECT_EQ(Bytes(), bytes);
}

TEST_F(MarkFileTest, RefusesASymbolicLinkAndAFolder) {
  const std::string target = folder_ + "/target";
  std::ofstream(target) << "mine";
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  EXPECT_THAT(LoadError(), HasSubstr("symbolic link"));
  unlink(path_.c_str());
  mkdir(path_.c_str(), 0700);
  LoadError();
  std::ifstream in(target);
  std::string text;
  in >> text;
  EXPECT_EQ(text, "mine");
}

TEST_F(MarkFileTest, NeverWritesThroughALinkBesideIt) {
  const std::string target = folder_ + "/target";
  std::ofstream(target) << "mine";
  ASSERT_EQ(symlink(target.c_str(), (path_ + ".tmp").c_str()), 0);
  WriteThree();
  std::ifstream in(target);
  std::string text;
  in >> text;
  EXPECT_EQ(text, "mine");
}

TEST_F(MarkFileTest, SurvivesACrashBeforeTheRename) {
  WriteThree();
  std::ofstream(path_ + ".tmp") << "half of a new jour";
  EXPECT_EQ(Reload().size(), 3U);
  WriteThree();
  EXPECT_EQ(Reload().size(), 3U);
}

TEST_F(MarkFileTest, StaysBoundedWhenTheSameTagsAreRecordedAgainAndAgain) {
  {
    MarkFile file(path_);
    Load(file);
    for (std::int64_t round = 1; round <= 400; ++round) {
      for (int tag = 0; tag < 50; ++tag)
        file.Record("tag" + std::to_string(tag), {round, round, false});
      ASSERT_TRUE(file.Flush().ok());
    }
  }
  EXPECT_LT(Bytes().size(), 80'000U) << "400 rounds of 50 records are 600,000 bytes";
  const Marks marks = Reload();
  EXPECT_EQ(marks.size(), 50U);
  for (const auto& [tag, mark] : marks) EXPECT_EQ(mark.end, 400) << tag;
}

TEST_F(MarkFileTest, HoldsAHundredThousandTags) {
  {
    MarkFile file(path_);
    Load(file);
    for (int i = 0; i < 100'000; ++i) file.Record("tag-" + std::to_string(i), {i, i, false});
    ASSERT_TRUE(file.Sync().ok());
    for (int i = 0; i < 100'000; ++i) file.Record("tag-" + std::to_string(i), {i + 1, i, false});
    ASSERT_TRUE(file.Sync().ok());
  }
  const Marks marks = Reload();
  ASSERT_EQ(marks.size(), 100'000U);
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(marks.at("tag-" + std::to_string(i)).end, i + 1);
}

TEST_F(MarkFileTest, ReportsAFullDiskAndHeals) {
  MarkFile file(path_);
  Load(file);
  file.Record("a", {1, 1, false});
  ASSERT_TRUE(file.Sync().ok());
  const std::size_t before = Bytes().size();
  for (const rlim_t room : {0U, 1U, 10U, 30U}) {
    const FullDisk full(before + room);
    file.Record("bbbb", {2, 2, false});
    file.Record("cccc", {3, 3, false});
    const Result<void> result = file.Sync();
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message, HasSubstr("free space"));
  }
  EXPECT_GE(Reload().size(), 1U) << "what was synced before is still there";
  file.Record("bbbb", {20, 20, false});
  ASSERT_TRUE(file.Sync().ok());
  EXPECT_EQ(Reload(),
            (Marks{{"a", {1, 1, false}}, {"bbbb", {20, 20, false}}, {"cccc", {3, 3, false}}}));
}

TEST_F(MarkFileTest, StartsOnAFullDiskAndMakesTheFileLater) {
  MarkFile file(path_);
  {
    const FullDisk full(0);
    EXPECT_TRUE(Load(file).empty());
    file.Record("a", {1, 1, false});
    EXPECT_FALSE(file.Sync().ok());
  }
  ASSERT_TRUE(file.Sync().ok());
  EXPECT_EQ(Reload().size(), 1U);
}

TEST_F(MarkFileTest, WritesTheWholeFileAgainWhenItWasRemoved) {
  MarkFile file(path_);
  Load(file);
  file.Record("a", {1, 1, false});
  ASSERT_TRUE(file.Sync().ok());
  unlink(path_.c_str());
  file.Record("b", {2, 2, false});
  ASSERT_TRUE(file.Sync().ok());
  EXPECT_EQ(Reload().size(), 2U);
}

TEST_F(MarkFileTest, TakesRecordsFromManyThreadsWhileItWrites) {
  constexpr int kThreads = 4;
  {
    MarkFile file(path_);
    Load(file);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::int64_t i = 1; i <= 2000; ++i) {
          file.Record("t" + std::to_string(t), {i, i, false});
          if (i % 100 != 0) continue;
          EXPECT_TRUE((t % 2 == 0 ? file.Flush() : file.Sync()).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(file.Sync().ok());
  }
  const Marks marks = Reload();
  ASSERT_EQ(marks.size(), 4U);
  for (const auto& [tag, mark] : marks) EXPECT_EQ(mark.end, 2000) << tag;
}

}  // namespace
}  // namespace leaf
