#pragma once

#include <memory>
#include <optional>
#include <string>

#include "admin/admin.h"
#include "admin/callbacks.h"
#include "codec/http1/service.h"
#include "core/segment/engine.h"

namespace leaf {

/// A tag as the API shows it, the row as the store has it joined with what this server holds. The
/// bounds of its segments are half-open. REQUIRES: one of them is there.
std::string TagJson(const Row* row, const TagView* view);

/// The routes below /api/v1/tags. Thread-safe.
class TagsApi {
 public:
  /// `context` outlives the API.
  TagsApi(const AdminContext& context, std::shared_ptr<CallbackGate> gate)
      : context_(context), gate_(std::move(gate)) {}

  /// GET /api/v1/tags?limit=&after=
  void List(http1::Exchange& exchange);
  /// GET, PUT, DELETE /api/v1/tags/{tag}; the method was checked.
  void Get(http1::Exchange& exchange, const std::string& tag);
  void Put(http1::Exchange& exchange, const std::string& tag);
  void Delete(http1::Exchange& exchange, const std::string& tag);
  /// POST /api/v1/tags/{tag}/resume and /drop
  void Resume(http1::Exchange& exchange, const std::string& tag);
  void Drop(http1::Exchange& exchange, const std::string& tag);

 private:
  /// False, and answered, if segment mode is off.
  bool Enabled(http1::Exchange& exchange) const;
  http1::Response ListAnswer(const std::vector<Row>& rows, std::size_t limit) const;
  http1::Response GetAnswer(const std::string& tag, const Result<std::optional<Row>>& row) const;
  /// The engine's view of a tag that it knows to exist.
  std::optional<TagView> View(std::string_view tag) const;
  Engine& engine() const noexcept { return *context_.ids.engine(); }
  Instant Deadline() const noexcept { return context_.clock.Now() + context_.store_timeout; }

  const AdminContext& context_;
  std::shared_ptr<CallbackGate> gate_;
};

}  // namespace leaf
