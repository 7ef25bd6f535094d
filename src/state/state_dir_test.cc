#include "state/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace leaf {
namespace {

using testing::HasSubstr;

class StateDirTest : public testing::Test {
 protected:
  StateDirTest() {
    std::string folder = testing::TempDir() + "leaf-state-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~StateDirTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(StateDirTest, MakesTheFolderAndThoseAboveForItsOwner) {
  StateDir dir;
  const Result<void> opened = dir.Open(folder_ + "/a/b/c/");
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(dir.path(), folder_ + "/a/b/c");
  EXPECT_TRUE(dir.warning().empty());
  for (const char* made : {"/a", "/a/b", "/a/b/c"}) {
    struct stat info {};
    ASSERT_EQ(stat((folder_ + made).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
  }
}

TEST_F(StateDirTest, LetsOneServerInAndNamesIt) {
  std::optional<StateDir> first(std::in_place);
  ASSERT_TRUE(first->Open(folder_).ok());
  StateDir second;
  const Result<void> refused = second.Open(folder_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(getpid())));
  EXPECT_THAT(refused.error().message, HasSubstr(folder_));
  first.reset();
  EXPECT_TRUE(second.Open(folder_).ok());
}

TEST_F(StateDirTest, IsFreeAgainWhenItsServerWasKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    StateDir dir;
    const char byte = dir.Open(folder_).ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  StateDir dir;
  EXPECT_THAT(dir.Open(folder_).error().message, HasSubstr("process " + std::to_string(child)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(dir.Open(folder_).ok());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(StateDirTest, SaysWhatIsInTheWay) {
  std::ofstream(folder_ + "/file") << "x";
  StateDir dir;
  const Result<void> refused = dir.Open(folder_ + "/file/state");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr(folder_ + "/file"));
  EXPECT_THAT(refused.error().message, HasSubstr("server.state_dir"));
  EXPECT_EQ(dir.Open("relative/state").error().code, Code::kInvalidArgument);
}

TEST_F(StateDirTest, WarnsWhenOthersCanWriteIntoIt) {
  chmod(folder_.c_str(), 0777);
  StateDir dir;
  ASSERT_TRUE(dir.Open(folder_).ok());
  EXPECT_THAT(dir.warning(), HasSubstr("chmod 700"));
}

}  // namespace
}  // namespace leaf
