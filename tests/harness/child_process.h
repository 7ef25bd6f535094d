#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

/// What every server of the tests' own needs: a folder, a port, a process that dies with us.
namespace leaf::harness {

/// Says why on stderr and aborts the program: without its server a test has nothing to say.
[[noreturn]] void GiveUp(const std::string& why);

/// A port of 127.0.0.1 that was free a moment ago.
int FreePort();

/// "" if it cannot be read.
std::string FileContents(const std::string& path);

/// A folder for temporary files, gone with this object. Folders of the same `kind` whose program
/// was killed are removed on the way.
class TestFolder {
 public:
  explicit TestFolder(const std::string& kind);
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

/// One program run in the background, killed with the test program however that ends. Confined to
/// one thread.
class ChildProcess {
 public:
  ChildProcess() = default;
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Starts `words`; its output is appended to the file `log`. As root, `user` may name another
  /// user to run as ("" for root itself). REQUIRES: !running().
  void Launch(const std::vector<std::string>& words, const std::string& log,
              const std::string& user = "");
  bool running() const noexcept { return pid_ > 0; }
  pid_t pid() const noexcept { return pid_; }

  /// Waits until `ready` says so. False: the program ended instead, or a minute passed.
  bool Await(const std::function<bool()>& ready);
  /// Waits for its end; the exit status as waitpid has it.
  int Wait();

  void Signal(int number);
  void Stop(int number);  ///< sends the signal and waits for the end; nothing if not running
  void Kill9();           ///< likewise, at once, also while frozen
  void Freeze();          ///< SIGSTOP; returns when every thread of it stands
  void Thaw();            ///< SIGCONT

 private:
  pid_t pid_ = -1;
};

/// Runs `words` to their end; aborts the program, with the output, if they fail.
void RunOrGiveUp(const std::vector<std::string>& words, const std::string& log,
                 const std::string& user = "");

/// Starts a server that listens where `port` says: `launch` starts it, `ready` asks for a sign of
/// life. A port of 0 is drawn first, and again when another program takes it before the server
/// does. Gives up with the words of `log`.
void StartServer(ChildProcess& process, int& port, const std::string& log,
                 const std::function<void()>& launch, const std::function<bool()>& ready);

}  // namespace leaf::harness
