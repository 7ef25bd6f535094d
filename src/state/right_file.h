#pragma once

#include <memory>
#include <string>

#include "base/serial_thread.h"
#include "core/snowflake/worker_registry.h"

namespace leaf {

/// The journal of one right as a file in the state folder: two checksummed slots written in turn,
/// fdatasync'd, so that a torn write leaves the one before. It notes the boot, the machine and its
/// own inode, and so knows when it was copied. Written by a thread of its own; of several Saves
/// that wait, the last is written and all are answered. Thread-safe.
class RightFile final : public RightJournal {
 public:
  /// `path` is absolute; its folder exists. 0600, never through a symlink.
  explicit RightFile(std::string path);
  /// Waits for the write under way, for a second at most.
  ~RightFile() override;

  Result<std::optional<Found>> Load() override;
  void Save(RightRecord record, Done<bool> done) override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  ///< shared with a write that is stuck beyond our end
  SerialThread thread_;
};

}  // namespace leaf
