#pragma once

#include <string>

#include "admin/admin.h"
#include "codec/http1/message.h"

namespace leaf {

/// Whether one mode can hand out ids now.
struct ModeHealth {
  enum class State { kOk, kUnavailable, kDisabled };
  State state = State::kDisabled;
  std::string reason;  ///< why not ok, or what is to be known all the same
};

struct Health {
  bool draining = false;
  ModeHealth segment, snowflake;

  /// Not draining, and an enabled mode can serve.
  bool ready() const noexcept;
};

/// Segment mode can serve while its store is up and durable enough, or while a tag in use holds
/// ids.
Health HealthOf(const AdminContext& context);

/// The modes as a JSON object: {"segment":{"state","reason"},"snowflake":{...}}.
std::string ModesJson(const Health& health);

/// /readyz and /healthz: 200 or 503; `?mode=` judges one mode.
http1::Response Readyz(const AdminContext& context, const http1::Request& request);
/// /livez: always 200.
http1::Response Livez();
/// GET /api/v1/status.
http1::Response StatusAnswer(const AdminContext& context);

}  // namespace leaf
