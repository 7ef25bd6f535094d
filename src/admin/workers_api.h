#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/callbacks.h"
#include "codec/http1/service.h"

namespace leaf {

/// This server's right as JSON; for /api/v1/status.
std::string SnowflakeJson(const SnowflakeView& view);

/// The routes below /api/v1/workers. Thread-safe.
class WorkersApi {
 public:
  /// `context` outlives the API.
  WorkersApi(const AdminContext& context, std::shared_ptr<CallbackGate> gate)
      : context_(context), gate_(std::move(gate)) {}

  /// GET /api/v1/workers: who holds which worker until when.
  void List(http1::Exchange& exchange);
  /// POST /api/v1/workers/{worker}/retire; the method was checked.
  void Retire(http1::Exchange& exchange, const std::string& worker);

 private:
  /// False, and answered, if snowflake mode keeps no workers here.
  bool Enabled(http1::Exchange& exchange) const;
  http1::Response ListAnswer(const std::vector<WorkerRecord>& records) const;

  const AdminContext& context_;
  std::shared_ptr<CallbackGate> gate_;
};

}  // namespace leaf
