// Faults F04, F26 and F30 on a real process: sqlite_probe is killed, locked out and traced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/sqlite/sqlite_driver.h"

namespace leaf {
namespace {

using testing::HasSubstr;

// A child whose standard output is read line by line.
class Child {
 public:
  explicit Child(std::vector<std::string> command) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // leak detection cannot run under a tracer
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~Child() {
    Kill();
    fclose(out_);
  }
  bool Line(std::string& line) {
    char text[1024];
    if (fgets(text, sizeof text, out_) == nullptr) return false;
    line = text;
    if (line.back() == '\n') line.pop_back();
    return true;
  }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  FILE* out_ = nullptr;
};

class SqliteCrashTest : public testing::Test {
 protected:
  SqliteCrashTest() {
    std::string folder = testing::TempDir() + "leaf-crash-XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/leafd.db";
  }
  ~SqliteCrashTest() override { std::filesystem::remove_all(folder_); }

  // Checks that `line`, if it is a grant, lies above all before.
  void Follow(const std::string& line) {
    if (!line.starts_with("granted ")) return;
    std::istringstream in(line.substr(8));
    std::int64_t first = 0;
    std::int64_t last = 0;
    in >> first >> last;
    EXPECT_GE(first, end_) << line;
    EXPECT_EQ(last - first, 10) << line;
    end_ = last;
    ++granted_;
  }
  std::vector<std::string> Run(std::vector<std::string> command) {
    Child child(std::move(command));
    std::vector<std::string> lines;
    for (std::string line; child.Line(line);) {
      Follow(line);
      lines.push_back(line);
    }
    EXPECT_EQ(child.Wait(), 0);
    return lines;
  }
  static std::ptrdiff_t Count(const std::vector<std::string>& lines, std::string_view begin) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.starts_with(begin); });
  }

  std::string folder_, path_;
  std::int64_t end_ = 1;
  int granted_ = 0;
};

TEST_F(SqliteCrashTest, AKillAtAnyInstantCostsNoAcknowledgedReservation) {
  const std::uint64_t seed = SystemRandom().Next();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (std::uint64_t round = 0; round < 25; ++round) {
    Child child({LEAF_SQLITE_PROBE, path_, "0"});
    const std::uint64_t lines = 1 + (seed >> (round % 50)) % 30;
    std::string line;
    for (std::uint64_t i = 0; i < lines && child.Line(line); ++i) Follow(line);
    child.Kill();
    while (child.Line(line)) Follow(line);  // said before it died
  }
  EXPECT_GT(granted_, 25);
}

TEST_F(SqliteCrashTest, AnotherProcessIsRefusedByThePidOfTheFirst) {
  Child first({LEAF_SQLITE_PROBE, path_, "0"});
  std::string line;
  ASSERT_TRUE(first.Line(line));
  EXPECT_EQ(line, "open");
  const auto lines = Run({LEAF_SQLITE_PROBE, path_, "1"});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("in use by process"));
  first.Kill();
  EXPECT_THAT(Run({LEAF_SQLITE_PROBE, path_, "1"}), testing::Contains("open"));
}

TEST_F(SqliteCrashTest, AFailingSyncAtAnyPlaceGrantsNothingTwice) {
  constexpr int kRounds = 6;
  Run({LEAF_SQLITE_PROBE, path_, "1"});
  int unknown = 0;
  // Beyond the last sync of a run nothing fails any more.
  for (int nth = 1; nth <= 40; ++nth) {
    SCOPED_TRACE("sync number " + std::to_string(nth));
    const auto lines = Run({"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync",
                            "-e", "inject=fdatasync,fsync:error=EIO:when=" + std::to_string(nth),
                            LEAF_SQLITE_PROBE, path_, std::to_string(kRounds)});
    const auto bad = Count(lines, "unknown") + Count(lines, "closed") + Count(lines, "refused");
    unknown += static_cast<int>(Count(lines, "unknown"));
    EXPECT_LE(bad, 2) << testing::PrintToString(lines);
    EXPECT_GE(Count(lines, "granted"), kRounds - 2) << testing::PrintToString(lines);
    if (bad == 0 && nth > kRounds) break;
  }
  EXPECT_GE(unknown, kRounds - 1) << "commits whose sync failed must not count";
}

}  // namespace
}  // namespace leaf
