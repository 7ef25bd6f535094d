#include "frontend/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace leaf {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(100);
constexpr Duration kWarnEvery = std::chrono::seconds(1);
constexpr int kDrainBurst = 8192;  // more than any backlog
// Beyond it a refusal may be overtaken by a reset. They hold files that max_connections does not
// count, and must leave the store and the admin listener some of those that it spares.
constexpr std::size_t kLingeringRefusals = 8;

Fd OpenSpare() noexcept { return Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Acceptor::Acceptor(Limits limits, std::vector<Reactor*> reactors)
    : limits_(limits), reactors_(std::move(reactors)), spare_(OpenSpare()) {}

Acceptor::~Acceptor() {
  for (const auto& listener : listeners_) {
    if (!listener->socket.unix_path.empty()) unlink(listener->socket.unix_path.c_str());
  }
}

Result<void> Acceptor::Listen(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    LEAF_ASSIGN_OR_RETURN(std::vector<ListenSocket> sockets, ListenOn(address));
    for (ListenSocket& socket : sockets) {
      addresses_.push_back(socket.address);
      listeners_.push_back(std::make_unique<Listener>(*this, std::move(socket)));
    }
  }
  listening_.store(!listeners_.empty(), std::memory_order_release);
  return {};
}

void Acceptor::Start() {
  resume_ = kNever;
  for (const auto& listener : listeners_) {
    const int error = own().Watch(listener->socket.fd.get(), EPOLLIN, *listener);
    if (error != 0)
      log::Error("cannot watch a listening socket",
                 {{"error", std::system_category().message(error)}});
  }
}

Instant Acceptor::Turn() {
  if (drain_.load(std::memory_order_acquire) && listening()) Close();
  if (own().state().now >= resume_) Start();
  return resume_;
}

void Acceptor::Close() {
  for (const auto& listener : listeners_) {
    AcceptFrom(*listener, kDrainBurst);
    if (!listener->socket.unix_path.empty()) unlink(listener->socket.unix_path.c_str());
  }
  listeners_.clear();
  resume_ = kNever;
  listening_.store(false, std::memory_order_release);
}

void Acceptor::AcceptFrom(Listener& listener, int most) {
  for (int i = 0; i < most; ++i) {
    Fd fd;
    Peer peer;
    const int error = Accept(listener.socket.fd.get(), fd, peer);
    switch (error) {
      case 0:
        Place(std::move(fd), peer);
        break;
      case EAGAIN:
        return;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        OutOfFiles(listener, error);
        return;
      default:
        break;  // of that one connection, which has gone already
    }
  }
}

void Acceptor::Place(Fd fd, const Peer& peer) {
  int total = 0;
  Reactor& reactor = LeastLoaded(total);
  if (total >= limits_.max_connections) {
    Refuse(std::move(fd), peer, "server.max_connections is reached");
  } else if (!CountIp(peer)) {
    Refuse(std::move(fd), peer, "server.max_connections_per_ip is reached");
  } else {
    reactor.load().fetch_add(1, std::memory_order_relaxed);
    auto connection = std::make_unique<Connection>(reactor, std::move(fd), peer);
    reactor.Post(*connection.release());
  }
}

void Acceptor::Refuse(Fd fd, const Peer& peer, std::string_view reason) {
  own().state().stats.Refused();
  std::string bytes = own().lanes().Refusal(reason);
  if (own().lingering_refusals() >= kLingeringRefusals) {
    (void)send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return;
  }
  auto connection = std::make_unique<Connection>(own(), std::move(fd), peer);
  connection->SetRefusal(std::move(bytes));
  own().Adopt(*connection.release());
}

// The spare file lets one connection in, to be closed at once: otherwise it would stay in the
// backlog and the loop would turn without end.
void Acceptor::OutOfFiles(Listener& listener, int error) {
  own().state().stats.Refused();
  spare_.Reset();
  Fd refused;
  Peer peer;
  (void)Accept(listener.socket.fd.get(), refused, peer);
  refused.Reset();
  spare_ = OpenSpare();
  Pause();
  const Instant now = own().state().now;
  if (now < next_warning_) return;
  next_warning_ = now + kWarnEvery;
  log::Warn("cannot accept connections", {{"error", std::system_category().message(error)}});
}

void Acceptor::Pause() {
  for (const auto& listener : listeners_) own().Unwatch(listener->socket.fd.get());
  resume_ = own().state().now + kPause;
}

Reactor& Acceptor::LeastLoaded(int& total) const {
  Reactor* least = nullptr;
  int fewest = std::numeric_limits<int>::max();
  for (Reactor* reactor : reactors_) {
    const int load = reactor->load().load(std::memory_order_relaxed);
    total += load;
    if (load < fewest) {
      fewest = load;
      least = reactor;
    }
  }
  return *least;
}

bool Acceptor::CountIp(const Peer& peer) {
  if (limits_.max_connections_per_ip <= 0 || !peer.has_ip) return true;
  const MutexLock lock(mu_);
  int& count = by_ip_[peer.ip];
  if (count >= limits_.max_connections_per_ip) return false;
  ++count;
  return true;
}

void Acceptor::Closed(const Peer& peer) {
  if (limits_.max_connections_per_ip <= 0 || !peer.has_ip) return;
  const MutexLock lock(mu_);
  const auto found = by_ip_.find(peer.ip);
  if (found != by_ip_.end() && --found->second <= 0) by_ip_.erase(found);
}

}  // namespace leaf
