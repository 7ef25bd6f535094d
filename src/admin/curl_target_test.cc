#include "admin/curl_target.h"

#include <gtest/gtest.h>

namespace leaf {
namespace {

TEST(CurlTargetTest, IsAnAddressWhoseHostIsAccepted) {
  EXPECT_EQ(CurlTarget("127.0.0.1:8081"), "http://127.0.0.1:8081");
  EXPECT_EQ(CurlTarget("localhost:8081"), "http://localhost:8081");
  EXPECT_EQ(CurlTarget("[::1]:8081"), "http://[::1]:8081");
  EXPECT_EQ(CurlTarget("127.0.0.2:8081"), "-H 'Host: localhost' http://127.0.0.2:8081");
}

TEST(CurlTargetTest, ReachesAListenerOnEveryAddressByLoopback) {
  EXPECT_EQ(CurlTarget("0.0.0.0:9000"), "http://127.0.0.1:9000");
  EXPECT_EQ(CurlTarget("[::]:9000"), "http://[::1]:9000");
}

TEST(CurlTargetTest, ReachesAUnixSocket) {
  EXPECT_EQ(CurlTarget("unix:/run/leafd/admin"),
            "--unix-socket '/run/leafd/admin' http://localhost");
}

TEST(CurlTargetTest, IsEmptyWithoutAListener) { EXPECT_EQ(CurlTarget(""), ""); }

}  // namespace
}  // namespace leaf
