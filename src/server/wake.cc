#include "server/wake.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"

namespace leaf {

Wake::Wake() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { LEAF_ASSERT(fd_ >= 0); }
Wake::~Wake() { close(fd_); }

void Wake::Signal() noexcept {
  const std::uint64_t one = 1;
  // A full counter means that it is signalled already.
  [[maybe_unused]] const ssize_t n = write(fd_, &one, sizeof one);
}

void Wake::Clear() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(fd_, &count, sizeof count);
}

}  // namespace leaf
