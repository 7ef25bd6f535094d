#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "codec/http1/service.h"
#include "core/id_service.h"
#include "core/request_stats.h"
#include "core/segment/segment_store.h"

namespace leaf {

/// What the pages and the admin API need to know of the server. All pointers and references outlive
/// the Admin. Callbacks are thread-safe and never block.
struct AdminContext {
  IdService& ids;
  SegmentStore* store = nullptr;  ///< nullptr iff segment mode is disabled
  const Clock& clock;
  Duration store_timeout =
      std::chrono::seconds(1);  ///< bound on each store call made for an answer
  Durability min_durability = Durability::kPower;
  std::string version = {};             ///< of leafd
  std::int64_t started_ms = 0;          ///< wall clock at the start
  std::string segment_notice = {};      ///< said with segment mode while it is ok; may be empty
  Layout layout = kLeafLayout;          ///< of snowflake ids; what decoding takes by default
  std::string cluster = {};             ///< snowflake.name
  WorkerRegistry* registry = nullptr;   ///< nullptr: snowflake mode keeps no worker
  bool pages_on_main = false;           ///< compat.pages_on_main
  bool probes_on_main = false;          ///< server.probes_on_main
  bool reject_encoded_slash = false;    ///< compat.leaf: %2F and %5C are 400 on Leaf's paths
  bool disabled_returns_zero = false;   ///< compat.disabled_returns_zero
  std::function<bool()> draining = {};  ///< empty: never
  /// The counters of every reactor; each lives as long as the Admin. Empty: none.
  std::function<std::vector<const RequestStats*>()> stats = {};
};

/// Everything that leafd answers off the hot path. Thread-safe. Needs no thread of its own: answers
/// that need the store are deferred and come from the store's threads. Ends after the front end and
/// before engine and store; what they answer later is dropped.
class Admin {
 public:
  explicit Admin(AdminContext context);
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  /// Behind the id paths on the main listener: Leaf's other paths, both decoders, and the refusal
  /// of every path that is nobody's. Handle never returns false.
  http1::Service& main_service() noexcept;
  /// The admin listener: API, probes, metrics, pages. Handle never returns false.
  http1::Service& admin_service() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leaf
