// Two locks: `queue_mu_` guards what is recorded and not written, and is held for moments;
// `file_mu_` is held over I/O, so that Record never waits for a disk. The marks themselves are not
// kept in memory: rewriting reads the file back.
#include "state/mark_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "state/mark_record.h"

namespace leaf {
namespace {

constexpr std::size_t kSlack = 64 * 1024;  // a file smaller than this is not worth rewriting

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  bool open() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

Error Failed(const std::string& path, const char* what, int error) {
  std::string message =
      "journal of marks " + path + ": " + what + ": " + std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) message += "; free space for it";
  return {Code::kUnavailable, std::move(message)};
}

Result<void> WriteAt(int fd, std::string_view bytes, std::size_t at, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Failed(path, "cannot write", written < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::size_t>(written);
  }
  return {};
}

Result<std::string> ReadAll(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return Failed(path, "cannot read", errno);
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = pread(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(path, "cannot read", errno);
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

Result<void> SyncFolder(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open() || fsync(fd.get()) != 0) return Failed(path, "cannot sync its folder", errno);
  return {};
}

using Marks = std::unordered_map<std::string, Mark>;
using SortedMarks = std::map<std::string, Mark, std::less<>>;

Error NoLink(const std::string& path) {
  return Error{Code::kUnavailable,
               "journal of marks " + path + " is a symbolic link; put a file there, or remove it"};
}

// Where the sound part of a journal ends.
Result<std::size_t> Parse(const std::string& bytes, const std::string& path, SortedMarks& marks) {
  Result<std::size_t> sound = ParseMarks(bytes, [&](std::string_view tag, const Mark& mark) {
    marks.insert_or_assign(std::string(tag), mark);
  });
  if (sound.ok()) return sound;
  return Error{Code::kUnavailable, "journal of marks " + path +
                                       " is damaged: " + sound.error().message +
                                       "; restore it, or move it away to serve without its memory"};
}

}  // namespace

class MarkFile::Impl {
 public:
  explicit Impl(std::string path) : path_(std::move(path)) {}

  bool existed() const noexcept { return existed_; }

