#include "admin/body.h"

#include <gtest/gtest.h>

#include <string>

namespace leaf {
namespace {

TEST(BodyTest, PutTakesAStepAndPerhapsAMaxId) {
  const auto whole = ParsePutBody(R"( { "max_id" : "9223372036854775806", "step" : 2147483647 } )");
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->step, 2147483647);
  EXPECT_EQ(whole->max_id, 9223372036854775806);
  const auto step = ParsePutBody(R"({"step":1})");
  ASSERT_TRUE(step.ok());
  EXPECT_FALSE(step->max_id.has_value());
  EXPECT_EQ(ParsePutBody(R"({"step":1,"max_id":"0"})")->max_id, 0);
}

TEST(BodyTest, PutRefusesWhatItDoesNotUnderstand) {
  for (const char* body : {"",
                           " ",
                           "null",
                           "1",
                           "\"x\"",
                           "[]",
                           "[{}]",
                           "{",
                           "{}",
                           R"({"step":1)",
                           R"({"step":1}x)",
                           R"({"step":1}{})",
                           R"({'step':1})",
                           R"({"step":1,})",
                           R"({"step":01})",
                           R"({"step":"1"})",
                           R"({"step":1.0})",
                           R"({"step":1e3})",
                           R"({"step":null})",
                           R"({"step":true})",
                           R"({"step":[1]})",
                           R"({"step":{"a":1}})",
                           R"({"step":0})",
                           R"({"step":-1})",
                           R"({"step":2147483648})",
                           R"({"step":9223372036854775808})",
                           R"({"step":99999999999999999999})",
                           R"({"step":1,"step":1})",
                           R"({"step":1,"\u0073tep":2})",
                           R"({"Step":1})",
                           R"({"step":1,"description":"x"})",
                           R"({"step":1,"max_id":1})",
                           R"({"step":1,"max_id":""})",
                           R"({"step":1,"max_id":"-1"})",
                           R"({"step":1,"max_id":"+1"})",
                           R"({"step":1,"max_id":" 1"})",
                           R"({"step":1,"max_id":"1x"})",
                           R"({"step":1,"max_id":"9223372036854775807"})",
                           R"({"step":1,"max_id":null})",
                           "{\"step\":1,\"max_id\":\"\xFF\"}",
                           "/**/{\"step\":1}"}) {
    const auto put = ParsePutBody(body);
    ASSERT_FALSE(put.ok()) << body;
    EXPECT_EQ(put.error().code, Code::kInvalidArgument);
    EXPECT_FALSE(put.error().message.empty());
  }
}

TEST(BodyTest, TheErrorNamesTheKey) {
  EXPECT_NE(ParsePutBody(R"({"step":1,"step":1})").error().message.find("\"step\" is repeated"),
            std::string::npos);
  EXPECT_NE(ParsePutBody(R"({"step":1,"stop":1})").error().message.find("unknown key \"stop\""),
            std::string::npos);
  EXPECT_NE(ParsePutBody(R"({"step":[]})").error().message.find("\"step\" has the wrong type"),
            std::string::npos);
  EXPECT_NE(ParsePutBody(R"({"max_id":"1"})").error().message.find("\"step\" must be"),
            std::string::npos);
}

TEST(BodyTest, LargeAndDeepBodiesEndEarly) {
  EXPECT_FALSE(ParsePutBody("{\"step\":" + std::string(60000, '[')).ok());
  EXPECT_FALSE(ParsePutBody("{\"" + std::string(60000, 'x') + "\":1}").ok());
  EXPECT_FALSE(ParsePutBody("{\"step\":1,\"max_id\":\"" + std::string(60000, '1') + "\"}").ok());
  EXPECT_FALSE(ParsePutBody("{\"step\":" + std::string(60000, '1') + "}").ok());
  std::string many = "{\"step\":1";
  for (int i = 0; i < 5000; ++i) many += ",\"k" + std::to_string(i) + "\":1";
  EXPECT_FALSE(ParsePutBody(many + "}").ok());
}

TEST(BodyTest, ResumeTakesASkip) {
  EXPECT_EQ(*ParseResumeBody(R"({"skip":0})"), 0);
  EXPECT_EQ(*ParseResumeBody("{}"), 0) << "the line that the error prints says so";
  EXPECT_EQ(*ParseResumeBody(R"({"skip":9223372036854775807})"), 9223372036854775807);
  for (const char* body :
       {"", R"({"skip":-1})", R"({"skip":"1"})", R"({"skip":1,"x":1})", R"({"skip":1.5})"}) {
    EXPECT_FALSE(ParseResumeBody(body).ok()) << body;
  }
}

TEST(BodyTest, AnEmptyBodyIsNothingOrAnEmptyObject) {
  for (const char* body : {"", " \r\n", "{}", " { } "})
    EXPECT_TRUE(ParseEmptyBody(body).ok()) << body;
  for (const char* body : {"x", "[]", R"({"a":1})", "null"})
    EXPECT_FALSE(ParseEmptyBody(body).ok()) << body;
}

}  // namespace
}  // namespace leaf
