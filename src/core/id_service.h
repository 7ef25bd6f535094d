#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "core/segment/engine.h"
#include "core/snowflake/snowflake_engine.h"
#include "core/tag_name.h"
#include "leaf/result.h"

namespace leaf {

/// Bounds of one request, the same on every wire.
struct IdLimits {
  std::int64_t max_list = 10'000;      ///< ids as a list
  std::int64_t max_count = 1'000'000;  ///< ids as ranges
};

/// The use cases behind every wire: checks the mode, the tag and the count, then asks the engine.
/// Thread-safe; `reader` belongs to the calling thread.
class IdService {
 public:
  /// engine == nullptr: segment mode is disabled. snowflake == nullptr: snowflake mode answers
  /// `no_snowflake`.
  IdService(Engine* engine, IdLimits limits, SnowflakeEngine* snowflake = nullptr,
            Error no_snowflake = {Code::kDisabled, "snowflake mode is disabled"})
      : engine_(engine),
        limits_(limits),
        snowflake_(snowflake),
        no_snowflake_(std::move(no_snowflake)) {}

  bool segment_enabled() const noexcept { return engine_ != nullptr; }
  Engine* engine() const noexcept { return engine_; }
  const IdLimits& limits() const noexcept { return limits_; }
  bool snowflake_enabled() const noexcept {
    return no_snowflake_.code != Code::kDisabled || snowflake_ != nullptr;
  }
  SnowflakeEngine* snowflake() const noexcept { return snowflake_; }
  const Error& no_snowflake() const noexcept { return no_snowflake_; }

  /// True: `out` is final. False: `waiter` is parked. waiter.count says how many ids; it must be in
  /// [1, max]. Tags are 1 to 128 bytes; others than [A-Za-z0-9._:-] are served only if the table
  /// has them. Hot when the tag is known and holds the ids.
  bool NextIds(Reader& reader, std::string_view tag, Waiter& waiter, Instant now,
               Result<Ranges>& out);

  /// The same for snowflake ids; waiter.count must be in [1, snowflake's max_count].
  bool MintIds(Waiter& waiter, Instant now, Result<Minted>& out);

 private:
  Engine* engine_;
  IdLimits limits_;
  SnowflakeEngine* snowflake_;
  Error no_snowflake_;
};

}  // namespace leaf
