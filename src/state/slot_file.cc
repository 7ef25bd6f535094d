// A slot, little-endian as the machine is:
//   8 magic  8 sequence  8 inode  8 hash of /etc/machine-id  40 boot id, zero-padded
//   4 payload length  400 payload, zero-padded  4 device  8 FNV-1a over all before
#include "state/slot_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/fnv.h"

namespace leaf {
namespace {

constexpr std::array<char, 8> kMagic = {'L', 'E', 'A', 'F', 'D', 'R', 'C', '1'};
constexpr off_t kSlotDistance = 4096;
constexpr std::size_t kBootBytes = 40;

struct Slot {
  std::array<char, 8> magic{};
  std::uint64_t sequence = 0, inode = 0, machine = 0;
  std::array<char, kBootBytes> boot{};
  std::uint32_t length = 0;
  std::array<char, SlotFile::kMaxPayload> payload{};
  std::uint32_t device = 0;
  std::uint64_t sum = 0;
};
static_assert(sizeof(Slot) == 8 + 8 + 8 + 8 + 40 + 4 + 400 + 4 + 8, "no padding");

std::uint64_t SumOf(const Slot& slot) noexcept {
  return Fnv1a({reinterpret_cast<const char*>(&slot), offsetof(Slot, sum)});
}

/// The first line of a small file of the system; empty if it cannot be read.
std::string FirstLine(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::array<char, 128> bytes{};
  const ssize_t size = read(fd, bytes.data(), bytes.size());
  close(fd);
  const std::string_view text(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(text.substr(0, text.find('\n')));
}

std::uint64_t Machine() { return Fnv1a(FirstLine("/etc/machine-id")); }
std::string Boot() {
  return FirstLine("/proc/sys/kernel/random/boot_id").substr(0, kBootBytes - 1);
}

bool IsSound(const Slot& slot) noexcept {
  return slot.magic == kMagic && slot.length <= SlotFile::kMaxPayload && slot.sum == SumOf(slot);
}

}  // namespace

SlotFile::~SlotFile() {
  if (fd_ >= 0) close(fd_);
}

Error SlotFile::Failed(std::string_view what, int error) const {
  std::string text = what_ + " " + path_ + ": " + std::string(what);
  if (error != 0) text += ": " + std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT) text += "; free space for it";
  return {Code::kUnavailable, std::move(text)};
}

Result<std::optional<SlotFile::Found>> SlotFile::Load() {
  if (fd_ < 0) fd_ = open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd_ < 0 && errno == ENOENT) return std::optional<Found>();
  if (fd_ < 0 && errno == ELOOP)
    return Failed("it is a symbolic link, which is never followed; remove it", 0);
  if (fd_ < 0) return Failed("cannot open", errno);
  struct stat info {};
  if (fstat(fd_, &info) != 0) return Failed("cannot read", errno);
  if (!S_ISREG(info.st_mode)) return Failed("it is no file; remove it", 0);
  if (info.st_size == 0) return std::optional<Found>();
  std::optional<Slot> best;
  for (const off_t at : {off_t{0}, kSlotDistance}) {
    Slot slot;
    const ssize_t size = pread(fd_, &slot, sizeof slot, at);
    if (size < 0) return Failed("cannot read", errno);
    if (static_cast<std::size_t>(size) != sizeof slot || !IsSound(slot)) continue;
    if (!best || slot.sequence > best->sequence) best = slot;
  }
  if (!best) {
    return Failed(
        "it is damaged, or not leafd's. Restore it, or remove it: then what this server minted "
        "before is protected by the registry alone",
        0);
  }
  sequence_ = best->sequence;
  Found found;
  found.payload.assign(best->payload.data(), best->length);
  found.same_file = best->inode == info.st_ino && best->machine == Machine();
  const std::string boot = Boot();
  // A device keeps its number as long as the machine runs, and not longer.
  found.same_boot = !boot.empty() && boot == best->boot.data() &&
                    best->device == static_cast<std::uint32_t>(info.st_dev);
  return std::optional(std::move(found));
}

Result<void> SlotFile::Create() {
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd_ < 0 && errno == ELOOP)
    return Failed("it is a symbolic link, which is never followed; remove it", 0);
  if (fd_ < 0) return Failed("cannot make it", errno);
  const std::string folder = path_.substr(0, path_.rfind('/') + 1);
  const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = folder_fd >= 0 && fsync(folder_fd) == 0;
  const int error = errno;
  if (folder_fd >= 0) close(folder_fd);
  if (!synced) return Failed("cannot sync its folder", error);
  return {};
}

Result<void> SlotFile::Save(std::string_view payload) {
  LEAF_ASSERT(payload.size() <= kMaxPayload);
  if (fd_ < 0) LEAF_RETURN_IF_ERROR(Create());
  struct stat info {};
  if (fstat(fd_, &info) != 0) return Failed("cannot write", errno);
  // Removed or replaced under our feet: what would be written would be lost.
  struct stat named {};
  if (lstat(path_.c_str(), &named) != 0 || named.st_ino != info.st_ino ||
      named.st_dev != info.st_dev) {
    return Failed("it was removed or replaced while in use; start leafd again", 0);
  }
  Slot slot;
  slot.magic = kMagic;
  slot.sequence = sequence_ + 1;
  slot.inode = info.st_ino;
  slot.machine = Machine();
  slot.device = static_cast<std::uint32_t>(info.st_dev);
  const std::string boot = Boot();
  std::memcpy(slot.boot.data(), boot.data(), boot.size());
  slot.length = static_cast<std::uint32_t>(payload.size());
  std::memcpy(slot.payload.data(), payload.data(), payload.size());
  slot.sum = SumOf(slot);
  const off_t at = slot.sequence % 2 == 0 ? 0 : kSlotDistance;
  ssize_t written = 0;
  do {
    written = pwrite(fd_, &slot, sizeof slot, at);
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(sizeof slot))
    return Failed("cannot write", written < 0 ? errno : ENOSPC);
  if (fdatasync(fd_) != 0) return Failed("cannot sync", errno);
  sequence_ = slot.sequence;
  return {};
}

}  // namespace leaf
