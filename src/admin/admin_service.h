#pragma once

#include <optional>
#include <string>
#include <vector>

#include "admin/admin.h"
#include "admin/metrics.h"
#include "admin/pages.h"
#include "admin/tags_api.h"
#include "admin/workers_api.h"
#include "codec/http1/service.h"

namespace leaf {

/// Why a request may not change anything: it does when it comes from this host, under a Host of
/// this host, with "X-Leafd-Admin: 1". A page in a browser can neither set that field nor, by a
/// name of its own that leads here, such a Host. nullopt: it may.
std::optional<Error> RefuseChange(const http1::Request& request, bool peer_is_local);

/// What the admin listener serves; see Admin::admin_service.
class AdminService final : public http1::Service {
 public:
  /// All outlive the service.
  AdminService(const AdminContext& context, Pages& pages, Metrics& metrics, TagsApi& tags,
               WorkersApi& workers)
      : context_(context), pages_(pages), metrics_(metrics), tags_(tags), workers_(workers) {}

  bool Handle(http1::Exchange& exchange) override;

 private:
  void Api(http1::Exchange& exchange);
  void Workers(http1::Exchange& exchange);
  void OneTag(http1::Exchange& exchange, const std::string& tag);
  void TagAction(http1::Exchange& exchange, const std::string& tag, const std::string& action);
  void Read(http1::Exchange& exchange);

  const AdminContext& context_;
  Pages& pages_;
  Metrics& metrics_;
  TagsApi& tags_;
  WorkersApi& workers_;
};

}  // namespace leaf
