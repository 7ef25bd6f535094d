// libmariadb has two ways to be bounded, and neither is enough alone. Its _start/_cont calls hand
// out the waits for reading and writing, but perform the TLS handshake on a blocking socket. Its
// hook for waiting sees every wait of a socket that does not block, but the socket is made blocking
// again after connect. So: the hook, plus a receive timeout of a millisecond that is set while
// connecting, so that the first read that finds nothing comes back and reaches the hook, which
// makes the socket non-blocking for good. The descriptor belongs to libmariadb and may be closed
// and reused at any time; another thread therefore never touches it, it writes to our own eventfd,
// which each poll watches.

#include "store/mysql/mysql_waiter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "base/assert.h"

namespace leaf {
namespace {

thread_local MysqlWaiter* current = nullptr;

constexpr Duration kPeekAgain = std::chrono::milliseconds(2);

int Milliseconds(Duration left) {
  using std::chrono::ceil, std::chrono::milliseconds;
  return static_cast<int>(std::clamp<std::int64_t>(ceil<milliseconds>(left).count(), 0, 3'600'000));
}

void MakeNonBlocking(int fd) noexcept {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

// The greeting: a protocol, a version with its end, a thread id, 8 bytes of scramble, a filler,
// then the lower half of the capabilities. What cannot be read offers nothing.
bool OffersTls(std::span<const unsigned char> greeting) noexcept {
  constexpr unsigned kClientSsl = 0x0800;
  const auto version = greeting.subspan(std::min<std::size_t>(1, greeting.size()));
  const auto end = std::find(version.begin(), version.end(), static_cast<unsigned char>(0));
  const std::size_t at = 1 + static_cast<std::size_t>(end - version.begin()) + 1 + 4 + 8 + 1;
  return at + 1 < greeting.size() && ((greeting[at] + 256U * greeting[at + 1]) & kClientSsl) != 0;
}

}  // namespace

MysqlWaiter::MysqlWaiter(Clock& clock)
    : clock_(clock), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

MysqlWaiter::~MysqlWaiter() {
  if (event_fd_ >= 0) close(event_fd_);
}

MysqlWaiter::Scope::Scope(MysqlWaiter& waiter, Instant deadline) noexcept {
  LEAF_ASSERT(current == nullptr);
  waiter.deadline_ = deadline;
  waiter.end_ = End::kNone;
  current = &waiter;
}

MysqlWaiter::Scope::~Scope() { current = nullptr; }

int MysqlWaiter::Hook(int fd, char is_read, int) noexcept {
  if (current != nullptr) return current->Wait(fd, is_read != 0);
  errno = ECANCELED;
  return -1;
}

void MysqlWaiter::ExpectConnect(OnGreeting on_greeting) noexcept {
  connecting_ = true;
  on_greeting_ = std::move(on_greeting);
}

void MysqlWaiter::Connected(int fd) noexcept {
  connecting_ = false;
  MakeNonBlocking(fd);
}

void MysqlWaiter::Interrupt() noexcept {
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then it is set already.
  [[maybe_unused]] const auto written = write(event_fd_, &one, sizeof one);
}

bool MysqlWaiter::TakeInterrupt() noexcept {
  std::uint64_t count = 0;
  return read(event_fd_, &count, sizeof count) == sizeof count;
}

int MysqlWaiter::Wait(int fd, bool is_read) noexcept {
  // Of several addresses each has its own wait to be connected, until one has something to read.
  connecting_ = connecting_ && !is_read;
  const bool connect = connecting_;
  MakeNonBlocking(fd);
  if (connect) {
    const timeval soon{.tv_sec = 0, .tv_usec = 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
  }
  const short seen = Ready(fd, is_read ? POLLIN : POLLOUT);
  if (seen == 0) return -1;
  // A failed connect is reported here: libmariadb would go on with the errno of before the wait.
  if (connect && (seen & (POLLERR | POLLHUP)) != 0) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0) {
      errno = error;
      return -1;
    }
  }
  if (connect && on_greeting_ && !Greet(fd)) return -1;
  return 1;
}

// What is ready. 0: the deadline passed or somebody interrupted; end_ and errno say which.
short MysqlWaiter::Ready(int fd, short events) noexcept {
  for (;;) {
    const Instant now = clock_.Now();
    if (now >= deadline_) {
      end_ = End::kTimeout;
      errno = ETIMEDOUT;
      return 0;
    }
    std::array<pollfd, 2> fds{{{fd, events, 0}, {event_fd_, POLLIN, 0}}};
    const int ready = poll(fds.data(), fds.size(), Milliseconds(deadline_ - now));
    if (ready < 0 && errno != EINTR) return 0;
    if (ready <= 0) continue;
    if (fds[1].revents != 0) {
      TakeInterrupt();
      end_ = End::kInterrupted;
      errno = ECANCELED;
      return 0;
    }
    if (fds[0].revents != 0) return fds[0].revents;
  }
}

// Looks at the greeting without taking it. An error packet in its place and the end of the
// connection are left to libmariadb to report. False: give up.
bool MysqlWaiter::Greet(int fd) noexcept {
  constexpr std::size_t kHeader = 4;
  constexpr unsigned char kError = 0xFF;
  std::array<unsigned char, 512> seen{};
  for (;;) {
    if (Ready(fd, POLLIN) == 0) return false;
    const ssize_t got = recv(fd, seen.data(), seen.size(), MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return true;
    const auto size = static_cast<std::size_t>(got);
    if (size > kHeader && seen[kHeader] == kError) return true;
    const std::size_t length = seen[0] + 256U * seen[1] + 65536U * seen[2];
    if (size >= kHeader && size >= std::min(kHeader + length, seen.size())) {
      if (on_greeting_(OffersTls(std::span(seen).subspan(kHeader, size - kHeader)))) return true;
      end_ = End::kNoTls;
      errno = ECONNREFUSED;
      return false;
    }
    // The rest is still to come; the part that is there keeps the socket readable.
    const Instant until = deadline_;
    deadline_ = std::min(until, clock_.Now() + kPeekAgain);
    Ready(-1, 0);
    deadline_ = until;
    if (end_ == End::kInterrupted) return false;
    end_ = End::kNone;
  }
}

}  // namespace leaf
