#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/snowflake/layout.h"
#include "registry/zookeeper/zookeeper_registry.h"
#include "tests/harness/zookeeper.h"

namespace leaf {

inline constexpr std::int64_t kLeaseMs = 600'000;
inline constexpr auto kPatience = std::chrono::seconds(30);

/// One server for all tests of the program; each uses a cluster of its own.
inline harness::ZooKeeper& TestServer() {
  static harness::ZooKeeper server;
  return server;
}

inline Instant In(Duration span) { return SystemClock().Now() + span; }

/// False: it did not come true in time.
inline bool Eventually(const std::function<bool()>& condition, Duration patience = kPatience) {
  const Instant until = In(patience);
  while (!condition()) {
    if (SystemClock().Now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

inline std::string Owner(int number) {
  const std::string digits = std::to_string(number);
  return std::string(32 - digits.size(), '0') + digits;
}

inline ClaimAsk AskOf(const std::string& identity, int owner = 1) {
  ClaimAsk ask;
  ask.owner = Owner(owner);
  ask.identity = identity;
  ask.workers = kLeafLayout.workers();
  ask.layout = LayoutText(kLeafLayout);
  ask.now_ms = SystemClock().WallMillis();
  ask.lease_ms = kLeaseMs;
  ask.deadline = In(kPatience);
  return ask;
}

class ZooKeeperTest : public testing::Test {
 protected:
  static constexpr const char* kSelf = "192.0.2.7:8080";

  ZooKeeperTest() {
    static int number = 0;
    cluster_ = "cluster-" + std::to_string(number++);  // with a '-', on which Leaf stumbles
    options_.kind = "zookeeper";
    options_.cluster = cluster_;
    options_.identity = kSelf;
    options_.servers = TestServer().address();
  }

  std::string base() const { return "/snowflake/" + cluster_; }
  std::string forever() const { return base() + "/forever"; }
  harness::ZkClient& client() {
    if (!client_) client_ = TestServer().Connect();
    return *client_;
  }

  static RegistryFactory FactoryOf(const RegistryOptions& options) {
    auto factory = MakeZooKeeperRegistry(options);
    EXPECT_TRUE(factory.ok()) << (factory.ok() ? "" : factory.error().message);
    return std::move(factory).value();
  }
  /// A driver of a process of its own.
  std::unique_ptr<RegistryDriver> NewDriver() const { return FactoryOf(options_)(); }
  std::unique_ptr<RegistryDriver> NewDriver(const std::string& identity) const {
    RegistryOptions options = options_;
    options.identity = identity;
    return FactoryOf(options)();
  }

  RegistryOptions options_;

 private:
  std::string cluster_;
  std::unique_ptr<harness::ZkClient> client_;
};

/// The value, or a failed test.
template <typename T>
T Must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? std::move(result).value() : T{};
}

/// The error, or a failed test.
template <typename T>
Error MustFail(const Result<T>& result) {
  EXPECT_FALSE(result.ok());
  return result.ok() ? Error{} : result.error();
}

}  // namespace leaf
