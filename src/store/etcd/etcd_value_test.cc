#include "store/etcd/etcd_value.h"

#include <gmock/gmock.h>

#include "store/etcd/etcd_errors.h"
#include "store/etcd/etcd_settings.h"

namespace leaf {
namespace {

using rpc::GrpcStatus;
using testing::HasSubstr;
using Mode = rpc::TlsSettings::Mode;

TEST(EtcdValueTest, ReadsWhatItWrites) {
  for (const EtcdValue value :
       {EtcdValue{1001, 1000}, EtcdValue{0, 0}, EtcdValue{-5, -1},
        EtcdValue{9223372036854775807, 1}, EtcdValue{-9223372036854775807 - 1, 2147483647}}) {
    const auto read = ParseEtcdValue("/k", value.Text());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, value);
  }
  EXPECT_EQ((EtcdValue{1001, 1000}).Text(), R"({"max_id":"1001","step":1000})");
}

TEST(EtcdValueTest, NamesKeyAndValueOfEverythingElse) {
  for (const std::string& value : {
           std::string("abc"),
           std::string(),
           std::string("1001"),
           std::string("9223372036854775807"),
           std::string("{}"),
           std::string("null"),
           std::string(R"({"max_id":"1001"})"),
           std::string(R"({"max_id":1001,"step":1000})"),
           std::string(R"({"max_id":"1001","step":"1000"})"),
           std::string(R"({"step":1000,"max_id":"1001"})"),
           std::string(R"({"max_id":"1001","step":1000,"x":1})"),
           std::string(R"({"max_id":"1001","step":1000}x)"),
           std::string(R"({"max_id":"1001", "step":1000})"),
           std::string(R"( {"max_id":"1001","step":1000})"),
           std::string("{\"max_id\":\"1001\",\"step\":1000}\n"),
           std::string(R"({"max_id":" 1001","step":1000})"),
           std::string(R"({"max_id":"01001","step":1000})"),
           std::string(R"({"max_id":"+1001","step":1000})"),
           std::string(R"({"max_id":"-0","step":1000})"),
           std::string(R"({"max_id":"1e3","step":1000})"),
           std::string(R"({"max_id":"1001","step":1000.0})"),
           std::string(R"({"max_id":"1001","step":null})"),
           std::string(R"({"max_id":"","step":1000})"),
           std::string(R"({"max_id":"9223372036854775808","step":1000})"),
           std::string(R"({"max_id":"12345678901234567890","step":1000})"),
           std::string("{\"max_id\":\"1001\",\"step\":1000", 28),
           std::string("\x00\xff\xfe", 3),
       }) {
    SCOPED_TRACE(value);
    const auto read = ParseEtcdValue("/leafd/leaf_alloc/order", value);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, Code::kUnavailable);
    EXPECT_THAT(read.error().message,
                HasSubstr("'/leafd/leaf_alloc/order' holds " + ShownBytes(value)));
    EXPECT_THAT(read.error().message, HasSubstr(R"({"max_id":"1001","step":1000})"));
  }
}

TEST(EtcdValueTest, ShowsBytesOnOneLine) {
  EXPECT_EQ(ShownBytes("abc"), "'abc'");
  EXPECT_EQ(ShownBytes(std::string("\0\n\xff", 3)), R"('\x00\x0a\xff')");
  EXPECT_EQ(ShownBytes(std::string(500, 'x')), "'" + std::string(200, 'x') + "...'");
}

