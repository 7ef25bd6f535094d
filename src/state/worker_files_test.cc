// The files and sockets of snowflake mode: slot file, journal of the right, order word, claims.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>

#include "state/host_claims.h"
#include "state/order_file.h"
#include "state/right_file.h"
#include "state/slot_file.h"

namespace leaf {
namespace {

namespace fs = std::filesystem;

class WorkerFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "leafd-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

RightRecord SomeRecord() {
  return {.worker = 7,
          .generation = 3,
          .owner = "0123456789abcdef0123456789abcdef",
          .limit_ms = 1'800'000'000'000,
          .short_ms = 1'799'999'400'000};
}

Result<bool> SaveNow(RightFile& file, const RightRecord& record) {
  std::promise<Result<bool>> saved;
  file.Save(record, [&saved](Result<bool> result) { saved.set_value(std::move(result)); });
  return saved.get_future().get();
}

TEST_F(WorkerFilesTest, ASlotFileGivesBackTheLastRecord) {
  SlotFile file(Path("slots"), "file");
  const auto none = file.Load();
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  for (const char* text : {"one", "two", "three"}) {
    ASSERT_TRUE(file.Save(text).ok());
    SlotFile reader(Path("slots"), "file");
    const auto found = reader.Load();
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_EQ((*found)->payload, text);
    EXPECT_TRUE((*found)->same_file);
    EXPECT_TRUE((*found)->same_boot);
  }
  struct stat info {};
  ASSERT_EQ(stat(Path("slots").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(WorkerFilesTest, ATornWriteLeavesTheRecordBefore) {
  {
    SlotFile file(Path("slots"), "file");
    ASSERT_TRUE(file.Save("one").ok());  // the second block
    ASSERT_TRUE(file.Save("two").ok());  // the first
  }
  const int fd = open(Path("slots").c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(fd, "xxxx", 4, 100), 4);
  close(fd);
  SlotFile reader(Path("slots"), "file");
  const auto found = reader.Load();
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->payload, "one");
}

TEST_F(WorkerFilesTest, ACopyKnowsThatItIsOne) {
  {
    SlotFile file(Path("slots"), "file");
    ASSERT_TRUE(file.Save("one").ok());
  }
  fs::copy_file(Path("slots"), Path("copy"));
  SlotFile copy(Path("copy"), "file");
  const auto found = copy.Load();
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_FALSE((*found)->same_file);
}

TEST_F(WorkerFilesTest, DamageAndSymlinksAreErrorsThatSayWhatToDo) {
  std::ofstream(Path("foreign")) << "hello";
  SlotFile foreign(Path("foreign"), "file");
  const auto damaged = foreign.Load();
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.error().message.find(Path("foreign")), std::string::npos);
  EXPECT_NE(damaged.error().message.find("remove it"), std::string::npos);

  fs::create_symlink(Path("elsewhere"), Path("link"));
  SlotFile link(Path("link"), "file");
  ASSERT_FALSE(link.Load().ok());
  ASSERT_FALSE(link.Save("one").ok());
  EXPECT_FALSE(fs::exists(Path("elsewhere")));
  EXPECT_FALSE(OrderFile::Open(Path("link")).ok());
}

TEST_F(WorkerFilesTest, AFileThatWasReplacedIsNotWritten) {
  SlotFile file(Path("slots"), "file");
  ASSERT_TRUE(file.Save("one").ok());
  fs::rename(Path("slots"), Path("moved"));
  EXPECT_FALSE(file.Save("two").ok());
  std::ofstream(Path("slots")) << "";
  EXPECT_FALSE(file.Save("two").ok());
}

TEST_F(WorkerFilesTest, TheJournalGivesBackItsRecord) {
  {
    RightFile file(Path("right"));
    const auto none = file.Load();
    ASSERT_TRUE(none.ok());
    EXPECT_FALSE(none->has_value());
    ASSERT_TRUE(SaveNow(file, SomeRecord()).ok());
    RightRecord spent = SomeRecord();
    spent.spent = true;
    ASSERT_TRUE(SaveNow(file, spent).ok());
    EXPECT_EQ((*file.Load())->record, spent);
    ASSERT_TRUE(SaveNow(file, SomeRecord()).ok());
  }
  RightFile file(Path("right"));
  const auto found = file.Load();
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->record, SomeRecord());
  EXPECT_TRUE((*found)->same_place);
}

TEST_F(WorkerFilesTest, ACopiedJournalProvesNothing) {
  {
    RightFile file(Path("right"));
    ASSERT_TRUE(SaveNow(file, SomeRecord()).ok());
  }
  fs::copy_file(Path("right"), Path("copy"));
  const auto found = RightFile(Path("copy")).Load();
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_FALSE((*found)->same_place);
}

TEST_F(WorkerFilesTest, ManySavesAtOnceAreAllAnsweredAndTheLastOneCounts) {
  RightFile file(Path("right"));
  std::vector<std::future<bool>> answers;
  for (int i = 0; i < 50; ++i) {
    auto saved = std::make_shared<std::promise<bool>>();
    answers.push_back(saved->get_future());
    RightRecord record = SomeRecord();
    record.short_ms += i;
    file.Save(record, [saved](const Result<bool>& result) { saved->set_value(result.ok()); });
  }
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
  EXPECT_EQ((*file.Load())->record.short_ms, SomeRecord().short_ms + 49);
}

TEST_F(WorkerFilesTest, AJournalThatCannotBeWrittenSaysSo) {
  RightFile file(Path("missing/right"));
  const auto saved = SaveNow(file, SomeRecord());
  ASSERT_FALSE(saved.ok());
  EXPECT_NE(saved.error().message.find("missing/right"), std::string::npos);
}

TEST_F(WorkerFilesTest, TheOrderWordOutlivesAKilledProcess) {
  const std::string path = Path("order");
  ASSERT_FALSE((*OrderFile::Open(path))->Last().has_value());
  const pid_t child = fork();
  if (child == 0) {
    auto file = OrderFile::Open(path);
    if (!file.ok()) _exit(1);
    (*file)->word().store(1'800'000'000'123);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto file = OrderFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->Last(), 1'800'000'000'123);
}

TEST_F(WorkerFilesTest, AForeignOrderFileIsRefused) {
  std::ofstream(Path("order")) << std::string(64, 'x');
  const auto file = OrderFile::Open(Path("order"));
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("remove it"), std::string::npos);
}

TEST_F(WorkerFilesTest, OneProcessOfAHostHoldsAWorker) {
  const std::string cluster = "test" + std::to_string(getpid());
  SocketClaims first(cluster), second(cluster), other(cluster + "x");
  EXPECT_TRUE(first.Take(3));
  EXPECT_TRUE(first.Take(3));
  EXPECT_FALSE(second.Take(3));
  EXPECT_TRUE(second.Take(4));
  EXPECT_TRUE(other.Take(3));
  first.Release(3);
  EXPECT_TRUE(second.Take(3));
}

TEST_F(WorkerFilesTest, LongNamesOfClustersThatDifferAtTheirEndAreTwo) {
  const std::string cluster = "test" + std::to_string(getpid()) + std::string(120, 'a');
  SocketClaims first(cluster + "1"), second(cluster + "2"), third(cluster + "1");
  EXPECT_TRUE(first.Take(0));
  EXPECT_TRUE(second.Take(0));
  EXPECT_FALSE(third.Take(0));
}

}  // namespace
}  // namespace leaf
