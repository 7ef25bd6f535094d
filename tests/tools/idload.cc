// A load client of leafd over HTTP/1.1. Prints one line of JSON. Ends 0: it ran, 1: it could not,
// 2: usage.

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include "load.h"

namespace {

using leaf::tools::AnswerForm;
using leaf::tools::LoadOptions;

constexpr std::string_view kUsage =
    "usage: idload --target HOST:PORT... (--tag T... | --tags PREFIX:FROM:TO) (--duration S | "
    "--requests N | --rounds R)\n"
    "  --connections N   1       --pipeline P   1       requests under way on each\n"
    "  --path leaf|ids|ranges|leaf-snowflake|snowflake  what is asked for; snowflake knows no tag, "
    "it only names the history\n"
    "  --n K             1       ids a request (ids, ranges, snowflake)\n"
    "  --rate R          as fast as they are answered   requests/s over all connections\n"
    "  --rounds R        each connection sends P requests a round; the next begins when all are "
    "answered\n"
    "  --barrier         nothing is sent before every connection stands\n"
    "  --timeout S       10      then the request counts as unsure\n"
    "  --give-up S       30      without any connection the run ends\n"
    "  --history FILE    for idcheck\n";

template <typename T>
bool ParseNumber(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

bool AddTags(std::string_view text, LoadOptions& out) {
  const std::size_t last = text.rfind(':');
  const std::size_t middle =
      last == 0 || last == std::string_view::npos ? last : text.rfind(':', last - 1);
  int from = 0, to = 0;
  if (middle == std::string_view::npos ||
      !ParseNumber(text.substr(middle + 1, last - middle - 1), from) ||
      !ParseNumber(text.substr(last + 1), to)) {
    return false;
  }
  for (int i = from; i < to; ++i)
    out.tags.push_back(std::string(text.substr(0, middle)) + std::to_string(i));
  return true;
}

bool ParsePath(std::string_view text, LoadOptions& out) {
  struct Path {
    std::string_view name;
    AnswerForm form;
    bool snowflake;
  };
  static constexpr Path kPaths[] = {
      {"leaf", AnswerForm::kLeaf, false},     {"ids", AnswerForm::kIds, false},
      {"ranges", AnswerForm::kRanges, false}, {"leaf-snowflake", AnswerForm::kLeaf, true},
      {"snowflake", AnswerForm::kIds, true},
  };
  for (const Path& path : kPaths) {
    if (path.name != text) continue;
    out.form = path.form;
    out.snowflake = path.snowflake;
    return true;
  }
  return false;
}

bool ParseOption(std::string_view name, std::string_view value, LoadOptions& out) {
  if (name == "--target") return out.targets.emplace_back(value).find(':') != std::string::npos;
  if (name == "--tag") return !out.tags.emplace_back(value).empty();
  if (name == "--tags") return AddTags(value, out);
  if (name == "--path") return ParsePath(value, out);
  if (name == "--connections") return ParseNumber(value, out.connections) && out.connections > 0;
  if (name == "--pipeline") return ParseNumber(value, out.pipeline) && out.pipeline > 0;
  if (name == "--n") return ParseNumber(value, out.n) && out.n > 0;
  if (name == "--duration") return ParseNumber(value, out.duration_s);
  if (name == "--requests") return ParseNumber(value, out.requests);
  if (name == "--rounds") return ParseNumber(value, out.rounds);
  if (name == "--rate") return ParseNumber(value, out.rate);
  if (name == "--timeout") return ParseNumber(value, out.timeout_s);
  if (name == "--give-up") return ParseNumber(value, out.give_up_s);
  if (name == "--history") return !(out.history = value).empty();
  return false;
}

bool Parse(int argc, char** argv, LoadOptions& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--barrier") {
      out.barrier = true;
    } else if (i + 1 == argc || !ParseOption(name, argv[++i], out)) {
      return false;
    }
  }
  const bool ends = out.duration_s > 0 || out.requests > 0 || out.rounds > 0;
  return ends && !out.targets.empty() && !out.tags.empty();
}

}  // namespace

int main(int argc, char** argv) {
  LoadOptions options;
  if (!Parse(argc, argv, options)) {
    std::fputs(kUsage.data(), stderr);
    return 2;
  }
  leaf::tools::LoadReport report = leaf::tools::RunLoad(options);
  if (!report.error.empty()) {
    std::fprintf(stderr, "idload: %s\n", report.error.c_str());
    return 1;
  }
  std::fputs(report.Json().c_str(), stdout);
  return report.gave_up ? 1 : 0;
}