TEST(EtcdErrorsTest, OnlyWhatCannotHaveHappenedIsDefinite) {
  struct Case {
    GrpcStatus status;
    const char* message;
    bool definite, leave, token;
  };
  const Case all[] = {
      {GrpcStatus::kUnavailable, "etcdserver: no leader", true, true, false},
      {GrpcStatus::kUnavailable, "etcdserver: rpc not supported for learner", true, true, false},
      {GrpcStatus::kUnavailable, "etcdserver: request timed out", false, true, false},
      {GrpcStatus::kUnavailable,
       "etcdserver: request timed out, possibly due to previous leader failure", false, true,
       false},
      {GrpcStatus::kUnavailable, "etcdserver: request timed out, possibly due to connection lost",
       false, true, false},
      {GrpcStatus::kUnavailable, "etcdserver: leader changed", false, true, false},
      {GrpcStatus::kUnavailable, "etcdserver: server stopped", false, true, false},
      {GrpcStatus::kUnavailable, "transport is closing", false, true, false},
      {GrpcStatus::kResourceExhausted, "etcdserver: too many requests", true, false, false},
      {GrpcStatus::kResourceExhausted, "etcdserver: mvcc: database space exceeded", false, true,
       false},
      {GrpcStatus::kResourceExhausted, "grpc: received message larger than max", false, false,
       false},
      {GrpcStatus::kUnauthenticated, "etcdserver: invalid auth token", true, false, true},
      {GrpcStatus::kInvalidArgument, "etcdserver: revision of auth store is old", true, false,
       true},
      {GrpcStatus::kInvalidArgument, "etcdserver: user name is empty", true, false, false},
      {GrpcStatus::kPermissionDenied, "etcdserver: permission denied", true, false, false},
      {GrpcStatus::kDataLoss, "etcdserver: corrupt cluster", true, true, false},
      {GrpcStatus::kDataLoss, "something else", false, true, false},
      {GrpcStatus::kUnknown, "raft proposal dropped", true, true, false},
      {GrpcStatus::kUnknown, "context canceled", false, true, false},
      {GrpcStatus::kDeadlineExceeded, "context deadline exceeded", false, true, false},
      {GrpcStatus::kCancelled, "context canceled", false, true, false},
      {GrpcStatus::kInternal, "", false, true, false},
      {GrpcStatus::kAborted, "", false, true, false},
  };
  for (const Case& c : all) {
    SCOPED_TRACE(c.message);
    const EtcdMeaning meaning = MeaningOf(c.status, c.message);
    EXPECT_EQ(meaning.definite, c.definite);
    EXPECT_EQ(meaning.leave, c.leave);
    EXPECT_EQ(meaning.token, c.token);
  }
}

EtcdTarget Target() {
  EtcdTarget target;
  target.servers = "a:1,[::1]";
  target.prefix = "/leafd";
  return target;
}

TEST(EtcdSettingsTest, ReadsATarget) {
  const auto settings = ParseEtcdSettings(Target());
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->endpoints[0], (HostPort{"a", 1}));
  EXPECT_EQ(settings->endpoints[1], (HostPort{"::1", 2379}));
  EXPECT_EQ(settings->prefix, "/leafd");
  EXPECT_EQ(settings->tls.mode, Mode::kDisabled);
}

TEST(EtcdSettingsTest, AnAuthorityOrACertificateMeansToVerify) {
  EtcdTarget target = Target();
  target.parameters = {{"ssl-ca", "/ca"}};
  EXPECT_EQ(ParseEtcdSettings(target)->tls.mode, Mode::kVerifyIdentity);
  target.parameters = {{"ssl-cert", "/c"}, {"ssl-key", "/k"}};
  EXPECT_EQ(ParseEtcdSettings(target)->tls.mode, Mode::kVerifyIdentity);
  target.parameters = {{"ssl-mode", "verify-ca"}, {"ssl-ca", "/ca"}};
  EXPECT_EQ(ParseEtcdSettings(target)->tls.mode, Mode::kVerifyCa);
  target.parameters = {{"ssl-mode", "required"}};
  EXPECT_EQ(ParseEtcdSettings(target)->tls.mode, Mode::kRequired);
}

TEST(EtcdSettingsTest, NamesWhatCannotBeUsed) {
  const auto refusal = [](const std::function<void(EtcdTarget&)>& change) {
    EtcdTarget target = Target();
    change(target);
    const auto settings = ParseEtcdSettings(target);
    EXPECT_FALSE(settings.ok());
    if (settings.ok()) return std::string();
    EXPECT_EQ(settings.error().code, Code::kInvalidArgument);
    return settings.error().message;
  };
  const auto with = [&](std::map<std::string, std::string> parameters) {
    return refusal([&](EtcdTarget& t) { t.parameters = parameters; });
  };
  EXPECT_THAT(refusal([](EtcdTarget& t) { t.servers = "a:x"; }), HasSubstr("'a:x'"));
  EXPECT_THAT(refusal([](EtcdTarget& t) { t.prefix = "/a/"; }), HasSubstr("'/a/'"));
  EXPECT_THAT(refusal([](EtcdTarget& t) { t.prefix = "/a\n"; }), HasSubstr("control"));
  EXPECT_THAT(refusal([](EtcdTarget& t) { t.password = "p"; }), HasSubstr("without a user"));
  EXPECT_THAT(with({{"ssl-mode", "preferred"}}), HasSubstr("'preferred'"));
  EXPECT_THAT(with({{"ssl-cert", "/c"}}), HasSubstr("belong together"));
  EXPECT_THAT(with({{"ssl-mode", "disabled"}, {"ssl-ca", "/c"}}), HasSubstr("disabled"));
  EXPECT_THAT(with({{"ssl-mode", "required"}, {"ssl-ca", "/c"}}), HasSubstr("does not verify"));
  EXPECT_THAT(with({{"sslmode", "required"}}), HasSubstr("'sslmode'"));
}

}  // namespace
}  // namespace leaf
