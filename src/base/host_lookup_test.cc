#include "base/host_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leaf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HostPorts, AreNamesAddressesAndPorts) {
  const auto all = ParseHostPorts("db1,10.0.0.2:6000,[::1]:7000,[fe80::1%eth0],db1", 5432);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_THAT(*all, ElementsAre(HostPort{"db1", 5432}, HostPort{"10.0.0.2", 6000},
                                HostPort{"::1", 7000}, HostPort{"fe80::1%eth0", 5432}))
      << "one that is named twice counts once";
  EXPECT_EQ(ToString((*all)[1]), "10.0.0.2:6000");
  EXPECT_EQ(ToString((*all)[2]), "[::1]:7000");
}

TEST(HostPorts, AnErrorNamesTheEntry) {
  for (const char* bad : {"", "a,", ":80", "a:0", "a:65536", "a:1x", "a:", "[::1", "[::1]80", "::1",
                          "a:-1", "[]:80", "a:1,,b", "http://a:1", "u@a:1", "a b:1", "b:1,a:x"}) {
    const auto all = ParseHostPorts(bad, 1);
    ASSERT_FALSE(all.ok()) << bad;
    EXPECT_EQ(all.error().code, Code::kInvalidArgument);
  }
  EXPECT_THAT(ParseHostPorts("ok,b:99999", 1).error().message, HasSubstr("'b:99999'"));
}

TEST(HostLookup, GivesNumericAddressesOrTheResolversWords) {
  const auto found = LookUpHost("127.0.0.1", 80);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, ElementsAre("127.0.0.1"));
  const auto lost = LookUpHost("no-such-host.invalid", 80);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, Code::kUnavailable);
  EXPECT_THAT(lost.error().message, HasSubstr("no-such-host.invalid"));
}

}  // namespace
}  // namespace leaf
