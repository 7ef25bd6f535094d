#include "rpc/grpc_channel.h"

#include <gmock/gmock.h>

#include "rpc/http2_server_testing.h"

namespace leaf::rpc {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using Kind = GrpcChannel::Verdict::Kind;

constexpr Duration kPatience = std::chrono::seconds(20);

Instant In(Duration after) { return SystemClock().Now() + after; }

Http2Server::Options Echo() {
  Http2Server::Options options;
  options.script = [](const ServedRequest& request) {
    return ServedAnswer::Ok(request.body.substr(kGrpcFrame));
  };
  return options;
}

HostPort At(const Http2Server& server) { return {"127.0.0.1", server.port()}; }

GrpcChannel::Verdict Usable(Instant) { return {}; }

TEST(GrpcChannelTest, StaysWithOneServerUntilItLeaves) {
  Http2Server a(Echo()), b(Echo());
  GrpcChannel channel({.endpoints = {At(a), At(b)}}, SystemClock());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(channel.Open(In(kPatience), &Usable).ok());
    EXPECT_EQ(channel.endpoint(), At(a));
    channel.Close();
  }
  channel.Leave();
  ASSERT_TRUE(channel.Open(In(kPatience), &Usable).ok());
  EXPECT_EQ(channel.endpoint(), At(b));
  channel.Leave();
  ASSERT_TRUE(channel.Open(In(kPatience), &Usable).ok());
  EXPECT_EQ(channel.endpoint(), At(a)) << "after the last comes the first";
}

TEST(GrpcChannelTest, GoesOnWhereNobodyIsAndWhereNobodySpeaks) {
  auto gone = std::make_unique<Http2Server>(Echo());
  const HostPort nobody = At(*gone);
  gone.reset();
  Http2Server::Options options = Echo();
  options.silent = true;
  Http2Server silent(std::move(options)), good(Echo());
  GrpcChannel channel({.endpoints = {nobody, At(silent), At(good)}}, SystemClock());
  const Result<void> opened = channel.Open(In(milliseconds(900)), &Usable);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(channel.endpoint(), At(good)) << "the silent one got its share of the time only";
}

TEST(GrpcChannelTest, GoesOnFromAServerThatIsNotUsable) {
  Http2Server a(Echo()), b(Echo());
  GrpcChannel channel({.endpoints = {At(a), At(b)}}, SystemClock());
  const auto examine = [&](Instant) -> GrpcChannel::Verdict {
    if (channel.endpoint() == At(b)) return {};
    return {Kind::kNext, {Code::kUnavailable, "has no leader"}};
  };
  ASSERT_TRUE(channel.Open(In(kPatience), examine).ok());
  EXPECT_EQ(channel.endpoint(), At(b));
}

TEST(GrpcChannelTest, SaysWhatEachServerLacked) {
  Http2Server a(Echo()), b(Echo());
  GrpcChannel channel({.endpoints = {At(a), At(b)}}, SystemClock());
  const auto examine = [&](Instant) -> GrpcChannel::Verdict {
    return {Kind::kNext, {Code::kUnavailable, channel.endpoint() == At(a) ? "is old" : "is new"}};
  };
  const Result<void> opened = channel.Open(In(kPatience), examine);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kUnavailable);
  EXPECT_THAT(opened.error().message, HasSubstr(ToString(At(a)) + ": is old"));
  EXPECT_THAT(opened.error().message, HasSubstr(ToString(At(b)) + ": is new"));
  EXPECT_FALSE(channel.connected());
}

TEST(GrpcChannelTest, StopsWhereTheOthersAreNoBetter) {
  Http2Server a(Echo()), b(Echo());
  GrpcChannel channel({.endpoints = {At(a), At(b)}}, SystemClock());
  const auto examine = [](Instant) -> GrpcChannel::Verdict {
    return {Kind::kStop, {Code::kUnavailable, "wrong password"}};
  };
  const Result<void> opened = channel.Open(In(kPatience), examine);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message, "wrong password");
  EXPECT_EQ(b.accepted(), 0);
  EXPECT_FALSE(channel.connected());
}

}  // namespace
}  // namespace leaf::rpc
