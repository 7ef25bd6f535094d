#include "base/pid_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace leaf {
namespace {

std::string Reason(int error) { return std::generic_category().message(error); }

std::string Holder(int fd) {
  std::array<char, 24> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  pid.erase(pid.find_last_not_of("\n ") + 1);
  return pid.empty() ? "another process" : "process " + pid;
}

// A lock on a file that was unlinked meanwhile would exclude nobody.
bool StillThere(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

Result<void> PidLock::Acquire(const std::string& path, const std::string& what) {
  if (held() && StillThere(fd_, path)) return {};
  Release();
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return Error{Code::kUnavailable, "cannot make the lock file " + path + ": " + Reason(errno)};
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    const int error = errno;
    const std::string holder = Holder(fd);
    close(fd);
    if (error != EAGAIN && error != EACCES) {
      return Error{Code::kUnavailable, "cannot lock " + path + ": " + Reason(error)};
    }
    return Error{Code::kConflict, what + " is in use by " + holder + " (lock file " + path +
                                      "); stop that process, or give this one a place of its own"};
  }
  if (!StillThere(fd, path)) {
    close(fd);
    return Error{Code::kUnavailable,
                 "the lock file " + path + " was replaced while it was taken; try again"};
  }
  fd_ = fd;
  // The pid only serves people: a full disk must not keep the lock from its owner.
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd_, 0) == 0 && pwrite(fd_, pid.data(), pid.size(), 0) < 0) errno = 0;
  return {};
}

Result<std::string> PidLock::HolderOf(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return std::string();
  if (fd < 0)
    return Error{Code::kUnavailable, "cannot read the lock file " + path + ": " + Reason(errno)};
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool asked = fcntl(fd, F_OFD_GETLK, &lock) == 0;
  const int error = errno;
  const std::string holder = Holder(fd);
  close(fd);
  if (!asked)
    return Error{Code::kUnavailable, "cannot examine the lock " + path + ": " + Reason(error)};
  return lock.l_type == F_UNLCK ? std::string() : holder;
}

void PidLock::Release() noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace leaf
