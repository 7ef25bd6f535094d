#include "codec/http1/writer.h"

#include <gtest/gtest.h>

#include <string>

namespace leaf::http1 {
namespace {

TEST(WriterTest, WritesAHeadWithLengthAndDate) {
  std::string out;
  AppendHead(out, {.date = "Date: x\r\n",
                   .content_type = "text/plain",
                   .content_length = 12,
                   .extra_headers = "A: b\r\n"});
  EXPECT_EQ(
      "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nA: "
      "b\r\n\r\n",
      out);
}

TEST(WriterTest, AnEmptyAnswerHasLengthZeroAndNoType) {
  std::string out;
  AppendResponse(out, {.status = 400}, {.keep_alive = false});
  EXPECT_EQ("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", out);
}

TEST(WriterTest, SaysWhatBecomesOfTheConnection) {
  const auto connection = [](bool keep_alive, int minor) {
    std::string out;
    AppendHead(out, {.keep_alive = keep_alive, .minor = minor});
    const std::size_t at = out.find("Connection: ");
    return at == std::string::npos ? std::string()
                                   : out.substr(at + 12, out.find('\r', at) - at - 12);
  };
  EXPECT_EQ("", connection(true, 1));
  EXPECT_EQ("keep-alive", connection(true, 0));
  EXPECT_EQ("close", connection(false, 1));
  EXPECT_EQ("close", connection(false, 0));
}

TEST(WriterTest, HeadLeavesTheBodyOutAndKeepsItsLength) {
  std::string out;
  AppendResponse(out, {.content_type = "text/plain", .body = "12345"}, {.head = true});
  EXPECT_EQ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n", out);
}

TEST(WriterTest, AHandlerMayCloseTheConnection) {
  std::string out;
  AppendResponse(out, {.status = 299, .close = true}, {});
  EXPECT_EQ("HTTP/1.1 299 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n", out);
}

TEST(WriterTest, NoContentHasNoLength) {
  std::string out;
  AppendResponse(out, {.status = 204, .body = "ignored"}, {});
  EXPECT_EQ("HTTP/1.1 204 \r\n\r\n", out);
}

TEST(WriterTest, NeedsNoAllocationWhenThereIsRoom) {
  std::string out;
  out.reserve(300);
  const char* const before = out.data();
  AppendHead(out, {.content_type = "text/plain;charset=UTF-8", .content_length = 19});
  EXPECT_EQ(before, out.data());
}

TEST(DateLineTest, WritesTheFormOfRfc9110) {
  DateLine line;
  EXPECT_EQ("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", line.At(784111777'000));
  EXPECT_EQ("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", line.At(784111777'999));
  EXPECT_EQ("Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n", line.At(784111778'000));
  EXPECT_EQ("Date: Thu, 29 Feb 2024 23:59:59 GMT\r\n", line.At(1709251199'000));
  EXPECT_EQ("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", line.At(784111777'000))
      << "a clock may go back";
}

}  // namespace
}  // namespace leaf::http1
