#include "base/iso_time.h"

#include <gtest/gtest.h>

namespace leaf {
namespace {

TEST(IsoTimeTest, IsUtcWithMilliseconds) {
  EXPECT_EQ(IsoTime(1567733700834), "2019-09-06T01:35:00.834Z");
  EXPECT_EQ(IsoTime(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(IsoTime(3487858230208), "2080-07-10T17:30:30.208Z");
  EXPECT_EQ(IsoTime(INT64_MAX), std::to_string(INT64_MAX));
}

}  // namespace
}  // namespace leaf
