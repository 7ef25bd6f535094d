#include "codec/http1/parser.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace leaf::http1 {
namespace {

// Verdicts are the corpus's business (tests/fuzz/corpus/http1); here it is what a request contains.
class ParserTest : public testing::Test {
 protected:
  Parser::Step Parse(std::string bytes) {
    bytes_ = std::move(bytes);
    return parser_.Parse(bytes_.data(), bytes_.size(), limits_, *request_);
  }
  Parser::Step More(const std::string& bytes) {
    bytes_ += bytes;
    return parser_.Parse(bytes_.data(), bytes_.size(), limits_, *request_);
  }
  const Request& request() const { return *request_; }

  Parser parser_;
  Limits limits_;

 private:
  std::string bytes_;
  std::unique_ptr<Request> request_ = std::make_unique<Request>();
};

TEST_F(ParserTest, ReadsWhatARequestSays) {
  ASSERT_EQ(Parser::Step::kRequest,
            Parse("GET /a%20b?x=1&y HTTP/1.1\r\nhost: h:80\r\nAccept:  text/html \r\n"
                  "X-Thing:\t1\r\nContent-Type: a/b\r\n\r\n"));
  EXPECT_EQ(Method::kGet, request().method);
  EXPECT_EQ("/a%20b?x=1&y", request().target);
  EXPECT_EQ("/a%20b", request().path);
  EXPECT_EQ("x=1&y", request().query);
  EXPECT_EQ(1, request().minor);
  EXPECT_TRUE(request().keep_alive);
  EXPECT_EQ("h:80", request().host);
  EXPECT_EQ("text/html", request().accept);
  EXPECT_EQ("a/b", request().content_type);
  EXPECT_EQ("1", request().Find("x-thing"));
  EXPECT_EQ("", request().Find("x-other"));
  EXPECT_EQ(4, request().header_count);
  EXPECT_EQ("", request().body);
}

TEST_F(ParserTest, NothingOfOneRequestIsLeftInTheNext) {
  ASSERT_EQ(
      Parser::Step::kRequest,
      Parse("POST /a?q HTTP/1.1\r\nHost: a\r\nAccept: x\r\nContent-Type: y\r\nConnection: close\r\n"
            "Content-Length: 1\r\n\r\nz"));
  EXPECT_EQ("z", request().body);
  EXPECT_FALSE(request().keep_alive);
  ASSERT_EQ(Parser::Step::kRequest, Parse("GET /b HTTP/1.1\r\nHost: b\r\n\r\n"));
  EXPECT_EQ("", request().query);
  EXPECT_EQ("", request().accept);
  EXPECT_EQ("", request().content_type);
  EXPECT_EQ("", request().body);
  EXPECT_EQ("b", request().host);
  EXPECT_EQ(1, request().header_count);
  EXPECT_TRUE(request().keep_alive);
}

TEST_F(ParserTest, AnAbsoluteTargetOverrulesTheHostField) {
  ASSERT_EQ(Parser::Step::kRequest, Parse("GET http://right:1?q HTTP/1.1\r\nHost: wrong\r\n\r\n"));
  EXPECT_EQ("right:1", request().host);
  EXPECT_EQ("/", request().path);
  EXPECT_EQ("q", request().query);
}

TEST_F(ParserTest, JoinsChunks) {
  ASSERT_EQ(Parser::Step::kRequest,
            Parse("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nabc\r\nA\r\n0123456789\r\n1\r\n!\r\n0\r\n\r\n"));
  EXPECT_EQ("abc0123456789!", request().body);
}

TEST_F(ParserTest, ARequestInPiecesIsWholeAtTheEnd) {
  const std::string bytes =
      "POST /p?q HTTP/1.1\r\nHost: a\r\nAccept: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n";
  ASSERT_EQ(Parser::Step::kMore, Parse(bytes.substr(0, 1)));
  for (std::size_t i = 1; i + 1 < bytes.size(); ++i)
    ASSERT_EQ(Parser::Step::kMore, More(bytes.substr(i, 1))) << i;
  ASSERT_EQ(Parser::Step::kRequest, More(bytes.substr(bytes.size() - 1)));
  EXPECT_EQ("abcde", request().body);
  EXPECT_EQ("/p", request().path);
  EXPECT_EQ("q", request().query);
  EXPECT_EQ("a", request().host);
  EXPECT_EQ("x", request().accept);
  EXPECT_EQ(bytes.size(), parser_.consumed());
}

TEST_F(ParserTest, KeepAliveFollowsVersionAndConnection) {
  const struct {
    const char* version;
    const char* fields;
    bool keep_alive;
  } cases[] = {{"1.1", "", true},
               {"1.1", "Connection: close\r\n", false},
               {"1.1", "Connection: upgrade, CLOSE\r\n", false},
               {"1.1", "Connection: keep-alive, close\r\n", false},
               {"1.1", "Connection: x\r\nConnection: close\r\n", false},
               {"1.1", "Connection: closed\r\n", true},
               {"1.0", "", false},
               {"1.0", "Connection: Keep-Alive\r\n", true},
               {"1.0", "Connection: x , keep-alive ,\r\n", true},
               {"1.0", "Connection: keep-alive\r\nConnection: close\r\n", false}};
  for (const auto& each : cases) {
    ASSERT_EQ(Parser::Step::kRequest, Parse("GET / HTTP/" + std::string(each.version) +
                                            "\r\nHost: a\r\n" + each.fields + "\r\n"));
    EXPECT_EQ(each.keep_alive, request().keep_alive) << each.version << " " << each.fields;
  }
}

TEST_F(ParserTest, AClientThatExpectsIsToldToContinueOnce) {
  ASSERT_EQ(Parser::Step::kMore, Parse("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"));
  EXPECT_FALSE(parser_.TakeContinue());
  ASSERT_EQ(Parser::Step::kMore, More("Content-Length: 2\r\n\r\n"));
  EXPECT_TRUE(parser_.TakeContinue());
  EXPECT_FALSE(parser_.TakeContinue());
  ASSERT_EQ(Parser::Step::kMore, More("a"));
  EXPECT_FALSE(parser_.TakeContinue());
  ASSERT_EQ(Parser::Step::kRequest, More("b"));
  EXPECT_EQ("ab", request().body);
}

TEST_F(ParserTest, NobodyIsToldToContinueWhoDoesNotWait) {
  ASSERT_EQ(Parser::Step::kMore,
            Parse("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_FALSE(parser_.TakeContinue());
  parser_ = Parser();
  ASSERT_EQ(Parser::Step::kMore, Parse("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_FALSE(parser_.TakeContinue());
}

TEST_F(ParserTest, TellsHeadFromBodyAndWhereARefusedRequestWasGoing) {
  ASSERT_EQ(Parser::Step::kMore, Parse("POST /api/v1/ids/a HTTP/1.1\r\nHost: a\r\n"));
  EXPECT_FALSE(parser_.in_body());
  ASSERT_EQ(Parser::Step::kMore, More("Content-Length: 2\r\n\r\n"));
  EXPECT_TRUE(parser_.in_body());
  parser_ = Parser();
  ASSERT_EQ(Parser::Step::kRefused,
            Parse("POST /api/v1/ids/a HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(400, parser_.status());
  EXPECT_TRUE(parser_.below_api());
  EXPECT_FALSE(parser_.reason().empty());
  EXPECT_EQ(Parser::Step::kRefused, Parse("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
      << "a refusal is for good";
}

}  // namespace
}  // namespace leaf::http1
