#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace leaf::log {
namespace {

/// Standard error goes into a pipe while it lives.
class CapturedStderr {
 public:
  CapturedStderr() {
    int fds[2];
    if (pipe(fds) != 0) abort();
    read_ = fds[0];
    saved_ = dup(STDERR_FILENO);
    dup2(fds[1], STDERR_FILENO);
    close(fds[1]);
  }
  ~CapturedStderr() {
    Restore();
    close(read_);
  }
  /// Waits a second at most for more; false: none came.
  bool Read(std::string& text) {
    pollfd more{read_, POLLIN, 0};
    if (poll(&more, 1, 1000) <= 0) return false;
    char buffer[4096];
    const ssize_t n = read(read_, buffer, sizeof buffer);
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }
  std::string Take() {
    Restore();
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(read_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }

 private:
  void Restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    saved_ = -1;
  }
  int read_ = -1, saved_ = -1;
};

TEST(LogTest, WritesOneLineAnEventWithItsFields) {
  CapturedStderr captured;
  Start(Level::kInfo, Format::kText);
  Info("store is up", {{"kind", "sqlite"}, {"after_ms", 12}, {"reason", "a b"}});
  Stop();
  const std::string text = captured.Take();
  EXPECT_NE(text.find(" info store is up kind=sqlite after_ms=12 reason=\"a b\"\n"),
            std::string::npos)
      << text;
}

TEST(LogTest, EscapesWhatCouldForgeALine) {
  CapturedStderr captured;
  Start(Level::kInfo, Format::kText);
  Warn("odd \"tag\"\n", {{"tag", "a\r\n2026 error \"x\""}});
  Stop();
  const std::string text = captured.Take();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_NE(text.find(R"(odd "tag"\u000a tag="a\u000d\u000a2026 error \"x\"")"), std::string::npos)
      << text;
}

TEST(LogTest, WritesJsonWhenAsked) {
  CapturedStderr captured;
  Start(Level::kInfo, Format::kJson);
  Error("it \"broke\"", {{"tag", "t"}});
  Stop();
  const std::string text = captured.Take();
  EXPECT_NE(text.find(R"("level":"error","message":"it \"broke\"","tag":"t"})"), std::string::npos)
      << text;
}

TEST(LogTest, IsUtf8AndSteersNoTerminalWhateverATagHolds) {
  CapturedStderr captured;
  Start(Level::kInfo, Format::kJson);
  Warn("tag \xFF\"A\"", {{"tag", "\xC3\xA4\xC2\x9B\xED\xA0\x80\x1B[2J"}});
  Stop();
  const std::string text = captured.Take();
  EXPECT_NE(text.find("\"message\":\"tag \xEF\xBF\xBD\\\"A\\\"\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"tag\":\"\xC3\xA4\\u009b\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\\u001b[2J\""),
            std::string::npos)
      << text;
}

TEST(LogTest, LeavesOutWhatIsBelowTheLevel) {
  CapturedStderr captured;
  Start(Level::kWarn, Format::kText);
  Info("quiet");
  Warn("loud");
  Stop();
  const std::string text = captured.Take();
  EXPECT_EQ(text.find("quiet"), std::string::npos);
  EXPECT_NE(text.find("loud"), std::string::npos);
}

TEST(LogTest, LosesNothingOnANonBlockingFile) {
  constexpr int kLines = 1000;  // more than a pipe holds, less than the queue
  CapturedStderr captured;
  fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
  Start(Level::kInfo, Format::kText);
  for (int i = 0; i < kLines; ++i) Info(std::string(200, 'x'));
  std::thread stop([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the pipe is full by now
    Stop();
  });
  std::string text;
  while (std::count(text.begin(), text.end(), '\n') < kLines && captured.Read(text)) {
  }
  stop.join();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kLines);
}

// Ends the process.
void LogToAReaderThatStops() {
  int fds[2];
  if (pipe(fds) != 0) _exit(2);
  dup2(fds[1], STDERR_FILENO);  // nobody reads: the pipe holds 64 KiB
  Start(Level::kInfo, Format::kText);
  const std::string line(200, 'x');
  for (int i = 0; i < 20000; ++i) Info(line);
  const bool counted = Dropped() > 10000;
  Stop();
  _exit(counted ? 0 : 1);
}

// In a process of its own: its writer stays stuck for ever, as it would in leafd.
TEST(LogTest, AReaderThatStopsDelaysNobodyAndTheLossIsCounted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EXIT(LogToAReaderThatStops(), testing::ExitedWithCode(0), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace leaf::log
