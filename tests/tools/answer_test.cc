#include "answer.h"

#include <gtest/gtest.h>

#include <string>

namespace leaf::tools {
namespace {

std::string Ok(const std::string& body, const std::string& headers = "") {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers +
         "\r\n" + body;
}

TEST(AnswerTest, ReadsLeafsBareNumber) {
  Answer answer;
  const std::string bytes = Ok("42");
  ASSERT_EQ(ReadAnswer(bytes + "HTTP", AnswerForm::kLeaf, answer),
            static_cast<std::int64_t>(bytes.size()));
  ASSERT_EQ(answer.pieces.size(), 1U);
  EXPECT_EQ(answer.pieces[0].first, 42);
  EXPECT_FALSE(answer.close);
}

TEST(AnswerTest, WaitsForTheWholeAnswerAtEveryCut) {
  Answer answer;
  const std::string bytes = Ok("42");
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_EQ(ReadAnswer(bytes.substr(0, cut), AnswerForm::kLeaf, answer), 0) << cut;
  }
}

TEST(AnswerTest, JoinsNeighboursOfAListAndKeepsGaps) {
  Answer answer;
  ASSERT_GT(ReadAnswer(Ok(R"({"tag":"a","ids":["7","8","9","20"]})"), AnswerForm::kIds, answer), 0);
  ASSERT_EQ(answer.pieces.size(), 2U);
  EXPECT_EQ(answer.pieces[0].first, 7);
  EXPECT_EQ(answer.pieces[0].count, 3);
  EXPECT_EQ(answer.pieces[1].first, 20);
}

TEST(AnswerTest, DoesNotHideAFallWithinAList) {
  Answer answer;
  ASSERT_GT(ReadAnswer(Ok(R"({"tag":"a","ids":["8","7"]})"), AnswerForm::kIds, answer), 0);
  ASSERT_EQ(answer.pieces.size(), 2U);
  EXPECT_EQ(answer.pieces[1].first, 7);
}

TEST(AnswerTest, ReadsRanges) {
  Answer answer;
  ASSERT_GT(
      ReadAnswer(
          Ok(R"({"tag":"a","ranges":[{"first":"1002","count":998},{"first":"5000","count":2}]})"),
          AnswerForm::kRanges, answer),
      0);
  ASSERT_EQ(answer.pieces.size(), 2U);
  EXPECT_EQ(answer.pieces[0].count, 998);
  EXPECT_EQ(answer.pieces[1].first, 5000);
}

TEST(AnswerTest, ReadsTheCodeOfAFailureFromHeaderOrProblem) {
  Answer answer;
  const std::string leaf =
      "HTTP/1.1 500 \r\nContent-Length: 2\r\nX-Leafd-Code: regressed\r\nConnection: "
      "close\r\n\r\n{}";
  ASSERT_GT(ReadAnswer(leaf, AnswerForm::kLeaf, answer), 0);
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.code, "regressed");
  EXPECT_TRUE(answer.close);
  const std::string problem =
      R"({"type":"about:blank","status":503,"code":"unavailable","detail":"x"})";
  ASSERT_GT(ReadAnswer("HTTP/1.1 503 Service Unavailable\r\ncontent-length: " +
                           std::to_string(problem.size()) + "\r\n\r\n" + problem,
                       AnswerForm::kIds, answer),
            0);
  EXPECT_EQ(answer.code, "unavailable");
}

TEST(AnswerTest, RefusesWhatIsNoAnswer) {
  Answer answer;
  EXPECT_EQ(ReadAnswer("SSH-2.0-x\r\n\r\n", AnswerForm::kLeaf, answer), -1);
  EXPECT_EQ(ReadAnswer("HTTP/1.1 200 OK\r\n\r\n42", AnswerForm::kLeaf, answer), -1) << "no length";
  EXPECT_EQ(ReadAnswer(Ok("4x2"), AnswerForm::kLeaf, answer), -1);
  EXPECT_EQ(ReadAnswer(Ok(""), AnswerForm::kLeaf, answer), -1);
  EXPECT_EQ(ReadAnswer(Ok(R"({"ids":[]})"), AnswerForm::kIds, answer), -1);
}

}  // namespace
}  // namespace leaf::tools