  Result<std::vector<Entry>> Load() {
    MutexLock lock(file_mu_);
    fd_ = Descriptor(open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    const int error = errno;
    existed_ = fd_.open();
    if (fd_.open()) return LoadFile();
    if (error == ELOOP) return NoLink(path_);
    if (error != ENOENT) return Failed(path_, "cannot open", error);
    loaded_ = true;
    // A full disk keeps nobody from serving: it is logged, and the next Flush tries again.
    if (Result<void> made = Told(Rewrite({})); !made.ok()) suspect_ = true;
    return std::vector<Entry>();
  }

  void Record(std::string_view tag, const Mark& mark) {
    MutexLock lock(queue_mu_);
    queue_.insert_or_assign(std::string(tag), mark);
  }

  Result<void> Flush() {
    MutexLock lock(file_mu_);
    return Told(Write());
  }

  Result<void> Sync() {
    MutexLock lock(file_mu_);
    return Told(WriteAndSync());
  }

 private:
  Result<std::vector<Entry>> LoadFile() REQUIRES_LOCK(file_mu_) {
    struct stat info {};
    if (fstat(fd_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return Error{Code::kUnavailable, "journal of marks " + path_ + " is not a regular file"};
    }
    LEAF_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(fd_.get(), path_));
    SortedMarks marks;
    LEAF_ASSIGN_OR_RETURN(const std::size_t sound, Parse(bytes, path_, marks));
    loaded_ = true;
    size_ = sound;
    tail_broken_ = size_ < bytes.size();
    if (tail_broken_) {
      log::Warn("the journal of marks ended in a torn record, which is cut off",
                {{"file", path_}, {"bytes", static_cast<std::int64_t>(bytes.size() - size_)}});
    }
    std::vector<Entry> entries;
    entries.reserve(marks.size());
    std::string live(kMarkHeader);
    for (auto& [tag, mark] : marks) {
      AppendMark(tag, mark, live);
      entries.push_back({tag, mark});
    }
    held_ = live.size();
    return entries;
  }

  // Appends the queue, or rewrites the file.
  Result<void> Write() REQUIRES_LOCK(file_mu_) {
    if (!loaded_) return Error{Code::kInternal, "journal of marks " + path_ + " was not read"};
    Marks marks;
    {
      MutexLock lock(queue_mu_);
      marks.swap(queue_);
    }
    if (marks.empty() && !MustRewrite()) return {};
    Result<void> result = MustRewrite() ? Rewrite(marks) : Append(marks);
    // With no room for a second file there may still be room for these.
    if (!result.ok() && fd_.open() && !suspect_ && Named()) result = Append(marks);
    if (!result.ok()) {
      MutexLock lock(queue_mu_);
      queue_.merge(marks);  // what was recorded meanwhile is newer and stays
    }
    return result;
  }

  Result<void> WriteAndSync() REQUIRES_LOCK(file_mu_) {
    LEAF_RETURN_IF_ERROR(Write());
    if (!unsynced_) return {};
    if (fdatasync(fd_.get()) != 0) {
      const int error = errno;
      suspect_ = true;  // the kernel may have dropped the pages; a later sync would not say so
      return Failed(path_, "cannot sync", error);
    }
    unsynced_ = false;
    return {};
  }

  bool MustRewrite() const REQUIRES_LOCK(file_mu_) {
    return !fd_.open() || suspect_ || size_ > 2 * held_ + kSlack || !Named();
  }

  // Whether the path still names the open file.
  bool Named() const REQUIRES_LOCK(file_mu_) {
    struct stat opened {};
    struct stat named {};
    return fstat(fd_.get(), &opened) == 0 && lstat(path_.c_str(), &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
  }

  Result<void> Append(const Marks& marks) REQUIRES_LOCK(file_mu_) {
    if (tail_broken_ && ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
      return Failed(path_, "cannot cut off a torn tail", errno);
    }
    std::string bytes;
    for (const auto& [tag, mark] : marks) AppendMark(tag, mark, bytes);
    tail_broken_ = true;
    LEAF_RETURN_IF_ERROR(WriteAt(fd_.get(), bytes, size_, path_));
    tail_broken_ = false;
    size_ += bytes.size();
    unsynced_ = true;
    return {};
  }

  Result<void> Rewrite(const Marks& marks) REQUIRES_LOCK(file_mu_) {
    Marks all = marks;
    if (fd_.open()) {
      LEAF_ASSIGN_OR_RETURN(std::string old, ReadAll(fd_.get(), path_));
      old.resize(std::min(old.size(), size_));
      Marks found;
      Result<std::size_t> parsed = ParseMarks(old, [&](std::string_view tag, const Mark& mark) {
        found.insert_or_assign(std::string(tag), mark);
      });
      if (!parsed.ok() || *parsed != size_) {
        return Error{Code::kUnavailable,
                     "journal of marks " + path_ + " was damaged while leafd ran"};
      }
      all.merge(found);
    }
    std::string bytes(kMarkHeader);
    for (const auto& [tag, mark] : all) AppendMark(tag, mark, bytes);
    return Replace(bytes);
  }

  Result<void> Replace(const std::string& bytes) REQUIRES_LOCK(file_mu_) {
    const std::string temporary = path_ + ".tmp";
    unlink(temporary.c_str());  // of a crash before the rename
    Descriptor fresh(
        open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fresh.open()) return Failed(path_, "cannot make the file beside it", errno);
    Result<void> result = WriteAt(fresh.get(), bytes, 0, path_);
    if (result.ok() && fsync(fresh.get()) != 0) result = Failed(path_, "cannot sync", errno);
    if (result.ok() && rename(temporary.c_str(), path_.c_str()) != 0) {
      result = Failed(path_, "cannot rename the file beside it", errno);
    }
    if (!result.ok()) {
      unlink(temporary.c_str());
      return result;
    }
    fd_ = std::move(fresh);
    size_ = held_ = bytes.size();
    tail_broken_ = unsynced_ = false;
    suspect_ = true;  // until the folder knows it
    LEAF_RETURN_IF_ERROR(SyncFolder(path_));
    suspect_ = false;
    return {};
  }

  // One line when writing begins to fail, and one when it works again.
  Result<void> Told(Result<void> result) REQUIRES_LOCK(file_mu_) {
    const bool failed = !result.ok();
    if (failed == std::exchange(failing_, failed)) return result;
    if (failed) {
      log::Error("the journal of marks cannot be written", {{"error", result.error().message}});
    } else {
      log::Info("the journal of marks is written again", {{"file", path_}});
    }
    return result;
  }

  const std::string path_;
  std::atomic<bool> existed_{false};

  Mutex queue_mu_;
  Marks queue_ GUARDED_BY(queue_mu_);

  Mutex file_mu_;
  bool loaded_ GUARDED_BY(file_mu_) = false;
  Descriptor fd_ GUARDED_BY(file_mu_);
  std::size_t size_ GUARDED_BY(file_mu_) = 0;      // of the sound part
  std::size_t held_ GUARDED_BY(file_mu_) = 0;      // size_ after the last rewriting
  bool tail_broken_ GUARDED_BY(file_mu_) = false;  // bytes behind size_ are to be cut off
  bool unsynced_ GUARDED_BY(file_mu_) = false;
  bool suspect_ GUARDED_BY(file_mu_) = false;  // to be rewritten
  bool failing_ GUARDED_BY(file_mu_) = false;
};

MarkFile::MarkFile(std::string path) : impl_(std::make_unique<Impl>(std::move(path))) {}
MarkFile::~MarkFile() = default;

// A record that is being appended looks like a torn tail, which is left out.
Result<std::optional<std::vector<MarkJournal::Entry>>> MarkFile::Read(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.open() && errno == ENOENT) return std::optional<std::vector<Entry>>();
  if (!fd.open()) return errno == ELOOP ? NoLink(path) : Failed(path, "cannot open", errno);
  LEAF_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(fd.get(), path));
  SortedMarks marks;
  LEAF_ASSIGN_OR_RETURN([[maybe_unused]] const std::size_t sound, Parse(bytes, path, marks));
  std::vector<Entry> entries;
  entries.reserve(marks.size());
  for (auto& [tag, mark] : marks) entries.push_back({tag, mark});
  return std::optional(std::move(entries));
}
bool MarkFile::existed() const noexcept { return impl_->existed(); }
Result<std::vector<MarkJournal::Entry>> MarkFile::Load() { return impl_->Load(); }
void MarkFile::Record(std::string_view tag, const Mark& mark) { impl_->Record(tag, mark); }
Result<void> MarkFile::Sync() { return impl_->Sync(); }
Result<void> MarkFile::Flush() { return impl_->Flush(); }

}  // namespace leaf
