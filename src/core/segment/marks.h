#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leaf/result.h"

namespace leaf {

/// What this server remembers of a tag over a restart.
struct Mark {
  std::int64_t end = 0;  ///< end of its own latest lease; after a clean stop its last issued id + 1
  std::int64_t seen = 0;         ///< largest end seen from any source
  bool regressed = false;        ///< the tag is stopped until an operator resumes it
  std::uint32_t generation = 0;  ///< of the store that leased it (Lineage); 0: unknown
  std::uint32_t store = 0;       ///< its name (Lineage::NameOf); 0 if another has taken over since
};

/// The journal of marks. Recording is cheap and written behind; Sync makes it durable. Thread-safe.
/// A lost tail costs detection of a store that went back, never uniqueness by itself.
class MarkJournal {
 public:
  struct Entry {
    std::string tag;
    Mark mark;
  };
  virtual ~MarkJournal() = default;

  /// All marks found at start. Called once, before any Record.
  virtual Result<std::vector<Entry>> Load() = 0;
  /// Never blocks, never fails; a write that fails later is reported by Sync and in the log.
  virtual void Record(std::string_view tag, const Mark& mark) = 0;
  /// Blocks until everything recorded is on disk.
  virtual Result<void> Sync() = 0;
};

}  // namespace leaf
