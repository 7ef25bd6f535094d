#pragma once

#include <memory>
#include <string_view>

#include "admin/admin.h"
#include "admin/metrics.h"
#include "admin/pages.h"
#include "codec/http1/service.h"

namespace leaf {

/// What the main listener serves behind the id paths; see Admin::main_service.
class MainService final : public http1::Service {
 public:
  /// All outlive the service.
  MainService(const AdminContext& context, Pages& pages, Metrics& metrics)
      : context_(context), pages_(pages), metrics_(metrics) {}

  bool Handle(http1::Exchange& exchange) override;

 private:
  http1::Response Api(const http1::Request& request) const;
  void Leaf(http1::Exchange& exchange);
  http1::Response NotFound(const http1::Request& request) const;
  http1::Response NotImplemented(const http1::Request& request) const;
  bool IsLeafPath(std::string_view path) const noexcept;

  const AdminContext& context_;
  Pages& pages_;
  Metrics& metrics_;
};

}  // namespace leaf
