// TLS works on memory: OpenSSL never sees the socket, so that every wait is our poll, a write to a
// closed connection raises no signal, and the descriptor stays ours. Another thread never touches
// the descriptor; it writes to our own eventfd, which each poll watches.

#include "rpc/byte_stream.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace leaf::rpc {
namespace {

constexpr std::size_t kPiece = 16384;

Error Unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }

Error FromErrno(const char* what, int number) {
  std::array<char, 128> text{};
  return Unavailable(std::string(what) + ": " + strerror_r(number, text.data(), text.size()));
}

int Milliseconds(Duration left) {
  using std::chrono::ceil, std::chrono::milliseconds;
  return static_cast<int>(std::clamp<std::int64_t>(ceil<milliseconds>(left).count(), 0, 3'600'000));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> LookUp(const HostPort& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_protocol = IPPROTO_TCP;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed != 0) return Unavailable("host '" + endpoint.host + "': " + gai_strerror(failed));
  return Addresses(found);
}

}  // namespace

void ByteStream::FreeSsl::operator()(ssl_st* ssl) const noexcept { SSL_free(ssl); }

ByteStream::ByteStream(Clock& clock)
    : clock_(clock), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  LEAF_ASSERT(event_fd_ >= 0);
}

ByteStream::~ByteStream() {
  Cut();
  close(event_fd_);
}

void ByteStream::Cut() noexcept {
  ssl_.reset();
  out_.clear();
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Result<void> ByteStream::Connect(const HostPort& endpoint, const TlsContext* tls,
                                 Instant deadline) {
  LEAF_ASSERT(!open());
  LEAF_ASSIGN_OR_RETURN(const Addresses addresses, LookUp(endpoint));
  std::int64_t left = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) ++left;
  Result<void> last = Unavailable("host '" + endpoint.host + "' has no address");
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next, --left) {
    const Instant now = clock_.Now();
    const Instant until = now + (deadline - now) / left;
    last = ConnectTo(*at, until);
    if (last.ok() && tls != nullptr) last = Handshake(endpoint.host, *tls, until);
    if (last.ok()) return last;
    Cut();
  }
  return last;
}

Result<void> ByteStream::ConnectTo(const addrinfo& address, Instant deadline) {
  fd_ = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (fd_ < 0) return FromErrno("no socket", errno);
  const int on = 1;  // a request is small and complete when it is sent
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd_, address.ai_addr, address.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return FromErrno("connect", errno);
  for (;;) {
    const Instant now = clock_.Now();
    if (now >= deadline) return Unavailable("connect: no answer in time");
    std::array<pollfd, 2> fds{{{fd_, POLLOUT, 0}, {event_fd_, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), Milliseconds(deadline - now)) <= 0) continue;
    if (TakeInterrupt()) return Unavailable("connect: interrupted");
    if (fds[0].revents == 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? Result<void>() : FromErrno("connect", error);
  }
}

Result<void> ByteStream::Handshake(const std::string& host, const TlsContext& tls,
                                   Instant deadline) {
  ssl_.reset(tls.NewClient(host));
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  if (ssl_ == nullptr || in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    return Unavailable("TLS: cannot begin with host '" + host + "'");
  }
  SSL_set_bio(ssl_.get(), in, out);
  for (;;) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const std::string failure = done == 1 || SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ
                                    ? ""
                                    : TlsFailure(ssl_.get());
    TakeEncrypted();  // an alert goes out, too
    LEAF_RETURN_IF_ERROR(Flush());
    if (!failure.empty()) return Unavailable(failure);
    if (done == 1 && flushed()) break;
    LEAF_ASSIGN_OR_RETURN(const bool got, Decrypt());
    if (got || done == 1) continue;
    const Wake wake = Wait(deadline);
    if (wake == Wake::kDeadline) return Unavailable("TLS: the handshake did not end in time");
    if (wake == Wake::kInterrupted) return Unavailable("TLS: interrupted");
  }
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &protocol, &size);
  if (std::string_view(reinterpret_cast<const char*>(protocol), size) != "h2")
    return Unavailable("TLS: the server does not speak HTTP/2 (ALPN h2), so it speaks no gRPC");
  return {};
}

// Moves what OpenSSL has made for the network.
void ByteStream::TakeEncrypted() {
  BIO* const from = SSL_get_wbio(ssl_.get());
  std::array<char, kPiece> piece;
  for (;;) {
    const int got = BIO_read(from, piece.data(), static_cast<int>(piece.size()));
    if (got <= 0) return;
    out_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

void ByteStream::Queue(std::string_view bytes) {
  if (ssl_ == nullptr) {
    out_ += bytes;
    return;
  }
  // Into memory, which takes everything.
  while (!bytes.empty()) {
    const int size = static_cast<int>(std::min(bytes.size(), kPiece));
    ERR_clear_error();
    const int written = SSL_write(ssl_.get(), bytes.data(), size);
    if (written <= 0) return;  // the session is broken; reading says why
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  TakeEncrypted();
}

Result<void> ByteStream::Flush() {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t n = send(fd_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      return FromErrno("send", errno);
    }
  }
  out_.erase(0, sent);
  return {};
}

Result<std::size_t> ByteStream::Receive(std::span<char> to) {
  for (;;) {
    const ssize_t n = recv(fd_, to.data(), to.size(), 0);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0) return Unavailable("the server closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno != EINTR) return FromErrno("receive", errno);
  }
}

// Gives OpenSSL what has come. False: nothing.
Result<bool> ByteStream::Decrypt() {
  std::array<char, kPiece> piece;
  LEAF_ASSIGN_OR_RETURN(const std::size_t got, Receive(piece));
  if (got == 0) return false;
  BIO_write(SSL_get_rbio(ssl_.get()), piece.data(), static_cast<int>(got));
  return true;
}

Result<std::size_t> ByteStream::Read(std::span<char> to) {
  if (ssl_ == nullptr) return Receive(to);
  for (;;) {
    ERR_clear_error();
    const int n = SSL_read(ssl_.get(), to.data(), static_cast<int>(to.size()));
    TakeEncrypted();  // answers of TLS itself
    if (n > 0) return static_cast<std::size_t>(n);
    const int why = SSL_get_error(ssl_.get(), n);
    if (why == SSL_ERROR_ZERO_RETURN) return Unavailable("the server closed the connection");
    if (why != SSL_ERROR_WANT_READ) return Unavailable(TlsFailure(ssl_.get()));
    LEAF_ASSIGN_OR_RETURN(const bool got, Decrypt());
    if (!got) return std::size_t{0};
  }
}

ByteStream::Wake ByteStream::Wait(Instant deadline) {
  for (;;) {
    const Instant now = clock_.Now();
    if (now >= deadline) return Wake::kDeadline;
    const auto events = static_cast<short>(POLLIN | (flushed() ? 0 : POLLOUT));
    std::array<pollfd, 2> fds{{{fd_, events, 0}, {event_fd_, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), Milliseconds(deadline - now)) <= 0) continue;
    if (TakeInterrupt()) return Wake::kInterrupted;
    if (fds[0].revents != 0) return Wake::kReady;
  }
}

void ByteStream::Interrupt() noexcept {
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then it is set already.
  [[maybe_unused]] const auto written = write(event_fd_, &one, sizeof one);
}

bool ByteStream::TakeInterrupt() noexcept {
  std::uint64_t count = 0;
  return read(event_fd_, &count, sizeof count) == sizeof count;
}

}  // namespace leaf::rpc
