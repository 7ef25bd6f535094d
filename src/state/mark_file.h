#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/segment/marks.h"

namespace leaf {

/// The journal of marks as a file in the state folder: checksummed records, appended; rewritten
/// (temporary file, fsync, rename, fsync of the folder) when it has grown to twice what it held
/// after the last rewriting. A torn tail is cut off; a broken record in the middle is an error that
/// names the file. Record queues in memory, one entry a tag; Flush, called ten times a second by
/// the server, and Sync write. What could not be written stays queued. Thread-safe.
class MarkFile final : public MarkJournal {
 public:
  /// `path` is absolute; its folder exists. Files are made 0600 and never followed through a
  /// symlink.
  explicit MarkFile(std::string path);
  ~MarkFile() override;

  /// Whether the file was there when Load ran (segment.require_marks).
  bool existed() const noexcept;

  /// The journal at `path` by reading alone, while a server may be writing to it; nullopt if there
  /// is none.
  static Result<std::optional<std::vector<Entry>>> Read(const std::string& path);

  Result<std::vector<Entry>> Load() override;
  void Record(std::string_view tag, const Mark& mark) override;
  Result<void> Sync() override;
  /// Writes what is queued, without fsync.
  Result<void> Flush();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leaf
