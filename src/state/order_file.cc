#include "state/order_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace leaf {
namespace {

constexpr std::size_t kPage = 4096;
/// "LEAFORD1"; the word lies behind it.
constexpr std::int64_t kMagic = 0x3144524F4641454C;

Error Failed(const std::string& path, const std::string& what, int error) {
  std::string text = "order of ids " + path + ": " + what;
  if (error != 0) text += ": " + std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT) text += "; free space for it";
  return {Code::kUnavailable, std::move(text)};
}

struct Page {
  std::int64_t magic;
  std::atomic<std::int64_t> word;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "the word is shared by mapping");

}  // namespace

Result<std::unique_ptr<OrderFile>> OrderFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0 && errno == ELOOP)
    return Failed(path, "it is a symbolic link, which is never followed; remove it", 0);
  if (fd < 0) return Failed(path, "cannot make or open it", errno);
  struct stat info {};
  const bool known = fstat(fd, &info) == 0;
  const bool fresh = known && info.st_size == 0;
  int error = known ? 0 : errno;
  // The whole page has its block, so that no store through the mapping can fail for want of space.
  if (error == 0) error = posix_fallocate(fd, 0, kPage);
  void* page = MAP_FAILED;
  if (error == 0) {
    page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) error = errno;
  }
  close(fd);
  if (error != 0) return Failed(path, "cannot use it", error);
  auto file = std::unique_ptr<OrderFile>(new OrderFile());
  file->page_ = page;
  auto* content = static_cast<Page*>(page);
  file->word_ = &content->word;
  const std::int64_t last = content->word.load(std::memory_order_relaxed);
  if (fresh || (content->magic == 0 && last == 0)) {
    content->magic = kMagic;
  } else if (content->magic != kMagic || last < 0) {
    return Failed(path, "it is damaged, or not leafd's; remove it", 0);
  }
  if (last > 0) file->last_ = last;
  return file;
}

OrderFile::~OrderFile() {
  if (page_ != nullptr) munmap(page_, kPage);
}

}  // namespace leaf
