#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "store/driver.h"
#include "store/options.h"

namespace leaf {

/// What the tests of all drivers have in common. `kSeconds` is their patience with a server.
template <Result<DriverFactory> (*MakeFactory)(const StoreOptions&), int kSeconds>
class DriverTest : public testing::Test {
 protected:
  static constexpr Duration kPatience = std::chrono::seconds(kSeconds);

  static Instant In(Duration after) { return SystemClock().Now() + after; }

  static std::unique_ptr<SegmentDriver> Make(const StoreOptions& options) {
    const Result<DriverFactory> factory = MakeFactory(options);
    EXPECT_TRUE(factory.ok()) << (factory.ok() ? "" : factory.error().message);
    return factory.ok() ? (*factory)() : nullptr;
  }
  static std::unique_ptr<SegmentDriver> Open(const StoreOptions& options) {
    auto driver = Make(options);
    const Result<StoreInfo> info = driver->Open(In(kPatience));
    EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.error().message);
    return driver;
  }
  /// The message of an Open that must fail.
  static std::string Refusal(const StoreOptions& options, Duration within = kPatience) {
    const auto driver = Make(options);
    const Result<StoreInfo> info = driver->Open(In(within));
    EXPECT_FALSE(info.ok());
    EXPECT_FALSE(driver->connected());
    if (info.ok()) return "";
    EXPECT_EQ(info.error().code, Code::kUnavailable);
    return info.error().message;
  }

  static Grant Reserve(SegmentDriver& driver, std::string_view tag, std::int64_t count,
                       Duration within = std::chrono::seconds(1)) {
    const Ask ask{7, tag, count, In(within)};
    Grant grant;
    driver.Reserve({&ask, 1}, {&grant, 1});
    return grant;
  }
  /// As BlockingStore does it: opens a session if there is none, and what was not sent because the
  /// session was lost goes to a new one, once.
  static Grant ReserveWithReopen(SegmentDriver& driver, std::string_view tag, std::int64_t count,
                                 Duration within = std::chrono::seconds(1)) {
    const Instant deadline = In(within);
    const Ask ask{7, tag, count, deadline};
    Grant grant;
    for (int i = 0; i < 2; ++i) {
      if (!driver.connected()) {
        const Result<StoreInfo> info = driver.Open(deadline);
        if (!info.ok()) {
          grant.outcome = Outcome::kRefused;
          grant.error = info.error();
          return grant;
        }
      }
      driver.Reserve({&ask, 1}, {&grant, 1});
      if (driver.connected() || grant.outcome != Outcome::kRefused) return grant;
    }
    return grant;
  }

  static bool Eventually(const std::function<bool()>& condition) {
    const Instant until = In(kPatience);
    while (SystemClock().Now() < until) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
};

/// Takes the one grant of a SegmentStore.
class OneGrant final : public GrantSink {
 public:
  void OnGrant(const Grant& grant) override { promise_.set_value(grant); }
  Grant Get() { return promise_.get_future().get(); }

 private:
  std::promise<Grant> promise_;
};

inline std::string Describe(const Grant& grant) {
  return "outcome " + std::to_string(static_cast<int>(grant.outcome)) + " [" +
         std::to_string(grant.range.first) + "," + std::to_string(grant.range.last) + ") " +
         std::string(CodeName(grant.error.code)) + ": " + grant.error.message;
}

}  // namespace leaf
