#include "state/host_claims.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/fnv.h"
#include "base/log.h"

namespace leaf {
namespace {

/// Abstract names are short; a cluster's name that does not fit is told by its hash.
constexpr std::size_t kLongestCluster = 80;

std::string NameOf(const std::string& cluster, std::int64_t worker) {
  std::string name = cluster;
  if (cluster.size() > kLongestCluster) {
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(Fnv1a(cluster)));
    name = cluster.substr(0, kLongestCluster - 17) + "~" + text;
  }
  return "leafd-" + name + "-" + std::to_string(worker);
}

}  // namespace

SocketClaims::SocketClaims(std::string cluster) : cluster_(std::move(cluster)) {}

SocketClaims::~SocketClaims() {
  for (const auto& [worker, fd] : sockets_) close(fd);
}

bool SocketClaims::Take(std::int64_t worker) {
  const MutexLock lock(mu_);
  if (sockets_.contains(worker)) return true;
  const std::string name = NameOf(cluster_, worker);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a zero byte first: abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    sockets_.emplace(worker, fd);
    return true;
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (error != EADDRINUSE) {
    log::Error("a worker cannot be claimed on this host",
               {{"socket", "@" + name}, {"reason", std::generic_category().message(error)}});
  }
  return false;
}

void SocketClaims::Release(std::int64_t worker) noexcept {
  const MutexLock lock(mu_);
  const auto found = sockets_.find(worker);
  if (found == sockets_.end()) return;
  close(found->second);
  sockets_.erase(found);
}

}  // namespace leaf
