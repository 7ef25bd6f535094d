#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admin/admin.h"
#include "admin/callbacks.h"
#include "codec/http1/service.h"
#include "core/segment/engine.h"

namespace leaf {

/// A number as Leaf's pages print it: "500,004".
std::string Grouped(std::int64_t number);

/// Rows that one page shows at most.
inline constexpr std::size_t kPageRows = 10'000;

/// The first kPageRows tags by name of all that are shown to it; absent ones are passed over. Holds
/// no more than that, however many tags there are.
class FirstTags {
 public:
  void Add(const TagView& tag);
  /// Sorted by name.
  std::vector<TagView> Take() &&;
  /// How many were left out.
  std::size_t more() const noexcept { return more_; }

 private:
  std::vector<TagView> heap_;  // the last name on top
  std::size_t more_ = 0;
};

/// Leaf's /cache, a row a tag in the order given; the current segment is slot 0, its successor slot
/// 1. `more` tags are not shown.
std::string CachePage(const std::vector<TagView>& tags, std::size_t more);
/// Leaf's /db, rows in the order given; `more`: there are others behind them.
std::string DbPage(const std::vector<Row>& rows, bool more);

/// Leaf's pages and their style sheet. Thread-safe.
class Pages {
 public:
  /// Reads of the whole table for /db at once; over it kOverloaded, because anybody may ask for it.
  static constexpr int kDbReads = 4;

  /// `context` outlives the pages.
  Pages(const AdminContext& context, std::shared_ptr<CallbackGate> gate)
      : context_(context), gate_(std::move(gate)) {}

  /// Whether `path` is one of /cache, /db, /css/bootstrap.min.css.
  static bool Has(std::string_view path) noexcept;
  /// Answers a request for one of them. `as_leaf`: errors in Leaf's form, else problems.
  void Handle(http1::Exchange& exchange, std::string_view path, bool as_leaf);

 private:
  void Db(http1::Exchange& exchange, bool as_leaf);

  const AdminContext& context_;
  std::shared_ptr<CallbackGate> gate_;
  std::shared_ptr<std::atomic<int>> db_reads_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace leaf
