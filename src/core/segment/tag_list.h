#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/random.h"
#include "core/segment/engine.h"
#include "core/segment/store_calls.h"

namespace leaf {

/// Reads the table's rows again and again, in pages by key. The first pass goes at once; later ones
/// are spread over the refresh interval. Thread-safe.
class TagList {
 public:
  /// What it needs of the engine.
  class Host {
   public:
    virtual Tag& Know(const Row& row) = 0;
    /// Pass `pass` is complete: a row seen in no pass since, and known before it began, is gone.
    virtual void ForgetUnseen(std::uint32_t pass) = 0;

   protected:
    ~Host() = default;
  };

  TagList(const EngineOptions& options, SegmentStore& store, StoreCalls& calls, Agenda& agenda,
          Clock& clock, Random& random, Host& host);

  /// The pass under way, or the last one: what a row that is seen now is stamped with.
  std::uint32_t pass() const noexcept { return pass_.load(std::memory_order_relaxed); }
  bool complete() const noexcept { return complete_.load(std::memory_order_relaxed); }
  /// Of the last page; empty if it came.
  std::string last_error() const;

  Instant Tick(Instant now);
  void Close();

 private:
  void Ask(std::string after);
  void Page(const std::string& after, Result<std::vector<Row>> rows);
  void Failed(const Error& error, Instant now);
  void Turned(const std::vector<Row>& rows, Instant now);

  const EngineOptions& options_;
  SegmentStore& store_;
  StoreCalls& calls_;
  Agenda& agenda_;
  Clock& clock_;
  Random& random_;
  Host& host_;

  std::atomic<std::uint32_t> pass_{0};
  std::atomic<bool> complete_{false};

  mutable Mutex mu_;
  std::string after_ GUARDED_BY(mu_);
  bool in_pass_ GUARDED_BY(mu_) = false;
  bool calling_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;
  int failures_ GUARDED_BY(mu_) = 0;
  int pages_ GUARDED_BY(mu_) = 0;       ///< of this pass so far
  int last_pages_ GUARDED_BY(mu_) = 0;  ///< of the last complete pass; 0: none yet
  Instant began_ GUARDED_BY(mu_);       ///< this pass
  Instant next_at_ GUARDED_BY(mu_) = Instant::min();
  std::string last_error_ GUARDED_BY(mu_) = "the tag list has not been read yet";
};

}  // namespace leaf
