#include "admin/metrics.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <set>
#include <sstream>

#include "admin/admin_fixture_testing.h"
#include "admin/exposition.h"

namespace leaf {
namespace {

class MetricsTest : public AdminTest {
 protected:
  std::string Scrape() {
    const http1::Response answer = AdminGet("/metrics");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
    return answer.body;
  }
  /// The sample's value; empty if there is none.
  static std::string Value(const std::string& text, const std::string& sample) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(sample + " ")) return line.substr(sample.size() + 1);
    }
    return {};
  }
};

/// What `promtool check metrics` says; empty if it is content.
std::string Promtool(const std::string& text) {
  const std::string folder = testing::TempDir();
  const std::string in = folder + "/metrics.txt", out = folder + "/promtool.txt";
  FILE* file = std::fopen(in.c_str(), "w");
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  const int status =
      std::system(("promtool check metrics < " + in + " > " + out + " 2>&1").c_str());
  std::string said;
  file = std::fopen(out.c_str(), "r");
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) said += static_cast<char>(c);
  std::fclose(file);
  if (WEXITSTATUS(status) != 0 && said.empty())
    said = "promtool ended with " + std::to_string(WEXITSTATUS(status));
  std::remove(in.c_str());
  std::remove(out.c_str());
  return said;
}

TEST(ExpositionTest, LabelValuesAreEscaped) {
  Exposition out;
  out.Family("a", "gauge", "Help.");
  out.Sample({{"l", "x\\y\"z\n"}}, std::int64_t{-1});
  out.Sample({}, 0.25, "_sum");
  EXPECT_EQ(std::move(out).Take(),
            "# HELP a Help.\n# TYPE a gauge\na{l=\"x\\\\y\\\"z\\n\"} -1\na_sum 0.25\n");
}

TEST(ExpositionTest, NumbersReadBack) {
  EXPECT_EQ(Exposition::Number(5e-06), "5e-06");
  EXPECT_EQ(Exposition::Number(0.1), "0.1");
  EXPECT_EQ(Exposition::Number(3), "3");
}

TEST_F(MetricsTest, PromtoolIsContent) {
  Take("order", 3);
  rig_.store.Put("quote\"back\\slash\nline", 1, 10);
  Take("quote\"back\\slash\nline");
  Change(Method::kPost, "/api/v1/tags/order/drop");
  stats_.Took(Protocol::kHttp, std::chrono::microseconds(7), 5);
  EXPECT_EQ(Promtool(Scrape()), "");
  Disable();
  EXPECT_EQ(Promtool(Scrape()), "");
}

TEST_F(MetricsTest, TellsWhatATagDid) {
  Take("order", 3);
  Take("order", 2);
  const std::string text = Scrape();
  EXPECT_EQ(Value(text, "leafd_build_info{version=\"1.2.3\"}"), "1");
  EXPECT_EQ(Value(text, "leafd_ids_issued_total{tag=\"order\",mode=\"segment\"}"), "5");
  EXPECT_EQ(Value(text, "leafd_segment_remaining_ids{tag=\"order\"}"), "995");
  EXPECT_EQ(Value(text, "leafd_segment_step_ids{tag=\"order\"}"), "1000");
  EXPECT_EQ(Value(text, "leafd_segment_refills_total{tag=\"order\"}"), "1");
  EXPECT_EQ(Value(text, "leafd_segment_waits_total{tag=\"order\"}"), "1");
  EXPECT_EQ(Value(text, "leafd_segment_regressed{tag=\"order\"}"), "0");
  EXPECT_EQ(Value(text, "leafd_tags{state=\"known\"}"), "2");
  EXPECT_EQ(Value(text, "leafd_tags{state=\"active\"}"), "1");
  EXPECT_EQ(Value(text, "leafd_ready{mode=\"segment\"}"), "1");
  EXPECT_EQ(text.find("tag=\"user\""), std::string::npos) << "never asked for";
}

TEST_F(MetricsTest, DiscardedIdsNameTheirReason) {
  Take("order");
  Change(Method::kPost, "/api/v1/tags/order/drop");
  const std::string text = Scrape();
  EXPECT_EQ(Value(text, "leafd_ids_discarded_total{tag=\"order\",reason=\"dropped\"}"), "999")
      << text;
}

