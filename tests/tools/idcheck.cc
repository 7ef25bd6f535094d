// Judges histories of id clients. Ends 0: clean, 1: a breach, 2: it could not be judged, 3: void,
// because too little happened.

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "check.h"

namespace {

using leaf::tools::Checker;
using leaf::tools::CheckOptions;
using leaf::tools::CheckReport;

constexpr std::string_view kUsage =
    "usage: idcheck [OPTIONS] FILE...\n"
    "  --high TAG=MAX      no id of the tag may reach it; below it, what was not seen is lost\n"
    "  --low TAG=FIRST     where the tag began, if not at its smallest id\n"
    "  --max-lost TAG=N    more lost ids are a breach; needs --high\n"
    "  --min-ids N         fewer acknowledged ids: the run is void (1)\n"
    "  --global-order      demand real-time order across servers too\n"
    "  --memory MIB        beyond it, sort on disk (1024)\n"
    "  --temp FOLDER       for what is sorted there (TMPDIR, /tmp)\n"
    "  --json              the report as JSON\n";

struct Arguments {
  CheckOptions options;
  bool json = false;
  std::vector<std::string> files;
};

bool ParseNumber(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParsePair(std::string_view text, std::map<std::string, std::int64_t>& out) {
  const std::size_t equals = text.rfind('=');
  return equals != std::string_view::npos &&
         ParseNumber(text.substr(equals + 1), out[std::string(text.substr(0, equals))]);
}

bool ParseMemory(std::string_view text, std::size_t& bytes) {
  constexpr std::int64_t kMostMib = std::int64_t{1} << 24;
  std::int64_t mib = 0;
  if (!ParseNumber(text, mib) || mib < 1 || mib > kMostMib) return false;
  bytes = static_cast<std::size_t>(mib) << 20;
  return true;
}

bool ParseOption(std::string_view name, std::string_view value, CheckOptions& options) {
  if (name == "--high") return ParsePair(value, options.high);
  if (name == "--low") return ParsePair(value, options.low);
  if (name == "--max-lost") return ParsePair(value, options.max_lost);
  if (name == "--min-ids") return ParseNumber(value, options.min_ids);
  if (name == "--temp") return !(options.folder = value).empty();
  if (name == "--memory") return ParseMemory(value, options.memory_bytes);
  return false;
}

bool Parse(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      out.json = true;
    } else if (word == "--global-order") {
      out.options.global_order = true;
    } else if (!word.starts_with("--")) {
      out.files.emplace_back(word);
    } else if (i + 1 == argc || !ParseOption(word, argv[++i], out.options)) {
      return false;
    }
  }
  return !out.files.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, arguments)) {
    std::fputs(kUsage.data(), stderr);
    return 2;
  }
  Checker checker(arguments.options);
  for (const std::string& file : arguments.files) {
    const std::string error = checker.Add(file);
    if (error.empty()) continue;
    std::fprintf(stderr, "idcheck: %s\n", error.c_str());
    return 2;
  }
  const CheckReport report = checker.Finish();
  if (!report.error.empty()) {
    std::fprintf(stderr, "idcheck: %s\n", report.error.c_str());
    return 2;
  }
  std::fputs((arguments.json ? report.Json() : report.Text()).c_str(), stdout);
  switch (report.verdict) {
    case CheckReport::Verdict::kClean:
      return 0;
    case CheckReport::Verdict::kBreach:
      return 1;
    case CheckReport::Verdict::kVoid:
      return 3;
  }
  return 2;
}
