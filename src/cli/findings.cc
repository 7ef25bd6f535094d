#include "cli/findings.h"

#include <algorithm>
#include <utility>

#include "codec/text.h"

namespace leaf::doctor {
namespace {

// How a remedy that can be typed begins.
constexpr std::string_view kOpeners[] = {
    "BEGIN READ WRITE; ", "ALTER ",       "CREATE TABLE ", "GRANT ",    "SET GLOBAL ",
    "etcdctl role",       "etcdctl put ", "chmod ",        "mkdir -p ", "innodb_flush_method = "};
constexpr std::string_view kSeparators[] = {": ", "; ", ", "};

struct Cut {
  std::size_t sentence_end = std::string_view::npos, remedy = std::string_view::npos;
};

// The first statement behind a separator.
Cut FindStatement(std::string_view message) {
  Cut first;
  for (const std::string_view opener : kOpeners) {
    for (std::size_t at = message.find(opener); at != std::string_view::npos;
         at = message.find(opener, at + 1)) {
      if (at < 2 || at >= first.remedy) continue;
      const std::string_view before = message.substr(at - 2, 2);
      if (std::find(std::begin(kSeparators), std::end(kSeparators), before) ==
          std::end(kSeparators)) {
        continue;
      }
      first = {at - 2, at};
    }
  }
  return first;
}

// A line stays a line, whatever names and servers put into it.
void AppendLine(std::string_view text, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
}

void AppendMember(std::string_view name, std::string_view value, std::string& out) {
  AppendJson(name, out);
  out += ':';
  AppendJson(value, out);
}

void AppendJsonFinding(const Finding& finding, std::string& out) {
  out += '{';
  AppendMember("severity", SeverityName(finding.severity), out);
  out += ',';
  AppendMember("check", finding.check, out);
  out += ',';
  AppendMember("subject", finding.subject, out);
  out += ',';
  AppendMember("found", finding.found, out);
  out += ',';
  AppendMember("mend", finding.mend, out);
  out += '}';
}

}  // namespace

std::string_view SeverityName(Severity severity) noexcept {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "";
}

Said SplitRemedy(std::string_view message) {
  Cut cut = FindStatement(message);
  const bool statement = cut.remedy != std::string_view::npos;
  if (!statement) {
    const std::size_t semicolon = message.rfind("; ");
    if (semicolon == std::string_view::npos) return {std::string(message), ""};
    cut = {semicolon, semicolon + 2};
  }
  Said said{std::string(message.substr(0, cut.sentence_end)),
            std::string(message.substr(cut.remedy))};
  // What is in brackets behind the statement is a remark, and no part of it.
  const std::size_t remark = statement ? said.mend.find("; (") : std::string::npos;
  if (remark != std::string::npos) {
    said.found += " " + said.mend.substr(remark + 2);
    said.mend.resize(remark + 1);
  }
  return said;
}

void Report::Add(Finding finding) {
  const bool known = std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
    return other.severity == finding.severity && other.found == finding.found;
  });
  if (!known) findings.push_back(std::move(finding));
}

void Report::Ok(std::string check, std::string subject, std::string found) {
  Add({Severity::kOk, std::move(check), std::move(subject), std::move(found), ""});
}

void Report::Say(Severity severity, std::string check, std::string subject,
                 std::string_view message, std::string_view remedy) {
  Said said = SplitRemedy(message);
  if (said.mend.empty()) said.mend = remedy;
  Add({severity, std::move(check), std::move(subject), std::move(said.found),
       std::move(said.mend)});
}

Severity Report::Worst() const noexcept {
  Severity worst = Severity::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

std::string Report::Text() const {
  std::string text;
  for (const Finding& finding : findings) {
    text += SeverityName(finding.severity);
    text += ": " + finding.check + ": ";
    AppendLine(finding.subject, text);
    text += ": ";
    AppendLine(finding.found, text);
    if (!finding.mend.empty()) {
      text += "\n    mend: ";
      AppendLine(finding.mend, text);
    }
    text += '\n';
  }
  return text + "verdict: " + std::string(SeverityName(Worst())) + "\n";
}

std::string Report::Json() const {
  std::string out = "{";
  AppendMember("verdict", SeverityName(Worst()), out);
  out += ",\"store\":{";
  AppendMember("kind", kind, out);
  out += ',';
  AppendMember("url", url, out);
  out += ',';
  AppendMember("durability", durability, out);
  out += ',';
  AppendMember("identity", identity, out);
  out += "},\"findings\":[";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (i > 0) out += ',';
    AppendJsonFinding(findings[i], out);
  }
  return out + "]}\n";
}

}  // namespace leaf::doctor
