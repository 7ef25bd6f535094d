#include <vector>

#include "contract/store_contract.h"
#include "harness/etcd.h"
#include "harness/tcp_relay.h"
#include "store/etcd/etcd_driver.h"
#include "store/etcd/etcd_value.h"

namespace leaf::contract {
namespace {

constexpr const char* kKeys = "/leafd/leaf_alloc/";

/// One member for all tests of the program; each begins without keys.
harness::Etcd& Server() {
  static harness::Etcd server;
  return server;
}

class OneMember final : public StoreUnderTest {
 public:
  OneMember() : way_(Server().port()) {
    Server().DeleteAll("/leafd/");
    StoreOptions options = Server().options();
    options.servers = "127.0.0.1:" + std::to_string(way_.port());
    options.timeout = traits().timeout;
    for (DriverFactory& factory : factories_) factory = *MakeEtcdFactory(options);
  }
  ~OneMember() override { Server().SetAlarmNoSpace(false); }

  Traits traits() const override {
    Traits traits;
    traits.keeps_description = traits.keeps_time = false;
    return traits;
  }
  /// Each node is a process of its own, with its own memory.
  std::unique_ptr<SegmentDriver> MakeDriver(int node) override {
    return factories_[static_cast<std::size_t>(node)]();
  }

  void Put(std::string_view tag, const RawRow& row) override {
    Server().Put(kKeys + std::string(tag), EtcdValue{row.max_id, row.step}.Text());
  }
  void PutOdd(std::string_view tag) override {
    Server().Put(kKeys + std::string(tag), R"({"max_id":"5","step":null})");
  }
  std::optional<RawRow> Get(std::string_view tag) override {
    const std::string key = kKeys + std::string(tag);
    const auto text = Server().Get(key);
    if (!text) return std::nullopt;
    const auto value = ParseEtcdValue(key, *text);
    EXPECT_TRUE(value.ok()) << *text;
    return RawRow{value->max_id, value->step, ""};
  }

  void Restart() override {
    Server().Kill9();
    Server().Start();
  }
  void SetReadOnly(bool on) override { Server().SetAlarmNoSpace(on); }

  /// etcd locks no row; what a reservation can wait for is the way to the member.
  std::shared_ptr<void> LockRow(std::string_view) override { return way_.Hold(); }

 private:
  harness::TcpRelay way_;
  DriverFactory factories_[2];
};

INSTANTIATE_TEST_SUITE_P(Etcd, StoreContract,
                         testing::Values(Param{"etcd",
                                               [] { return std::make_unique<OneMember>(); }}));

}  // namespace
}  // namespace leaf::contract
