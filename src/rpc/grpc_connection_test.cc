#include "rpc/grpc_connection.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "rpc/http2_server_testing.h"

namespace leaf::rpc {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using End = GrpcReply::End;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTimeFactor = 4;
#else
constexpr int kTimeFactor = 1;
#endif

constexpr Duration kPatience = std::chrono::seconds(20);
constexpr Duration kSoon = milliseconds(200);
/// How much later than its deadline a call may come back on a busy machine.
constexpr Duration kSlack = milliseconds(500) * kTimeFactor;
constexpr std::size_t kMaxMessage = 1000;

Instant In(Duration after) { return SystemClock().Now() + after; }

GrpcCall Call(std::string request = "question", Duration within = kPatience) {
  GrpcCall call;
  call.path = "/pkg.Service/Method";
  call.request = std::move(request);
  call.deadline = In(within);
  return call;
}

GrpcReply Exchange(GrpcConnection& connection, const GrpcCall& call) {
  GrpcReply reply;
  connection.Run({&call, 1}, {&reply, 1});
  return reply;
}

Http2Server::Options Always(const ServedAnswer& answer) {
  Http2Server::Options options;
  options.script = [answer](const ServedRequest&) { return answer; };
  return options;
}

Http2Server::Options Echo() {
  Http2Server::Options options;
  options.script = [](const ServedRequest& request) {
    return ServedAnswer::Ok(request.body.substr(kGrpcFrame));
  };
  return options;
}

ServedAnswer Nothing() {
  ServedAnswer answer;
  answer.kind = ServedAnswer::Kind::kNothing;
  return answer;
}

class GrpcConnectionTest : public testing::Test {
 protected:
  void Connect(const Http2Server& server) {
    const auto connected =
        connection_.Connect({"127.0.0.1", server.port()}, nullptr, In(kPatience));
    ASSERT_TRUE(connected.ok()) << connected.error().message;
  }
  /// One call to a server that answers so.
  GrpcReply Ask(const ServedAnswer& answer) {
    Http2Server server(Always(answer));
    Connect(server);
    return Exchange(connection_, Call());
  }

