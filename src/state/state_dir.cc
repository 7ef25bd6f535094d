#include "state/state_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace leaf {
namespace {

Error Failed(const std::string& path, const std::string& what, int error) {
  return {Code::kUnavailable, "state folder " + path + ": " + what + ": " +
                                  std::generic_category().message(error) +
                                  "; make it writable for this user, or set server.state_dir"};
}

Result<void> SyncFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!synced) return Failed(folder, "cannot sync it", error);
  return {};
}

Result<void> MakeFolders(const std::string& path) {
  std::size_t slash = 0;
  do {
    slash = path.find('/', slash + 1);
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0700) == 0) {
      const std::size_t above = folder.rfind('/');
      LEAF_RETURN_IF_ERROR(SyncFolder(above == 0 ? "/" : folder.substr(0, above)));
      continue;
    }
    const int error = errno;
    struct stat info {};
    // EEXIST, or EROFS and the like of a folder above that is there already.
    if (stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return Failed(path, "cannot make " + folder, error == EEXIST ? ENOTDIR : error);
  } while (slash != std::string::npos);
  return {};
}

// Absolute and without slashes at its end.
Result<std::string> Plain(const std::string& path) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (!folder.empty() && folder.front() == '/') return folder;
  return Error{Code::kInvalidArgument, "state folder '" + path + "' is not an absolute path"};
}

}  // namespace

Result<std::string> StateDir::Judge(const std::string& path) {
  LEAF_ASSIGN_OR_RETURN(const std::string folder, Plain(path));
  std::string there = folder;
  struct stat info {};
  while (stat(there.c_str(), &info) != 0) {
    if (errno != ENOENT || there == "/") return Failed(folder, "it cannot be used", errno);
    const std::size_t above = there.rfind('/');
    there.resize(above == 0 ? 1 : above);
  }
  if (!S_ISDIR(info.st_mode)) return Failed(folder, "cannot make " + folder, ENOTDIR);
  if (access(there.c_str(), R_OK | W_OK | X_OK) != 0)
    return Failed(folder, "it cannot be used", errno);
  if (there != folder || (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return std::string();
  return "other users can write into the state folder " + folder + "; chmod 700 " + folder;
}

Result<void> StateDir::Open(const std::string& path) {
  LEAF_ASSIGN_OR_RETURN(std::string folder, Plain(path));
  LEAF_RETURN_IF_ERROR(MakeFolders(folder));
  LEAF_ASSIGN_OR_RETURN(warning_, Judge(folder));
  LEAF_RETURN_IF_ERROR(lock_.Acquire(folder + "/leafd.lock", "state folder " + folder));
  path_ = std::move(folder);
  return {};
}

}  // namespace leaf
