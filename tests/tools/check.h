#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace leaf::tools {

/// What is demanded of a run, besides that nothing is issued twice or out of order.
struct CheckOptions {
  /// Of each tag, the max_id of the store after the run: no id may reach it, and what lies below it
  /// and was not acknowledged is lost.
  std::map<std::string, std::int64_t> high;
  std::map<std::string, std::int64_t> low;          ///< where a tag began; default: its smallest id
  std::map<std::string, std::int64_t> max_lost;     ///< over it is a breach; needs `high`
  std::int64_t min_ids = 1;                         ///< fewer acknowledged ids: the run is void
  bool global_order = false;                        ///< demand real-time order across servers too
  std::size_t max_findings = 20;                    ///< of a kind, kept as text; all are counted
  std::size_t memory_bytes = std::size_t{1} << 30;  ///< what passes it goes to the folder
  std::string folder;                               ///< for what spills; empty: the system's
};

/// The verdict over one tag.
struct TagReport {
  std::int64_t answers = 0;  ///< acknowledged requests
  std::int64_t ids = 0;      ///< acknowledged
  std::int64_t first = 0;    ///< smallest id; 0 if there is none
  std::int64_t last = 0;     ///< largest id + 1
  std::int64_t failed = 0;   ///< requests answered with an error
  std::int64_t unsure = 0;   ///< requests without an answer
  std::int64_t unsure_ids = 0;
  std::int64_t duplicates = 0;  ///< ids acknowledged more than once, counted each time again
  std::int64_t connection_breaches = 0;  ///< not above the connection's previous id
  std::int64_t server_breaches = 0;      ///< not above an id that the server had answered before
  std::int64_t global_breaches = 0;      ///< the same over all servers
  std::int64_t beyond = 0;               ///< ids at or above `high`, or below zero
  std::int64_t lost = 0;                 ///< if `high` was given

  /// Sums; `first` and `last` stay.
  void Add(const TagReport& other);
};

struct CheckReport {
  enum class Verdict : std::uint8_t { kClean, kBreach, kVoid };
  Verdict verdict = Verdict::kClean;
  std::map<std::string, TagReport> tags;
  TagReport total;  ///< first and last stay 0
  std::vector<std::string> findings;
  std::int64_t truncated_files = 0;
  bool spilled = false;  ///< memory did not hold it all
  std::string error;     ///< not empty: it could not be judged, and the rest means nothing

  std::string Json() const;
  std::string Text() const;
};

/// Judges histories. A breach outweighs a void run. Beyond `memory_bytes` it holds what each tag
/// and the connections of one file need, some 100 bytes for each of these. Thread-compatible.
class Checker {
 public:
  explicit Checker(CheckOptions options);
  ~Checker();

  /// Reads a history; the text of an error, or "".
  [[nodiscard]] std::string Add(const std::string& path);
  /// Once, at the end.
  CheckReport Finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leaf::tools
