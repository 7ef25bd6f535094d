#include <map>
#include <thread>

#include "contract/registry_contract.h"
#include "harness/zookeeper.h"
#include "registry/zookeeper/zookeeper_registry.h"

namespace leaf::contract {
namespace {

/// Repeats a claim while a record is watched, as the engine does: in Leaf's layout it takes longer
/// than one call.
class Patient final : public RegistryDriver {
 public:
  explicit Patient(std::unique_ptr<RegistryDriver> driver) : driver_(std::move(driver)) {}

  Result<void> Open(Instant deadline, std::vector<std::string>& warnings) override {
    return driver_->Open(deadline, warnings);
  }
  bool connected() const noexcept override { return driver_->connected(); }
  void Close() noexcept override { driver_->Close(); }
  void Interrupt() noexcept override { driver_->Interrupt(); }
  Result<WorkerRight> Claim(const ClaimAsk& first) override {
    ClaimAsk ask = first;
    for (;;) {
      Result<WorkerRight> right = driver_->Claim(ask);
      if (right.ok() || SystemClock().Now() >= ask.deadline || !Waits(right.error().message))
        return right;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ask.now_ms = first.now_ms + (SystemClock().WallMillis() - started_ms_);
    }
  }
  Result<WorkerRight> Extend(const WorkerRight& right, std::int64_t limit_ms, std::int64_t lease_ms,
                             Instant deadline) override {
    return driver_->Extend(right, limit_ms, lease_ms, deadline);
  }
  Result<WorkerRight> Lower(const WorkerRight& right, std::int64_t limit_ms,
                            Instant deadline) override {
    return driver_->Lower(right, limit_ms, deadline);
  }
  Result<std::vector<WorkerRecord>> List(Instant deadline) override {
    return driver_->List(deadline);
  }
  Result<WorkerRecord> Retire(std::int64_t worker, Instant deadline) override {
    return driver_->Retire(worker, deadline);
  }

 private:
  static bool Waits(const std::string& why) {
    return why.find("is watched") != std::string::npos ||
           why.find("the worker rests") != std::string::npos;
  }
  const std::unique_ptr<RegistryDriver> driver_;
  const std::int64_t started_ms_ = SystemClock().WallMillis();
};

harness::ZooKeeper& Server() {
  static harness::ZooKeeper server;
  return server;
}

class ZooKeeperUnderTest final : public RegistryUnderTest {
 public:
  explicit ZooKeeperUnderTest(bool leaf_layout) : leaf_layout_(leaf_layout) {
    static int number = 0;
    cluster_ = "contract-" + std::to_string(number++);
  }

  Traits traits() const override {
    Traits traits;
    traits.has_clock = true;
    traits.bound = leaf_layout_;
    traits.restarts = true;
    traits.lists = !leaf_layout_;
    return traits;
  }
  std::unique_ptr<RegistryDriver> MakeSession(int server) override {
    RegistryFactory& factory = factories_[server];
    if (!factory) {
      RegistryOptions options;
      options.kind = "zookeeper";
      options.cluster = cluster_;
      options.identity = "10.0.0." + std::to_string(server + 1) + ":8080";
      options.servers = Server().address();
      options.leaf_layout = leaf_layout_;
      factory = MakeZooKeeperRegistry(options).value();
    }
    return std::make_unique<Patient>(factory());
  }
  void Restart() override {
    Server().Kill9();
    Server().Start();
  }

 private:
  const bool leaf_layout_;
  std::string cluster_;
  std::map<int, RegistryFactory> factories_;
};

INSTANTIATE_TEST_SUITE_P(
    ZooKeeper, RegistryContract,
    testing::Values(
        RegistryParam{"leaf_layout", [] { return std::make_unique<ZooKeeperUnderTest>(true); }},
        RegistryParam{"native", [] { return std::make_unique<ZooKeeperUnderTest>(false); }}));

}  // namespace
}  // namespace leaf::contract
