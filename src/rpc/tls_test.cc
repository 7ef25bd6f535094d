// Encryption: whom a connection is made with under which mode.

#include "rpc/tls.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>

#include "rpc/grpc_connection.h"
#include "rpc/http2_server_testing.h"
#include "tests/harness/certificates.h"
#include "tests/harness/child_process.h"

namespace leaf::rpc {
namespace {

using testing::HasSubstr;
using Mode = TlsSettings::Mode;

constexpr Duration kPatience = std::chrono::seconds(20);

Instant In(Duration after) { return SystemClock().Now() + after; }

class TlsTest : public testing::Test {
 protected:
  static harness::Certificates& Certs() {
    static harness::TestFolder folder("tls");
    static harness::Certificates certificates(folder.path());
    return certificates;
  }

  static Http2Server::Options With(const std::string& certificate) {
    Http2Server::Options options;
    options.script = [](const ServedRequest&) { return ServedAnswer::Ok("answer"); };
    options.cert = Certs().Pem(certificate);
    options.key = Certs().Key(certificate);
    return options;
  }
  static TlsSettings Settings(Mode mode) {
    TlsSettings settings;
    settings.mode = mode;
    if (mode >= Mode::kVerifyCa) settings.ca = Certs().Pem("ca");
    return settings;
  }
  /// "" if a call to the server is answered; else why not.
  static std::string Try(Http2Server::Options options, const TlsSettings& settings,
                         const std::string& host = "localhost") {
    Http2Server server(std::move(options));
    const auto tls = TlsContext::Make(settings);
    if (!tls.ok()) return tls.error().message;
    GrpcConnection connection(SystemClock(), 1000);
    const auto connected = connection.Connect({host, server.port()}, tls->get(), In(kPatience));
    if (!connected.ok()) return connected.error().message;
    GrpcCall call;
    call.path = "/a/b";
    call.deadline = In(kPatience);
    GrpcReply reply;
    connection.Run({&call, 1}, {&reply, 1});
    return reply.body == "answer" ? "" : reply.message;
  }
};

TEST_F(TlsTest, TheRightServerIsSpokenToUnderEveryMode) {
  for (const Mode mode : {Mode::kRequired, Mode::kVerifyCa, Mode::kVerifyIdentity}) {
    EXPECT_EQ(Try(With("good"), Settings(mode)), "");
    EXPECT_EQ(Try(With("good"), Settings(mode), "127.0.0.1"), "");
  }
}

TEST_F(TlsTest, AServerOfAnotherNameIsRefusedWhereItsNameCounts) {
  EXPECT_THAT(Try(With("wrong"), Settings(Mode::kVerifyIdentity)), HasSubstr("ostname mismatch"));
  EXPECT_THAT(Try(With("by-name"), Settings(Mode::kVerifyIdentity), "127.0.0.1"),
              HasSubstr("IP address mismatch"));
  EXPECT_EQ(Try(With("by-name"), Settings(Mode::kVerifyIdentity)), "");
  EXPECT_EQ(Try(With("wrong"), Settings(Mode::kVerifyCa)), "");
}

TEST_F(TlsTest, AServerThatNobodyVouchesForIsRefusedWhereThatCounts) {
  for (const Mode mode : {Mode::kVerifyCa, Mode::kVerifyIdentity}) {
    EXPECT_THAT(Try(With("foreign"), Settings(mode)), HasSubstr("not trusted"));
    EXPECT_THAT(Try(With("self"), Settings(mode)), HasSubstr("self-signed"));
    EXPECT_THAT(Try(With("expired"), Settings(mode)), HasSubstr("expired"));
  }
  for (const char* name : {"foreign", "self", "expired"})
    EXPECT_EQ(Try(With(name), Settings(Mode::kRequired)), "") << "encrypted, and no more asked for";
}

TEST_F(TlsTest, TheSystemsAuthoritiesDoNotKnowOurs) {
  TlsSettings settings;
  settings.mode = Mode::kVerifyIdentity;
  EXPECT_THAT(Try(With("good"), settings), HasSubstr("not trusted"));
}

TEST_F(TlsTest, AServerMayDemandACertificate) {
  Http2Server::Options options = With("good");
  options.client_ca = Certs().Pem("ca");
  TlsSettings settings = Settings(Mode::kVerifyIdentity);
  EXPECT_THAT(Try(options, settings),
              testing::AnyOf(HasSubstr("certificate required"), HasSubstr("Connection reset"),
                             HasSubstr("closed the connection")));
  settings.cert = Certs().Pem("by-name");
  settings.key = Certs().Key("by-name");
  EXPECT_EQ(Try(options, settings), "");
}

TEST_F(TlsTest, WhoSpeaksTlsButNoHttp2IsTold) {
  Http2Server::Options options = With("good");
  options.alpn = false;
  EXPECT_THAT(Try(std::move(options), Settings(Mode::kVerifyIdentity)), HasSubstr("ALPN h2"));
}

TEST_F(TlsTest, WhoSpeaksNoTlsIsTold) {
  Http2Server::Options options = With("good");
  options.cert.clear();
  options.greeting = "HTTP/1.1 400 Bad Request\r\n\r\n";
  EXPECT_THAT(Try(std::move(options), Settings(Mode::kRequired)), HasSubstr("TLS: "));
}

TEST_F(TlsTest, AHandshakeThatHangsEndsByItsDeadline) {
  Http2Server::Options options = With("good");
  options.silent = true;
  Http2Server server(std::move(options));
  const auto tls = TlsContext::Make(Settings(Mode::kVerifyIdentity));
  ASSERT_TRUE(tls.ok());
  GrpcConnection connection(SystemClock(), 1000);
  const Instant begin = SystemClock().Now();
  const auto connected = connection.Connect({"127.0.0.1", server.port()}, tls->get(),
                                            In(std::chrono::milliseconds(200)));
  ASSERT_FALSE(connected.ok());
  EXPECT_THAT(connected.error().message, HasSubstr("handshake"));
  EXPECT_LT(SystemClock().Now(), begin + std::chrono::seconds(2));
}

TEST_F(TlsTest, LargeAnswersAndManyPiecesPass) {
  Http2Server::Options options = With("good");
  const std::string large(3'000'000, 'x');
  options.script = [&](const ServedRequest&) { return ServedAnswer::Ok(large); };
  options.piece = 777;
  Http2Server server(std::move(options));
  const auto tls = TlsContext::Make(Settings(Mode::kVerifyIdentity));
  ASSERT_TRUE(tls.ok());
  GrpcConnection connection(SystemClock(), large.size());
  ASSERT_TRUE(connection.Connect({"localhost", server.port()}, tls->get(), In(kPatience)).ok());
  GrpcCall call;
  call.path = "/a/b";
  call.request = std::string(200'000, 'y');
  call.deadline = In(kPatience);
  GrpcReply reply;
  connection.Run({&call, 1}, {&reply, 1});
  EXPECT_EQ(reply.end, GrpcReply::End::kAnswered) << reply.message;
  EXPECT_EQ(reply.body, large);
}

TEST_F(TlsTest, FilesThatCannotBeUsedAreNamed) {
  TlsSettings settings = Settings(Mode::kVerifyIdentity);
  settings.ca = "/nowhere/ca.pem";
  auto made = TlsContext::Make(settings);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  EXPECT_THAT(made.error().message, HasSubstr("ssl-ca '/nowhere/ca.pem'"));

  settings = Settings(Mode::kVerifyIdentity);
  settings.cert = Certs().Pem("good");
  settings.key = Certs().Key("wrong");
  made = TlsContext::Make(settings);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("ssl-key"));
}

}  // namespace
}  // namespace leaf::rpc
