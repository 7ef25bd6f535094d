#include "store/sqlite/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <system_error>

namespace leaf::sqlite {
namespace {

std::string Reason(int error) { return std::generic_category().message(error); }

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

struct FileSystem {
  unsigned long magic;  // statfs(2)
  const char* name;
};
// Their locks or their shared memory cannot be relied upon between hosts.
constexpr std::array kNetwork{
    FileSystem{0x6969, "NFS"},        FileSystem{0x517b, "SMB"},
    FileSystem{0xff534d42, "CIFS"},   FileSystem{0xfe534d42, "SMB2"},
    FileSystem{0x5346414f, "AFS"},    FileSystem{0x6b414653, "AFS"},
    FileSystem{0x00c36400, "Ceph"},   FileSystem{0x01021997, "9p"},
    FileSystem{0x0bd00bd0, "Lustre"}, FileSystem{0x7461636f, "OCFS2"},
    FileSystem{0x01161970, "GFS2"},   FileSystem{0x47504653, "GPFS"},
    FileSystem{0x73757245, "Coda"},   FileSystem{0x19830326, "BeeGFS"},
};
constexpr std::array<unsigned long, 2> kInMemory{0x01021994, 0x858458f6};  // tmpfs, ramfs
constexpr unsigned long kFuse = 0x65735546;

Result<File::Findings> JudgeFileSystem(const std::string& folder) {
  struct statfs info {};
  if (statfs(folder.c_str(), &info) != 0) {
    const int error = errno;
    const std::string hint =
        error == ENOENT ? "; make it (mkdir -p " + folder + ") or set store.url" : "";
    return Error{Code::kUnavailable,
                 "sqlite: the folder " + folder + " cannot be used: " + Reason(error) + hint};
  }
  File::Findings findings;
  const auto magic = static_cast<unsigned long>(info.f_type) & 0xffffffffUL;
  for (const FileSystem& network : kNetwork) {
    if (magic != network.magic) continue;
    return Error{Code::kUnavailable, "sqlite: " + folder + " is on a network file system (" +
                                         network.name + "), whose locks do not protect the file; " +
                                         "keep it on a local disk, or share a database server"};
  }
  for (const unsigned long memory : kInMemory) {
    if (magic != memory) continue;
    findings.durability = Durability::kProcess;
    findings.warnings.push_back(folder + " is a file system in memory: a power loss empties it");
  }
  if (magic == kFuse) {
    findings.warnings.push_back(folder +
                                " is on a FUSE file system; if other hosts share it, its "
                                "locks may not protect the file");
  }
  return findings;
}

Result<void> MakeFile(const std::string& path, const std::string& folder) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) return {};
  const int error = fd < 0 ? errno : 0;
  if (fd >= 0) close(fd);
  if (error != 0) {
    return Error{Code::kUnavailable, "sqlite: cannot make " + path + ": " + Reason(error)};
  }
  const int dir = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = dir >= 0 && fsync(dir) == 0;
  const int sync_error = errno;
  if (dir >= 0) close(dir);
  if (synced) return {};
  return Error{Code::kUnavailable,
               "sqlite: cannot sync the folder " + folder + ": " + Reason(sync_error)};
}

}  // namespace

std::optional<FileId> Identify(const std::string& path) noexcept {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

Result<File::Findings> JudgePlace(const std::string& path) {
  return JudgeFileSystem(FolderOf(path));
}

Result<File::Findings> File::Prepare() {
  MutexLock lock(mu_);
  const std::string folder = FolderOf(path_);
  LEAF_ASSIGN_OR_RETURN(Findings findings, JudgeFileSystem(folder));
  if (Result<void> locked = lock_.Acquire(path_ + ".lock", "sqlite: " + path_); !locked.ok()) {
    return Error{Code::kUnavailable, locked.error().message};
  }
  struct stat info {};
  if (stat(path_.c_str(), &info) == 0) {
    if (S_ISREG(info.st_mode)) return findings;
    return Error{Code::kUnavailable, "sqlite: " + path_ + " is not a regular file"};
  }
  if (errno != ENOENT) {
    return Error{Code::kUnavailable, "sqlite: " + path_ + ": " + Reason(errno)};
  }
  if (seen_) {
    return Error{Code::kUnavailable, "sqlite: " + path_ +
                                         " was removed while leafd ran; put it back, "
                                         "or restart leafd to begin a new one"};
  }
  LEAF_RETURN_IF_ERROR(MakeFile(path_, folder));
  return findings;
}

void File::Opened(FileId id) {
  MutexLock lock(mu_);
  seen_ = id;
}

std::shared_ptr<File> ShareFile(const std::string& path, FileUse use) {
  // A holder a use: whether the use is over shows by its end, though the other goes on.
  struct Holder {
    std::shared_ptr<File> file;
  };
  using Uses = std::array<std::weak_ptr<Holder>, 2>;
  static Mutex mu;
  static auto* const files = new std::map<std::string, Uses>;  // never destroyed, as SystemClock

  MutexLock lock(mu);
  Uses& uses = (*files)[path];
  const auto own = static_cast<std::size_t>(use);
  const std::shared_ptr<Holder> other = uses[1 - own].lock();
  auto holder = std::make_shared<Holder>();
  holder->file = other && uses[own].expired() ? other->file : std::make_shared<File>(path);
  uses[own] = holder;
  return {holder, holder->file.get()};
}

}  // namespace leaf::sqlite
