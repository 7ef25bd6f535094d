#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leaf/result.h"

namespace leaf {

/// One small record in a file, replaced as a whole: two checksummed slots in blocks of their own
/// are written in turn and synced, so that a torn write leaves the one before. Each slot notes
/// where it was written (inode, machine, boot), so that a copy of the file knows that it is one.
/// Confined to one thread at a time.
class SlotFile {
 public:
  static constexpr std::size_t kMaxPayload = 400;

  /// `path` is absolute and its folder exists; `what` names the file in errors.
  SlotFile(std::string path, std::string what) : path_(std::move(path)), what_(std::move(what)) {}
  ~SlotFile();
  SlotFile(const SlotFile&) = delete;
  SlotFile& operator=(const SlotFile&) = delete;

  struct Found {
    std::string payload;
    bool same_file = false;  ///< this very file of this machine, not a copy
    bool same_boot = false;  ///< written since the machine started, on the same device
  };
  /// nullopt: there is no file, or none that ever held a record. A symlink, a foreign file or one
  /// with no sound slot is an error that says what to do.
  Result<std::optional<Found>> Load();

  /// Makes the record durable; at the first time also the file (0600) and its entry in the folder.
  /// REQUIRES: payload.size() <= kMaxPayload.
  Result<void> Save(std::string_view payload);

  const std::string& path() const noexcept { return path_; }

 private:
  Result<void> Create();
  Error Failed(std::string_view what, int error) const;

  const std::string path_, what_;
  int fd_ = -1;
  std::uint64_t sequence_ = 0;
};

}  // namespace leaf
