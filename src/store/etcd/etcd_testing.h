#pragma once

#include <string_view>

#include "store/driver_testing.h"
#include "store/etcd/etcd_driver.h"
#include "store/etcd/etcd_value.h"
#include "tests/harness/etcd.h"

namespace leaf {

/// What the tests of this store have in common.
class EtcdTest : public DriverTest<MakeEtcdFactory, 20> {
 protected:
  static constexpr const char* kKeys = "/leafd/leaf_alloc/";

  static Grant Reserve(SegmentDriver& driver, std::string_view tag, std::int64_t count,
                       Duration within = kPatience) {
    return DriverTest::Reserve(driver, tag, count, within);
  }
};

}  // namespace leaf
