#include "config/config_files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace leaf::config {
namespace {

constexpr std::size_t kMaxConfig = 1024 * 1024;
constexpr std::size_t kMaxPassword = 4096;

Error Invalid(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }
Error Failed(std::string_view what) {
  return Invalid(std::string(what) + ": " + std::strerror(errno));
}

/// An open file descriptor, closed at the end.
class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool ok() const { return fd_ >= 0; }
  bool Stat(struct stat& status) const { return fstat(fd_, &status) == 0; }

  Result<std::string> Read(std::size_t limit) const {
    std::string bytes;
    std::array<char, 16 * 1024> block;
    for (;;) {
      const ssize_t count = read(fd_, block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed("cannot be read");
      if (count == 0) return bytes;
      bytes.append(block.data(), static_cast<std::size_t>(count));
      if (bytes.size() > limit)
        return Invalid("is larger than " + std::to_string(limit) + " bytes");
    }
  }

 private:
  const int fd_;
};

bool CanUse(const std::string& path, int mode) {
  return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

/// Whether the folder is there and can be written, or can be made.
bool IsUsableFolder(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return S_ISDIR(status.st_mode) && CanUse(path, W_OK | X_OK);
  const std::string parent = path.substr(0, path.rfind('/'));
  return errno == ENOENT && CanUse(parent.empty() ? "/" : parent, W_OK | X_OK);
}

std::string Lookup(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

}  // namespace

Result<FileText> ReadConfigFile(const std::string& path) {
  const File file(path);
  struct stat status {};
  if (!file.ok() || !file.Stat(status)) return Failed("cannot be opened");
  FileText text;
  LEAF_ASSIGN_OR_RETURN(text.bytes, file.Read(kMaxConfig));
  text.others_can_read = S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0;
  return text;
}

Result<std::string> ReadPasswordFile(const std::string& path) {
  if (!path.starts_with('/')) return Invalid("needs an absolute path");
  const File file(path);
  struct stat status {};
  if (!file.ok() || !file.Stat(status)) return Failed("cannot be opened");
  if (!S_ISREG(status.st_mode)) return Invalid("is not a file");
  if ((status.st_mode & 07777 & ~0640U) != 0)
    return Invalid("can be used by others; its mode must be 0640 or stricter");
  LEAF_ASSIGN_OR_RETURN(std::string password, file.Read(kMaxPassword));
  if (password.ends_with('\n')) password.pop_back();
  if (password.ends_with('\r')) password.pop_back();
  if (password.empty()) return Invalid("is empty");
  if (password.find_first_of(std::string_view("\0\n\r", 3)) != std::string::npos) {
    return Invalid("must hold the password in one line");
  }
  return password;
}

Result<void> CheckReadable(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return Failed("cannot be found");
  if (!S_ISREG(status.st_mode)) return Invalid("is not a file");
  if (!CanUse(path, R_OK)) return Failed("cannot be read");
  return {};
}

Result<std::string> DefaultStateDir(const std::map<std::string, std::string>& environment,
                                    const std::string& system) {
  // systemd separates several folders by colons; the first one is ours.
  std::string given = Lookup(environment, "STATE_DIRECTORY");
  given = given.substr(0, given.find(':'));
  if (given.starts_with('/')) return given;
  if (!given.empty()) return Invalid("STATE_DIRECTORY must be an absolute path");
  if (IsUsableFolder(system)) return system;
  // The XDG specification has relative paths ignored.
  const std::string state = Lookup(environment, "XDG_STATE_HOME");
  if (state.starts_with('/')) return state + "/leafd";
  const std::string home = Lookup(environment, "HOME");
  if (home.starts_with('/')) return home + "/.local/state/leafd";
  return Invalid("no folder for the state: " + system +
                 " cannot be written and HOME is not set; set server.state_dir");
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "localhost";
  return name.data();
}

std::vector<std::string> HostAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof address);
    std::array<char, INET_ADDRSTRLEN> text{};
    if (inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size()) != nullptr)
      addresses.emplace_back(text.data());
  }
  freeifaddrs(all);
  return addresses;
}

std::map<std::string, std::string> ProcessEnvironment() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos)
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

std::int64_t OpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<int>::max();
  }
  return static_cast<std::int64_t>(
      std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int>::max()));
}

}  // namespace leaf::config
