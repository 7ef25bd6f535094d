#pragma once

#include <set>
#include <string>

#include "admin/admin.h"
#include "base/mutex.h"
#include "codec/http1/message.h"

namespace leaf {

/// GET /metrics: Prometheus text format 0.0.4. Thread-safe.
///
/// Tags that were never asked for have no series. The first kTagLabels names that were seen in use
/// keep a label value each for ever, all others are summed as "__other__".
class Metrics {
 public:
  static constexpr std::size_t kTagLabels = 1000;

  /// `context` outlives the metrics.
  explicit Metrics(const AdminContext& context) : context_(context) {}

  http1::Response Answer();
  std::string Render();

 private:
  /// The label value of a tag.
  std::string LabelOf(const std::string& tag);

  const AdminContext& context_;
  Mutex mu_;
  std::set<std::string> labels_ GUARDED_BY(mu_);
};

}  // namespace leaf
