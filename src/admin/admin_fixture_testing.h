#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "admin/admin.h"
#include "tests/fakes/engine_rig.h"
#include "tests/fakes/fake_exchange.h"

namespace leaf {

/// An Admin over the real engine and a table in memory.
class AdminTest : public testing::Test {
 protected:
  using Method = http1::Method;
  using Ask = fakes::Ask;

  AdminTest() {
    rig_.store.Put("order", 1002, 1000);
    rig_.store.Put("user", 1, 50);
    rig_.Advance(std::chrono::seconds(120));  // a pass over the table
    reader_ = rig_.engine.AddReader();
    reader_->Online();
    rig_.clock.wall_ms = 1796071566670;
    Build();
  }

  AdminContext Context() {
    AdminContext context{.ids = *ids_, .store = &rig_.store, .clock = rig_.clock};
    context.version = "1.2.3";
    context.started_ms = 1567733700834;
    context.cluster = "orders";
    context.pages_on_main = true;
    context.reject_encoded_slash = true;
    context.draining = [this] { return draining_; };
    context.stats = [this] { return std::vector<const RequestStats*>{&stats_}; };
    return context;
  }
  void Build() { Build(Context()); }
  void Build(AdminContext context) {
    admin_.reset();
    admin_ = std::make_unique<Admin>(std::move(context));
  }
  /// Segment mode off.
  void Disable() {
    admin_.reset();
    ids_ = std::make_unique<IdService>(nullptr, IdLimits{}, nullptr, no_snowflake_);
    AdminContext context = Context();
    context.store = nullptr;
    Build(std::move(context));
  }

  http1::Response Answer(http1::Service& service, Ask ask) {
    fakes::FakeExchange exchange(std::move(ask));
    EXPECT_TRUE(service.Handle(exchange));
    const auto landing = exchange.landing();
    if (exchange.deferred()) rig_.Settle();
    EXPECT_TRUE(landing->response.has_value());
    return landing->response.value_or(http1::Response{});
  }
  http1::Response Main(Ask ask) { return Answer(admin_->main_service(), std::move(ask)); }
  http1::Response Main(std::string target) { return Main(Ask{.target = std::move(target)}); }
  http1::Response AdminGet(std::string target) {
    return Answer(admin_->admin_service(), Ask{.target = std::move(target)});
  }
  http1::Response AdminAsk(Ask ask) { return Answer(admin_->admin_service(), std::move(ask)); }
  /// A change as leafctl or curl sends it.
  http1::Response Change(Method method, std::string target, std::string body = {}) {
    return AdminAsk({.method = method,
                     .target = std::move(target),
                     .body = std::move(body),
                     .admin_header = true});
  }

  /// Takes ids of a tag, waiting for them; the first.
  std::int64_t Take(std::string_view tag, std::int64_t count = 1) {
    struct Taker final : Waiter {
      explicit Taker(Executor& executor) : Waiter(executor) {}
      void Run() override { done = true; }
      bool done = false;
    } taker(rig_.home);
    taker.count = count;
    Result<Ranges> out = Ranges{};
    if (!ids_->NextIds(*reader_, tag, taker, rig_.clock.now, out)) {
      for (int i = 0; i < 100 && !taker.done; ++i) rig_.Advance(std::chrono::milliseconds(100));
      EXPECT_TRUE(taker.done);
      out = taker.result;
    }
    EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
    return out.ok() ? out->at[0].first : -1;
  }

  fakes::EngineRig rig_;
  const Error no_snowflake_{Code::kDisabled, "switched off"};
  std::unique_ptr<IdService> ids_ =
      std::make_unique<IdService>(&rig_.engine, IdLimits{}, nullptr, no_snowflake_);
  std::unique_ptr<Reader> reader_;
  RequestStats stats_;
  bool draining_ = false;
  std::unique_ptr<Admin> admin_;
};

}  // namespace leaf
