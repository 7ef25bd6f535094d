#include "rpc/grpc.h"

#include <gmock/gmock.h>

namespace leaf::rpc {
namespace {

using testing::HasSubstr;

TEST(GrpcTest, ReadsTheStatus) {
  EXPECT_EQ(ParseGrpcStatus("0"), GrpcStatus::kOk);
  EXPECT_EQ(ParseGrpcStatus("14"), GrpcStatus::kUnavailable);
  EXPECT_EQ(ParseGrpcStatus("16"), GrpcStatus::kUnauthenticated);
  EXPECT_EQ(ParseGrpcStatus("17"), GrpcStatus::kUnknown);
  for (const char* text : {"", " 0", "0 ", "-1", "x", "99999999999999999999"})
    EXPECT_EQ(ParseGrpcStatus(text), std::nullopt) << text;
}

TEST(GrpcTest, DecodesMessages) {
  EXPECT_EQ(DecodeGrpcMessage("etcdserver: no leader"), "etcdserver: no leader");
  EXPECT_EQ(DecodeGrpcMessage("a%20b%C3%a9%25"), "a b\xc3\xa9%");
  EXPECT_EQ(DecodeGrpcMessage("100%"), "100%");
  EXPECT_EQ(DecodeGrpcMessage("%4"), "%4");
  EXPECT_EQ(DecodeGrpcMessage("%zz%-1"), "%zz%-1");
  EXPECT_EQ(DecodeGrpcMessage("%00"), std::string(1, '\0'));
}

TEST(GrpcTest, FramesAMessageAndFindsWhatIsWrongWithOne) {
  const std::string framed = FrameGrpcMessage("hello");
  EXPECT_EQ(framed, std::string("\0\0\0\0\5hello", 10));
  EXPECT_EQ(GrpcFrameFault(framed), "");
  EXPECT_EQ(GrpcFrameFault(FrameGrpcMessage("")), "");
  EXPECT_EQ(GrpcFrameFault(FrameGrpcMessage(std::string(70000, 'x'))), "");
  EXPECT_THAT(GrpcFrameFault(""), HasSubstr("no message"));
  EXPECT_THAT(GrpcFrameFault(framed.substr(0, 4)), HasSubstr("cut off"));
  EXPECT_THAT(GrpcFrameFault(framed.substr(0, 9)), HasSubstr("cut off"));
  EXPECT_THAT(GrpcFrameFault(framed + framed), HasSubstr("more than one"));
  EXPECT_THAT(GrpcFrameFault("\1" + framed.substr(1)), HasSubstr("compressed"));
}

}  // namespace
}  // namespace leaf::rpc
