#include "answer.h"

#include <charconv>
#include <system_error>

namespace leaf::tools {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualNoCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

bool ReadNumber(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view HeaderValue(std::string_view headers, std::string_view name) {
  while (!headers.empty()) {
    const std::size_t end = headers.find(kLineEnd);
    const std::string_view line = headers.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && EqualNoCase(line.substr(0, colon), name)) {
      const std::size_t from = line.find_first_not_of(" \t", colon + 1);
      return from == std::string_view::npos ? "" : line.substr(from);
    }
    if (end == std::string_view::npos) break;
    headers.remove_prefix(end + kLineEnd.size());
  }
  return {};
}

/// The next string or number after `"key":` at or behind `from`; moves `from` past it.
bool NextValue(std::string_view body, std::string_view key, std::size_t& from,
               std::string_view& out) {
  const std::string quoted = '"' + std::string(key) + "\":";
  const std::size_t at = body.find(quoted, from);
  if (at == std::string_view::npos) return false;
  std::size_t begin = at + quoted.size();
  while (begin < body.size() && (body[begin] == ' ' || body[begin] == '"')) ++begin;
  const std::size_t end = body.find_first_of("\",}]", begin);
  if (end == std::string_view::npos) return false;
  out = body.substr(begin, end - begin);
  from = end;
  return true;
}

void AddPiece(Answer& out, std::int64_t first, std::int64_t count) {
  if (!out.pieces.empty() && out.pieces.back().first + out.pieces.back().count == first) {
    out.pieces.back().count += count;
  } else {
    out.pieces.push_back({first, count});
  }
}

bool ReadIds(std::string_view body, Answer& out) {
  std::size_t at = body.find("\"ids\":[");
  if (at == std::string_view::npos) return false;
  at += 7;
  const std::size_t close = body.find(']', at);
  if (close == std::string_view::npos) return false;
  while (at < close) {
    const std::size_t open = body.find('"', at);
    if (open >= close) break;
    const std::size_t end = body.find('"', open + 1);
    std::int64_t id = 0;
    if (end > close || !ReadNumber(body.substr(open + 1, end - open - 1), id)) return false;
    AddPiece(out, id, 1);
    at = end + 1;
  }
  return !out.pieces.empty();
}

bool ReadRanges(std::string_view body, Answer& out) {
  std::size_t at = 0;
  std::string_view first_text, count_text;
  while (NextValue(body, "first", at, first_text)) {
    std::int64_t first = 0, count = 0;
    if (!NextValue(body, "count", at, count_text)) return false;
    if (!ReadNumber(first_text, first) || !ReadNumber(count_text, count) || count <= 0)
      return false;
    AddPiece(out, first, count);
  }
  return !out.pieces.empty();
}

bool ReadBody(std::string_view body, AnswerForm form, Answer& out) {
  switch (form) {
    case AnswerForm::kLeaf: {
      std::int64_t id = 0;
      if (!ReadNumber(body, id)) return false;
      AddPiece(out, id, 1);
      return true;
    }
    case AnswerForm::kIds:
      return ReadIds(body, out);
    case AnswerForm::kRanges:
      return ReadRanges(body, out);
  }
  return false;
}

}  // namespace

std::int64_t ReadAnswer(std::string_view bytes, AnswerForm form, Answer& out) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr std::size_t kHeaderMax = 64 * 1024;
  out = Answer();
  const std::size_t head = bytes.find("\r\n\r\n");
  if (head == std::string_view::npos) return bytes.size() > kHeaderMax ? -1 : 0;
  std::int64_t status = 0, length = 0;
  if (!bytes.starts_with(kVersion) || head < 12 || !ReadNumber(bytes.substr(9, 3), status))
    return -1;
  const std::size_t line = bytes.find(kLineEnd);
  const std::string_view headers =
      line < head ? bytes.substr(line + 2, head - line - 2) : std::string_view();
  if (!ReadNumber(HeaderValue(headers, "content-length"), length) || length < 0) return -1;
  const std::size_t total = head + 4 + static_cast<std::size_t>(length);
  if (bytes.size() < total) return 0;
  const std::string_view body = bytes.substr(head + 4, static_cast<std::size_t>(length));
  out.status = static_cast<int>(status);
  out.close = EqualNoCase(HeaderValue(headers, "connection"), "close");
  if (out.status == 200) return ReadBody(body, form, out) ? static_cast<std::int64_t>(total) : -1;
  out.code = HeaderValue(headers, "x-leafd-code");
  std::size_t at = 0;
  std::string_view code;
  if (out.code.empty() && NextValue(body, "code", at, code)) out.code = code;
  return static_cast<std::int64_t>(total);
}

}  // namespace leaf::tools
