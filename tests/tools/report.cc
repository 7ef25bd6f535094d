// How a report is told, as JSON and as text.

#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "check.h"

namespace leaf::tools {
namespace {

std::string Quote(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

using Field = std::pair<const char*, std::int64_t TagReport::*>;
constexpr Field kFields[] = {
    {"answers", &TagReport::answers},
    {"ids", &TagReport::ids},
    {"first", &TagReport::first},
    {"last", &TagReport::last},
    {"failed", &TagReport::failed},
    {"unsure", &TagReport::unsure},
    {"unsure_ids", &TagReport::unsure_ids},
    {"duplicates", &TagReport::duplicates},
    {"connection_breaches", &TagReport::connection_breaches},
    {"server_breaches", &TagReport::server_breaches},
    {"global_breaches", &TagReport::global_breaches},
    {"beyond", &TagReport::beyond},
    {"lost", &TagReport::lost},
};

bool IsSum(std::int64_t TagReport::*member) {
  return member != &TagReport::first && member != &TagReport::last;
}

std::string ReportJson(const TagReport& report) {
  std::ostringstream out;
  const char* separator = "{";
  for (const auto& [name, member] : kFields) {
    out << separator << '"' << name << "\":" << report.*member;
    separator = ",";
  }
  out << '}';
  return out.str();
}

const char* VerdictName(CheckReport::Verdict verdict) {
  switch (verdict) {
    case CheckReport::Verdict::kClean:
      return "clean";
    case CheckReport::Verdict::kBreach:
      return "breach";
    case CheckReport::Verdict::kVoid:
      return "void";
  }
  return "";
}

}  // namespace

void TagReport::Add(const TagReport& other) {
  for (const auto& [name, member] : kFields) {
    if (IsSum(member)) this->*member += other.*member;
  }
}

std::string CheckReport::Json() const {
  std::string out = std::string("{\"verdict\":\"") + VerdictName(verdict) +
                    "\",\"total\":" + ReportJson(total) +
                    ",\"truncated_files\":" + std::to_string(truncated_files) +
                    ",\"spilled\":" + (spilled ? "true" : "false") + ",\"tags\":{";
  for (const auto& [name, report] : tags) {
    if (out.back() != '{') out += ',';
    out += Quote(name) + ':' + ReportJson(report);
  }
  out += "},\"findings\":[";
  for (const std::string& finding : findings) {
    if (out.back() != '[') out += ',';
    out += Quote(finding);
  }
  return out + "]}\n";
}

std::string CheckReport::Text() const {
  std::ostringstream out;
  out << "verdict: " << VerdictName(verdict) << '\n';
  for (const auto& [field, member] : kFields) {
    if (IsSum(member)) out << field << ": " << total.*member << '\n';
  }
  out << "tags: " << tags.size() << "\ntruncated files: " << truncated_files
      << "\nspilled to disk: " << (spilled ? "yes" : "no") << '\n';
  for (const std::string& finding : findings) out << "! " << finding << '\n';
  return out.str();
}

}  // namespace leaf::tools
