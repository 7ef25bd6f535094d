#include "harness/child_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

namespace leaf::harness {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(60);

// Folders of programs that were killed: whoever lives holds the lock in its own. (A process id
// would not do, several containers may share the folder for temporary files.)
void RemoveLeftovers(const std::filesystem::path& temporary, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(temporary, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const int lock = open((entry.path() / "lock").c_str(), O_RDWR | O_CLOEXEC);
    if (lock < 0) continue;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(entry.path(), ignored);
    close(lock);
  }
}

// The lock is there from the first moment that its name is.
int TakeLock(const std::string& folder) {
  const std::string early = folder + "/lock.early";
  const int lock = open(early.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) GiveUp("no lock in " + folder);
  std::filesystem::rename(early, folder + "/lock");
  return lock;
}

// In the child, after the fork: nothing here may allocate, save what ends the process.
void BecomeUser(const passwd* user) {
  if (user == nullptr) return;
  if (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
    _exit(126);
}

bool AllThreadsStand(pid_t pid) {
  std::error_code gone;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    const std::string stat = FileContents(task.path() / "stat");
    const auto end = stat.rfind(')');
    if (end != std::string::npos && stat.compare(end, 3, ") T") != 0 &&
        stat.compare(end, 3, ") Z") != 0)
      return false;
  }
  return true;
}

}  // namespace

void GiveUp(const std::string& why) {
  std::cerr << "harness: " << why << std::endl;
  std::abort();
}

int FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0) GiveUp("no free port");
  getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  close(fd);
  return ntohs(at.sin_port);
}

std::string FileContents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TestFolder::TestFolder(const std::string& kind) {
  const std::filesystem::path temporary = std::filesystem::temp_directory_path();
  const std::string prefix = "leaf-" + kind + "-";
  RemoveLeftovers(temporary, prefix);
  path_ = temporary / (prefix + "XXXXXX");
  if (mkdtemp(path_.data()) == nullptr) GiveUp("no folder for temporary files");
  lock_ = TakeLock(path_);
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  close(lock_);
}

ChildProcess::~ChildProcess() { Kill9(); }

void ChildProcess::Launch(const std::vector<std::string>& words, const std::string& log,
                          const std::string& user) {
  if (running()) GiveUp(words[0] + " runs already");
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const passwd* other = user.empty() || geteuid() != 0 ? nullptr : getpwnam(user.c_str());
  if (!user.empty() && geteuid() == 0 && other == nullptr) GiveUp("there is no user " + user);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) GiveUp("fork failed");
  if (pid_ > 0) return;
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int in = open("/dev/null", O_RDONLY);
  if (in >= 0) dup2(in, 0);
  if (out >= 0) {
    dup2(out, 1);
    dup2(out, 2);
  }
  BecomeUser(other);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of user, which clears it
  if (getppid() != parent) _exit(127);
  execvp(argv[0], argv.data());
  _exit(127);
}

bool ChildProcess::Await(const std::function<bool()>& ready) {
  const auto until = steady_clock::now() + kPatience;
  while (running() && steady_clock::now() < until) {
    if (ready()) return true;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) pid_ = -1;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

int ChildProcess::Wait() {
  int status = 0;
  while (running() && waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

void ChildProcess::Signal(int number) {
  if (running()) kill(pid_, number);
}

void ChildProcess::Stop(int number) {
  if (!running()) return;
  kill(pid_, number);
  Wait();
}

void ChildProcess::Kill9() { Stop(SIGKILL); }

void ChildProcess::Freeze() {
  Signal(SIGSTOP);
  // The signal is on its way: it stands when the kernel says so of each thread.
  while (running() && !AllThreadsStand(pid_)) std::this_thread::sleep_for(milliseconds(1));
}

void ChildProcess::Thaw() { Signal(SIGCONT); }

void RunOrGiveUp(const std::vector<std::string>& words, const std::string& log,
                 const std::string& user) {
  ChildProcess process;
  process.Launch(words, log, user);
  if (process.Wait() != 0) GiveUp(words[0] + " failed:\n" + FileContents(log));
}

void StartServer(ChildProcess& process, int& port, const std::string& log,
                 const std::function<void()>& launch, const std::function<bool()>& ready) {
  if (process.running()) return;
  const bool draw = port == 0;
  for (int i = 0; i < 5; ++i) {
    if (draw) port = FreePort();  // another program may take it before the server does
    launch();
    if (process.Await(ready)) return;
    process.Kill9();
  }
  GiveUp("the server did not start:\n" + FileContents(log));
}

}  // namespace leaf::harness
