#include "admin/admin.h"

#include <utility>

#include "admin/admin_service.h"
#include "admin/callbacks.h"
#include "admin/main_service.h"

namespace leaf {

class Admin::Impl {
 public:
  explicit Impl(AdminContext context) : context_(std::move(context)) {}
  ~Impl() { gate_->Close(); }

  MainService& main_service() noexcept { return main_; }
  AdminService& admin_service() noexcept { return admin_; }

 private:
  const AdminContext context_;
  const std::shared_ptr<CallbackGate> gate_ = std::make_shared<CallbackGate>();
  Metrics metrics_{context_};
  Pages pages_{context_, gate_};
  TagsApi tags_{context_, gate_};
  WorkersApi workers_{context_, gate_};
  MainService main_{context_, pages_, metrics_};
  AdminService admin_{context_, pages_, metrics_, tags_, workers_};
};

Admin::Admin(AdminContext context) : impl_(std::make_unique<Impl>(std::move(context))) {}
Admin::~Admin() = default;

http1::Service& Admin::main_service() noexcept { return impl_->main_service(); }
http1::Service& Admin::admin_service() noexcept { return impl_->admin_service(); }

}  // namespace leaf