TEST_F(MetricsTest, TellsTheStore) {
  rig_.store.status.calls = 7;
  rig_.store.status.failures = 2;
  rig_.store.status.sessions = 3;
  std::string text = Scrape();
  EXPECT_EQ(Value(text, "leafd_store_up{store=\"map\"}"), "1");
  EXPECT_EQ(Value(text, "leafd_store_calls_total{store=\"map\"}"), "7");
  EXPECT_EQ(Value(text, "leafd_store_call_failures_total{store=\"map\"}"), "2");
  EXPECT_EQ(Value(text, "leafd_store_sessions{store=\"map\"}"), "3");
  EXPECT_EQ(Value(text, "leafd_store_durability{store=\"map\",level=\"power\"}"), "1");
  EXPECT_EQ(Value(text, "leafd_store_durability{store=\"map\",level=\"replicated\"}"), "0");
  rig_.store.GoDown("gone");
  EXPECT_EQ(Value(Scrape(), "leafd_store_up{store=\"map\"}"), "0");
}

TEST_F(MetricsTest, TheHistogramCumulatesOverReactors) {
  RequestStats other;
  stats_.Took(Protocol::kHttp, std::chrono::microseconds(7), 5);
  other.Took(Protocol::kHttp, std::chrono::milliseconds(2), 1);
  other.Took(Protocol::kHttp, std::chrono::seconds(60), 1);
  stats_.Count(Protocol::kHttp, RequestStats::kOk);
  other.Count(Protocol::kHttp, static_cast<int>(Code::kNotFound));
  AdminContext context = Context();
  context.stats = [&] { return std::vector<const RequestStats*>{&stats_, &other}; };
  Build(std::move(context));
  const std::string text = Scrape();
  const auto bucket = [&](const std::string& le) {
    return Value(text,
                 "leafd_request_duration_seconds_bucket{protocol=\"http\",le=\"" + le + "\"}");
  };
  EXPECT_EQ(bucket("5e-06"), "0");
  EXPECT_EQ(bucket("1e-05"), "5");
  EXPECT_EQ(bucket("0.005"), "6");
  EXPECT_EQ(bucket("3"), "6");
  EXPECT_EQ(bucket("+Inf"), "7");
  EXPECT_EQ(Value(text, "leafd_request_duration_seconds_count{protocol=\"http\"}"), "7");
  EXPECT_EQ(Value(text, "leafd_requests_total{protocol=\"http\",code=\"ok\"}"), "1");
  EXPECT_EQ(Value(text, "leafd_requests_total{protocol=\"http\",code=\"not_found\"}"), "1");
}

TEST_F(MetricsTest, TellsTheProcess) {
  const std::string text = Scrape();
  EXPECT_GT(std::stod(Value(text, "process_resident_memory_bytes")), 1e6);
  EXPECT_GT(std::stod(Value(text, "process_open_fds")), 2);
  EXPECT_GE(std::stod(Value(text, "process_max_fds")), 64);
  EXPECT_GE(std::stod(Value(text, "process_threads")), 1);
  EXPECT_EQ(std::stod(Value(text, "process_start_time_seconds")), 1567733700.834);
}

TEST_F(MetricsTest, AtMostAThousandTagsHaveALabelAndTheRestIsSummed) {
  constexpr int kTags = 1100;
  for (int i = 0; i < kTags; ++i) rig_.store.Put("t" + std::to_string(i), 1, 10);
  rig_.store.Put("__other__", 1, 10);
  rig_.store.Put("\xFF", 1, 10);
  rig_.Advance(std::chrono::seconds(120));
  for (int i = 0; i < kTags; ++i) Take("t" + std::to_string(i));
  Take("__other__");
  Take("\xFF");
  const std::string text = Scrape();
  std::set<std::string> labels;
  std::istringstream lines(text);
  constexpr std::string_view kName = "leafd_ids_issued_total{tag=\"";
  std::int64_t issued = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kName)) continue;
    labels.insert(line.substr(kName.size(), line.find('"', kName.size()) - kName.size()));
    issued += std::stoll(line.substr(line.rfind(' ') + 1));
  }
  EXPECT_EQ(labels.size(), Metrics::kTagLabels + 1);
  EXPECT_TRUE(labels.contains("__other__"));
  EXPECT_EQ(issued, kTags + 2);
  EXPECT_EQ(Value(text, std::string(kName) + "__other__\",mode=\"segment\"}"), "102");
  EXPECT_EQ(Promtool(text), "");
}

}  // namespace
}  // namespace leaf
