#include <gtest/gtest.h>

#include "admin/admin_fixture_testing.h"

namespace leaf {
namespace {

using MainServiceTest = AdminTest;
using http1::Response;

constexpr const char* kVector = "/decodeSnowflakeId?snowflakeId=1169786042799259000";
constexpr const char* kVectorJson =
    R"j({"workerId":"39","sequenceId":"3448","timestamp":"1567733700834(2019-09-06 01:35:00.834)"})j";
constexpr const char* kErrorMessage = "{\"errorMsg\":\"snowflake Id反解析发生异常!\"}";

/// The host's zone for the life of the object.
class Zone {
 public:
  explicit Zone(const char* name) {
    setenv("TZ", name, 1);
    tzset();
  }
  ~Zone() {
    unsetenv("TZ");
    tzset();
  }
};

std::string NotFoundBody(const std::string& path) {
  return "{\"timestamp\":1796071566670,\"status\":404,\"error\":\"Not Found\",\"message\":\"No "
         "message available\",\"path\":\"" +
         path + "\"}";
}

TEST_F(MainServiceTest, APathThatNobodyServesIsLeafs404) {
  for (const char* path :
       {"/", "/nothing", "/api/segment/get", "/api/segment/get/", "/api/segment/get/a/b", "//",
        "/api//segment/get/a", "/api/segment/get/a;v=1", "/api/snowflake/get/", "/metrics",
        "/readyz", "/index.html"}) {
    const Response answer = Main(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.content_type, "application/json;charset=UTF-8");
    EXPECT_NE(answer.extra_headers.find("X-Leafd-Code: not_found\r\n"), std::string::npos);
    EXPECT_EQ(answer.body, NotFoundBody(path));
  }
}

TEST_F(MainServiceTest, ABrowserGets404AsAPage) {
  const Response answer = Main(Ask{.target = "/nothing", .accept = "text/html"});
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.content_type, "text/html;charset=UTF-8");
  EXPECT_NE(answer.body.find("There was an unexpected error (type=Not Found, status=404)."),
            std::string::npos);
}

TEST_F(MainServiceTest, BelowApiV1EveryErrorIsAProblem) {
  for (const char* path :
       {"/api/v1/", "/api/v1/nothing", "/api/v1/ids/", "/api/v1/tags", "/api/v1/status"}) {
    const Response answer = Main(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.content_type, "application/problem+json");
  }
  EXPECT_EQ(Main("/api/v1/%zz").status, 400);
}

TEST_F(MainServiceTest, OptionsTellsLeafsMethodsAndTraceIsRefused) {
  for (const char* path :
       {"/api/segment/get/order", "/api/snowflake/get/x", "/decodeSnowflakeId", "/cache", "/db/"}) {
    const Response answer = Main(Ask{.method = Method::kOptions, .target = path});
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_NE(answer.extra_headers.find("Allow: GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS\r\n"),
              std::string::npos);
    EXPECT_TRUE(answer.body.empty());
  }
  EXPECT_EQ(Main(Ask{.method = Method::kOptions, .target = "/nothing"}).status, 404);
  const Response trace = Main(Ask{.method = Method::kTrace, .target = "/api/segment/get/order"});
  EXPECT_EQ(trace.status, 405);
  EXPECT_NE(trace.extra_headers.find("Allow: "), std::string::npos);
}

TEST_F(MainServiceTest, AnUnknownMethodIs501) {
  EXPECT_EQ(Main(Ask{.method = Method::kOther, .target = "/api/segment/get/order"}).status, 501);
  EXPECT_EQ(Main(Ask{.method = Method::kOther, .target = "/api/v1/ids/order"}).status, 501);
  EXPECT_EQ(Main(Ask{.method = Method::kConnect, .target = ""}).status, 501);
}

TEST_F(MainServiceTest, ABadEscapeOnLeafsPathsIs400WithoutABody) {
  for (const char* path :
       {"/%zz", "/api/snowflake/get/a%2Fb", "/api/snowflake/get/%", "/x%00", "/decode%5C"}) {
    const Response answer = Main(path);
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_TRUE(answer.body.empty());
    EXPECT_TRUE(answer.content_type.empty());
  }
}

TEST_F(MainServiceTest, LeafsDecoderReadsWhatJavaReads) {
  const Zone utc("UTC");
  EXPECT_EQ(Main(kVector).body, kVectorJson);
  EXPECT_EQ(Main(kVector).content_type, "application/json;charset=UTF-8");
  EXPECT_EQ(
      Main("/decodeSnowflakeId/?snowflakeId=0").body,
      R"j({"workerId":"0","sequenceId":"0","timestamp":"1288834974657(2010-11-04 01:42:54.657)"})j");
  EXPECT_EQ(
      Main("/decodeSnowflakeId?snowflakeId=9223372036854775807").body,
      R"j({"workerId":"1023","sequenceId":"4095","timestamp":"3487858230208(2080-07-10 17:30:30.208)"})j");
  EXPECT_EQ(
      Main("/decodeSnowflakeId?snowflakeId=-1").body,
      R"j({"workerId":"1023","sequenceId":"4095","timestamp":"1288834974656(2010-11-04 01:42:54.656)"})j");
  EXPECT_EQ(
      Main("/decodeSnowflakeId?snowflakeId=%2B5").body,
      R"j({"workerId":"0","sequenceId":"5","timestamp":"1288834974657(2010-11-04 01:42:54.657)"})j");
}

TEST_F(MainServiceTest, LeafsDecoderAnswersErrorMsgForWhatIsNoNumber) {
  for (const char* id : {"9223372036854775808", "abc", "", "%205", "5%20", "+5", "1.0", "--1",
                         "%2B-1", "1&snowflakeId=1"}) {
    const Response answer = Main(std::string("/decodeSnowflakeId?snowflakeId=") + id);
    EXPECT_EQ(answer.status, 200) << id;
    EXPECT_EQ(answer.body, kErrorMessage) << id;
  }
}

TEST_F(MainServiceTest, LeafsDecoderTellsTheTimeOfTheHostsZone) {
  const Zone shanghai("Asia/Shanghai");
  EXPECT_NE(Main(kVector).body.find("(2019-09-06 09:35:00.834)"), std::string::npos)
      << Main(kVector).body;
}

TEST_F(MainServiceTest, LeafsDecoderTakesAPostedForm) {
  const Zone utc("UTC");
  Ask ask{.method = Method::kPost,
          .target = "/decodeSnowflakeId",
          .body = "snowflakeId=1169786042799259000",
          .content_type = "application/x-www-form-urlencoded; charset=UTF-8"};
  EXPECT_EQ(Main(ask).body, kVectorJson);
  ask.content_type = "application/json";
  EXPECT_EQ(Main(ask).status, 400);
}

TEST_F(MainServiceTest, LeafsDecoderWithoutAnIdIs400) {
  const Response json = Main("/decodeSnowflakeId");
  EXPECT_EQ(json.status, 400);
  EXPECT_EQ(
      json.body,
      R"({"timestamp":1796071566670,"status":400,"error":"Bad Request","exception":)"
      R"("org.springframework.web.bind.MissingServletRequestParameterException","message":)"
      R"("Required String parameter 'snowflakeId' is not present","path":"/decodeSnowflakeId"})");
  const Response page = Main(Ask{.target = "/decodeSnowflakeId", .accept = "text/html"});
  EXPECT_EQ(page.status, 400);
  EXPECT_NE(page.body.find("Required String parameter &#39;snowflakeId&#39; is not present"),
            std::string::npos);
}

TEST_F(MainServiceTest, LeafsDecoderSpeaksJsonOnly) {
  const Response page = Main(Ask{.target = kVector, .accept = "text/html"});
  EXPECT_EQ(page.status, 406);
  EXPECT_NE(page.body.find("Could not find acceptable representation"), std::string::npos);
  EXPECT_EQ(Main(Ask{.target = kVector, .accept = "text/plain"}).status, 406);
  EXPECT_TRUE(Main(Ask{.target = kVector, .accept = "text/plain"}).body.empty());
  EXPECT_EQ(Main(Ask{.target = kVector, .accept = "text/html,*/*;q=0.8"}).status, 200);
}

TEST_F(MainServiceTest, DecodeTellsTheFieldsOfAnId) {
  EXPECT_EQ(
      Main("/api/v1/decode/1169786042799259000").body,
      R"({"id":"1169786042799259000","layout":"leaf","time":"2019-09-06T01:35:00.834Z","time_ms":1567733700834,)"
      R"("worker":39,"sequence":3448})");
  EXPECT_EQ(
      Main("/api/v1/decode/4097?layout=js53").body,
      R"({"id":"4097","layout":"js53","time":"2020-01-01T00:00:00.001Z","time_ms":1577836800001,"worker":0,"sequence":1})");
}

TEST_F(MainServiceTest, DecodeRefusesWhatIsNoIdOrNoLayout) {
  for (const char* path :
       {"/api/v1/decode/-1", "/api/v1/decode/9223372036854775808", "/api/v1/decode/1a",
        "/api/v1/decode/", "/api/v1/decode/%2B1", "/api/v1/decode/1?layout=other",
        "/api/v1/decode/1?layout=", "/api/v1/decode/1?layout=leaf&layout=leaf"}) {
    EXPECT_EQ(Main(path).status, 400) << path;
  }
  EXPECT_EQ(Main("/api/v1/decode/1?layout=custom").status, 400);
  EXPECT_EQ(Main(Ask{.method = Method::kPost, .target = "/api/v1/decode/1"}).status, 405);
  EXPECT_EQ(Main("/api/v1/decode/1/2").status, 404);
}

TEST_F(MainServiceTest, PagesAreThereOnlyWhenConfigured) {
  EXPECT_EQ(Main("/cache").status, 200);
  EXPECT_EQ(Main(Ask{.target = "/db", .accept = "application/json"}).content_type,
            "text/html;charset=UTF-8");
  EXPECT_EQ(Main("/css/bootstrap.min.css").content_type, "text/css");
  AdminContext context = Context();
  context.pages_on_main = false;
  Build(std::move(context));
  for (const char* path : {"/cache", "/db", "/css/bootstrap.min.css"})
    EXPECT_EQ(Main(path).status, 404) << path;
}

TEST_F(MainServiceTest, PagesOfADisabledModeAreLeafsError) {
  Disable();
  const Response json = Main("/cache");
  EXPECT_EQ(json.status, 500);
  EXPECT_EQ(
      json.body,
      R"({"timestamp":1796071566670,"status":500,"error":"Internal Server Error","exception":)"
      R"("java.lang.IllegalArgumentException","message":"You should config leaf.segment.enable=true first","path":"/cache"})");
  const Response page = Main(Ask{.target = "/db", .accept = "text/html"});
  EXPECT_EQ(page.status, 500);
  EXPECT_NE(page.body.find("You should config leaf.segment.enable=true first"), std::string::npos);
}

TEST_F(MainServiceTest, TheStoresWordsStayOffTheMainListener) {
  rig_.store.GoDown("Access denied for user 'leaf'@'db1'");
  const Response answer = Main("/db");
  EXPECT_EQ(answer.status, 500);
  EXPECT_NE(answer.extra_headers.find("X-Leafd-Code: unavailable"), std::string::npos);
  EXPECT_EQ(answer.body.find("db1"), std::string::npos);
}

TEST_F(MainServiceTest, ProbesAreThereOnlyWhenConfigured) {
  AdminContext context = Context();
  context.probes_on_main = true;
  Build(std::move(context));
  for (const char* path : {"/livez", "/readyz", "/healthz", "/metrics"}) {
    EXPECT_EQ(Main(path).status, 200) << path;
    EXPECT_EQ(Main(Ask{.method = Method::kHead, .target = path}).status, 200) << path;
    EXPECT_EQ(Main(Ask{.method = Method::kPost, .target = path}).status, 405) << path;
  }
}

}  // namespace
}  // namespace leaf
