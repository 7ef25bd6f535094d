#include "external_sort.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace leaf::tools {

SpillFile::~SpillFile() {
  if (fd_ >= 0) close(fd_);
}

void SpillFile::Fail(const char* what, int number) {
  if (error_.empty()) {
    error_ = std::string("cannot ") + what + " a temporary file in " + folder_ + ": " +
             std::strerror(number) + "; --temp names another folder, --memory needs less of it";
  }
}

bool SpillFile::Open() {
  if (fd_ >= 0) return true;
  std::string path = folder_ + "/idcheck-XXXXXX";
  fd_ = mkostemp(path.data(), O_CLOEXEC);
  if (fd_ < 0) {
    Fail("create", errno);
    return false;
  }
  unlink(path.c_str());
  return true;
}

std::uint64_t SpillFile::Append(const void* bytes, std::size_t size) {
  const std::uint64_t begin = size_;
  const char* at = static_cast<const char*>(bytes);
  while (size > 0 && error_.empty() && Open()) {
    const ssize_t wrote = pwrite(fd_, at, size, static_cast<off_t>(size_));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      Fail("write", wrote < 0 ? errno : ENOSPC);
      break;
    }
    at += wrote;
    size -= static_cast<std::size_t>(wrote);
    size_ += static_cast<std::uint64_t>(wrote);
  }
  return begin;
}

void SpillFile::Read(std::uint64_t at, void* bytes, std::size_t size) {
  char* to = static_cast<char*>(bytes);
  while (size > 0 && error_.empty()) {
    const ssize_t got = pread(fd_, to, size, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      Fail("read", got < 0 ? errno : EIO);
      return;
    }
    to += got;
    size -= static_cast<std::size_t>(got);
    at += static_cast<std::uint64_t>(got);
  }
}

}  // namespace leaf::tools