  GrpcConnection connection_{SystemClock(), kMaxMessage};
};

TEST_F(GrpcConnectionTest, ACallTellsWhatGrpcWantsAndBringsTheAnswer) {
  std::promise<ServedRequest> served;
  Http2Server::Options options;
  options.script = [&](const ServedRequest& request) {
    served.set_value(request);
    return ServedAnswer::Ok("answer");
  };
  Http2Server server(std::move(options));
  Connect(server);
  GrpcCall call = Call("question", std::chrono::seconds(10));
  call.metadata = {{"token", "abc.1"}};
  const GrpcReply reply = Exchange(connection_, call);
  EXPECT_EQ(reply.end, End::kAnswered) << reply.message;
  EXPECT_EQ(reply.status, GrpcStatus::kOk);
  EXPECT_EQ(reply.body, "answer");
  EXPECT_TRUE(connection_.connected());
  ServedRequest seen = served.get_future().get();
  EXPECT_EQ(seen.headers[":method"], "POST");
  EXPECT_EQ(seen.headers[":path"], "/pkg.Service/Method");
  EXPECT_EQ(seen.headers[":scheme"], "http");
  EXPECT_EQ(seen.headers[":authority"], "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(seen.headers["te"], "trailers");
  EXPECT_EQ(seen.headers["content-type"], "application/grpc");
  EXPECT_EQ(seen.headers["token"], "abc.1");
  EXPECT_EQ(seen.body, FrameGrpcMessage("question"));
  // The server gives up before the caller does, but not much.
  const std::string timeout = seen.headers["grpc-timeout"];
  ASSERT_TRUE(timeout.ends_with('u')) << timeout;
  const long long us = std::stoll(timeout);
  EXPECT_LE(us, 9'500'000);
  EXPECT_GT(us, 9'500'000 - 2'000'000 * kTimeFactor);
}

TEST_F(GrpcConnectionTest, OneConnectionServesCallAfterCall) {
  Http2Server server(Echo());
  Connect(server);
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(Exchange(connection_, Call(std::to_string(i))).body, std::to_string(i));
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(GrpcConnectionTest, ManyCallsAtOnceEachGetTheirOwnAnswer) {
  Http2Server::Options options = Echo();
  options.max_streams = 7;  // the rest waits for its turn
  Http2Server server(std::move(options));
  Connect(server);
  std::vector<GrpcCall> calls;
  for (int i = 0; i < 300; ++i) calls.push_back(Call("call " + std::to_string(i)));
  std::vector<GrpcReply> replies(calls.size());
  connection_.Run(calls, replies);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ASSERT_EQ(replies[i].end, End::kAnswered) << replies[i].message;
    EXPECT_EQ(replies[i].body, "call " + std::to_string(i));
  }
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(GrpcConnectionTest, AnswersMayComeInPiecesOfAByte) {
  Http2Server::Options options = Echo();
  options.piece = 1;
  Http2Server server(std::move(options));
  Connect(server);
  const std::string text(900, 'x');
  EXPECT_EQ(Exchange(connection_, Call(text)).body, text);
}

TEST_F(GrpcConnectionTest, AnEmptyMessageIsAMessage) {
  EXPECT_EQ(Ask(ServedAnswer::Ok("")).end, End::kAnswered);
}

// --- No answer in time.

TEST_F(GrpcConnectionTest, NoAnswerByTheDeadlineIsUnknownAndEndsTheConnection) {
  Http2Server server(Always(Nothing()));
  Connect(server);
  const Instant begin = SystemClock().Now();
  const GrpcReply reply = Exchange(connection_, Call("q", kSoon));
  EXPECT_EQ(reply.end, End::kUnknown);
  EXPECT_THAT(reply.message, HasSubstr("no answer in time"));
  EXPECT_GE(SystemClock().Now(), begin + kSoon);
  EXPECT_LT(SystemClock().Now(), begin + kSoon + kSlack);
  EXPECT_FALSE(connection_.connected());
  EXPECT_EQ(Exchange(connection_, Call()).end, End::kNotSent);
}

TEST_F(GrpcConnectionTest, ADripIsNoAnswer) {
  Http2Server::Options options = Echo();
  options.piece = 1;
  options.pause = milliseconds(5);
  Http2Server server(std::move(options));
  Connect(server);
  const Instant begin = SystemClock().Now();
  const GrpcReply reply = Exchange(connection_, Call(std::string(900, 'x'), kSoon));
  EXPECT_EQ(reply.end, End::kUnknown);
  EXPECT_LT(SystemClock().Now(), begin + kSoon + kSlack);
}

TEST_F(GrpcConnectionTest, AServerThatNeverStopsTalkingDoesNotHoldTheCaller) {
  ServedAnswer flood;
  flood.kind = ServedAnswer::Kind::kFlood;
  Http2Server server(Always(flood));
  Connect(server);
  const Instant begin = SystemClock().Now();
  EXPECT_EQ(Exchange(connection_, Call("q", kSoon)).end, End::kUnknown);
  EXPECT_LT(SystemClock().Now(), begin + kSoon + kSlack);
}

TEST_F(GrpcConnectionTest, EachCallHasItsOwnDeadline) {
  Http2Server::Options options;
  options.script = [](const ServedRequest& request) {
    return request.body.ends_with("late") ? Nothing() : ServedAnswer::Ok("in time");
  };
  options.piece = 1;
  options.pause = milliseconds(1) * kTimeFactor;
  Http2Server server(std::move(options));
  Connect(server);
  const std::vector<GrpcCall> calls{Call("late", milliseconds(20)), Call("good"), Call("good"),
                                    Call("never begun", -milliseconds(1))};
  std::vector<GrpcReply> replies(calls.size());
  connection_.Run(calls, replies);
  EXPECT_EQ(replies[0].end, End::kUnknown);
  EXPECT_EQ(replies[1].end, End::kAnswered) << replies[1].message;
  EXPECT_EQ(replies[2].end, End::kAnswered) << replies[2].message;
  EXPECT_EQ(replies[3].end, End::kNotSent);
  EXPECT_THAT(replies[3].message, HasSubstr("deadline"));
  EXPECT_EQ(server.requests(), 3);
}

TEST_F(GrpcConnectionTest, WhatTheServerHadNoRoomForWasNotSent) {
  Http2Server::Options options = Echo();
  options.window = 10;
  options.script = [](const ServedRequest&) { return Nothing(); };
  options.max_streams = 1;
  Http2Server server(std::move(options));
  Connect(server);
  std::vector<GrpcCall> calls{Call("fits", kSoon), Call("behind it", kSoon)};
  calls[1].deadline = calls[0].deadline;
  std::vector<GrpcReply> replies(calls.size());
  connection_.Run(calls, replies);
  EXPECT_EQ(replies[0].end, End::kUnknown);
  EXPECT_EQ(replies[1].end, End::kNotSent) << "the first one was still in the way";
}

TEST_F(GrpcConnectionTest, ARequestThatLeftOnlyInPartIsNoRequest) {
  Http2Server::Options options = Echo();
  options.window = 0;
  Http2Server server(std::move(options));
  Connect(server);
  EXPECT_EQ(Exchange(connection_, Call("q", kSoon)).end, End::kNotSent);
  EXPECT_EQ(server.requests(), 0);
}

// --- Answers that are none.

TEST_F(GrpcConnectionTest, AnErrorOfTheServersIsItsOwnWord) {
  const GrpcReply reply = Ask(ServedAnswer::TrailersOnly("14", "etcdserver: no%20leader%21"));
  EXPECT_EQ(reply.end, End::kAnswered);
  EXPECT_EQ(reply.status, GrpcStatus::kUnavailable);
  EXPECT_EQ(reply.message, "etcdserver: no leader!");
  EXPECT_TRUE(connection_.connected());
}

TEST_F(GrpcConnectionTest, AnErrorAfterAMessageIsAnError) {
  ServedAnswer answer = ServedAnswer::Ok("half of it");
  answer.trailers = {{"grpc-status", "13"}, {"grpc-message", "broken"}};
  const GrpcReply reply = Ask(answer);
  EXPECT_EQ(reply.end, End::kAnswered);
  EXPECT_EQ(reply.status, GrpcStatus::kInternal);
  EXPECT_EQ(reply.body, "");
}

struct Odd {
  const char* name;
  ServedAnswer answer;
  const char* said;
};

std::vector<Odd> OddAnswers() {
  std::vector<Odd> all;
  const auto add = [&](const char* name, const char* said, auto change) {
    ServedAnswer answer = ServedAnswer::Ok("answer");
    change(answer);
    all.push_back({name, answer, said});
  };
  add("web page", "text/html", [](ServedAnswer& a) { a.headers[1].second = "text/html"; });
  add("no content type", "not gRPC", [](ServedAnswer& a) { a.headers.pop_back(); });
  add("bad gateway", "HTTP status 502", [](ServedAnswer& a) { a.headers[0].second = "502"; });
  add("no status", "no grpc-status", [](ServedAnswer& a) { a.trailers = {{"x", "y"}}; });
  add("no trailers", "no grpc-status", [](ServedAnswer& a) { a.trailers.clear(); });
  add("bad status", "no grpc-status", [](ServedAnswer& a) { a.trailers = {{"grpc-status", "x"}}; });
  add("no message", "no message", [](ServedAnswer& a) { a.body.clear(); });
  add("cut off", "cut off", [](ServedAnswer& a) { a.body.pop_back(); });
  add("two messages", "more than one", [](ServedAnswer& a) { a.body += a.body; });
  add("compressed", "compressed", [](ServedAnswer& a) { a.body[0] = 1; });
  add("too large", "larger than 1000 bytes",
      [](ServedAnswer& a) { a.body = FrameGrpcMessage(std::string(kMaxMessage + 1, 'x')); });
  add("reset", "INTERNAL_ERROR", [](ServedAnswer& a) {
    a.kind = ServedAnswer::Kind::kReset;
    a.code = 2;
  });
  add("closed", "closed the connection",
      [](ServedAnswer& a) { a.kind = ServedAnswer::Kind::kClose; });
  return all;
}

TEST_F(GrpcConnectionTest, WhatIsNoAnswerOfGrpcLeavesTheOutcomeUnknown) {
  for (const Odd& odd : OddAnswers()) {
    SCOPED_TRACE(odd.name);
    const GrpcReply reply = Ask(odd.answer);
    EXPECT_EQ(reply.end, End::kUnknown);
    EXPECT_THAT(reply.message, HasSubstr(odd.said));
    connection_.Close();
  }
}

TEST_F(GrpcConnectionTest, TheLargestMessageStillFits) {
  const GrpcReply reply = Ask(ServedAnswer::Ok(std::string(kMaxMessage, 'x')));
  EXPECT_EQ(reply.end, End::kAnswered) << reply.message;
  EXPECT_EQ(reply.body.size(), kMaxMessage);
}

// --- A server that takes leave.

TEST_F(GrpcConnectionTest, ARefusedStreamWasNotWorkedOn) {
  ServedAnswer refused;
  refused.kind = ServedAnswer::Kind::kReset;
  refused.code = 7;
  EXPECT_EQ(Ask(refused).end, End::kNotSent);
}

TEST_F(GrpcConnectionTest, WhatAGoawayDisownsWasNotWorkedOn) {
  ServedAnswer refuse;
  refuse.kind = ServedAnswer::Kind::kRefuse;
  const GrpcReply reply = Ask(refuse);
  EXPECT_EQ(reply.end, End::kNotSent) << reply.message;
}

TEST_F(GrpcConnectionTest, AGoawayAfterTheAnswerMakesTheConnectionStale) {
  ServedAnswer last = ServedAnswer::Ok("answer");
  last.goaway_after = true;
  Http2Server server(Always(last));
  Connect(server);
  EXPECT_EQ(Exchange(connection_, Call()).end, End::kAnswered);
  const Instant until = In(kPatience);
  while (!connection_.Stale() && SystemClock().Now() < until) std::this_thread::yield();
  EXPECT_TRUE(connection_.Stale());
}

TEST_F(GrpcConnectionTest, AConnectionClosedWhileIdleIsNoticedBeforeItIsUsed) {
  Http2Server server(Echo());
  Connect(server);
  EXPECT_EQ(Exchange(connection_, Call()).end, End::kAnswered);
  EXPECT_FALSE(connection_.Stale());
  server.CloseAll();
  EXPECT_TRUE(connection_.Stale());
}

TEST_F(GrpcConnectionTest, AServerThatTalksWhileIdleDoesNotMakeTheConnectionStale) {
  Http2Server::Options options = Echo();
  options.pings_when_idle = true;
  Http2Server server(std::move(options));
  Connect(server);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(connection_.Pause(milliseconds(3)));
    ASSERT_FALSE(connection_.Stale());
  }
  EXPECT_EQ(Exchange(connection_, Call("q")).body, "q");
}

TEST_F(GrpcConnectionTest, ASignOfLifeIsAskedForAndMissed) {
  Http2Server server(Echo());
  Connect(server);
  EXPECT_TRUE(connection_.Ping(In(kPatience)).ok());
  EXPECT_TRUE(connection_.Ping(In(kPatience)).ok());
  EXPECT_TRUE(connection_.connected());
  server.Silence(true);
  const Instant begin = SystemClock().Now();
  EXPECT_FALSE(connection_.Ping(In(kSoon)).ok());
  EXPECT_LT(SystemClock().Now(), begin + kSoon + kSlack);
  EXPECT_FALSE(connection_.connected());
}

// --- Interrupts.

TEST_F(GrpcConnectionTest, AnInterruptEndsTheWaitingForAnAnswer) {
  Http2Server server(Always(Nothing()));
  Connect(server);
  std::jthread other([&] {
    while (server.requests() == 0) std::this_thread::yield();
    connection_.Interrupt();
  });
  const Instant begin = SystemClock().Now();
  const GrpcReply reply = Exchange(connection_, Call());
  EXPECT_EQ(reply.end, End::kUnknown);
  EXPECT_THAT(reply.message, HasSubstr("interrupted"));
  EXPECT_LT(SystemClock().Now(), begin + kPatience / 2);
  EXPECT_FALSE(connection_.connected());
}

TEST_F(GrpcConnectionTest, AnInterruptBetweenCallsMakesTheConnectionStale) {
  Http2Server server(Echo());
  Connect(server);
  connection_.Interrupt();
  EXPECT_TRUE(connection_.Stale());
}

TEST_F(GrpcConnectionTest, AnInterruptEndsTheWaitingForAGreeting) {
  Http2Server::Options options = Echo();
  options.silent = true;
  Http2Server server(std::move(options));
  std::atomic<bool> ended{false};
  std::jthread other([&] {
    while (!ended) connection_.Interrupt();
  });
  const auto connected = connection_.Connect({"127.0.0.1", server.port()}, nullptr, In(kPatience));
  ended = true;
  ASSERT_FALSE(connected.ok());
  EXPECT_THAT(connected.error().message, HasSubstr("interrupted"));
  EXPECT_FALSE(connection_.connected());
}

// --- Connecting.

TEST_F(GrpcConnectionTest, ConnectingEndsByItsDeadline) {
  Http2Server::Options options = Echo();
  options.silent = true;
  Http2Server server(std::move(options));
  const Instant begin = SystemClock().Now();
  const auto connected = connection_.Connect({"127.0.0.1", server.port()}, nullptr, In(kSoon));
  ASSERT_FALSE(connected.ok());
  EXPECT_GE(SystemClock().Now(), begin + kSoon);
  EXPECT_LT(SystemClock().Now(), begin + kSoon + kSlack);
}

TEST_F(GrpcConnectionTest, WhoSpeaksNoHttp2IsTold) {
  using std::string_literals::operator""s;
  for (const std::string& greeting :
       {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"s, "J\0\0\0\n5.5.5-10.11.6-MariaDB"s,
        "\x15\x03\x03\0\2\2\x32 and some more"s}) {
    Http2Server::Options options = Echo();
    options.greeting = greeting;
    Http2Server server(std::move(options));
    const auto connected =
        connection_.Connect({"127.0.0.1", server.port()}, nullptr, In(kPatience));
    ASSERT_FALSE(connected.ok());
    EXPECT_THAT(connected.error().message, HasSubstr("does not speak HTTP/2"));
  }
}

TEST_F(GrpcConnectionTest, NobodyThereAndNoSuchHostAreTold) {
  int port = 0;
  {
    Http2Server server(Echo());
    port = server.port();
  }
  const auto refused = connection_.Connect({"127.0.0.1", port}, nullptr, In(kPatience));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("Connection refused"));
  const auto unknown = connection_.Connect({"no-such-host.invalid", 1}, nullptr, In(kPatience));
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("no-such-host.invalid"));
}

TEST_F(GrpcConnectionTest, IsUsedAgainAfterClose) {
  Http2Server server(Echo());
  for (int i = 0; i < 5; ++i) {
    Connect(server);
    EXPECT_EQ(Exchange(connection_, Call("q")).body, "q");
    connection_.Close();
    connection_.Close();
    EXPECT_FALSE(connection_.connected());
  }
}

}  // namespace
}  // namespace leaf::rpc
