#include "codec/http1/errors.h"

#include <utility>

#include "codec/text.h"

namespace leaf::http1 {
namespace {

constexpr std::string_view kNoStore = "Cache-Control: no-store\r\n";
constexpr std::string_view kServerException =
    "com.sankuai.inf.leaf.server.exception.LeafServerException";
constexpr std::string_view kArgumentException = "java.lang.IllegalArgumentException";

std::string CodeHeader(Code code) {
  std::string line = "X-Leafd-Code: ";
  line += CodeName(code);
  line += "\r\n";
  line += kNoStore;
  return line;
}

std::string LeafJson(const LeafError& error, std::int64_t wall_ms) {
  std::string body = "{\"timestamp\":";
  AppendDecimal(wall_ms, body);
  body += ",\"status\":";
  AppendDecimal(error.status, body);
  body += ",\"error\":";
  AppendJson(ReasonOf(error.status), body);
  if (!error.exception.empty()) {
    body += ",\"exception\":";
    AppendJson(error.exception, body);
  }
  body += ",\"message\":";
  AppendJson(error.message, body);
  body += ",\"path\":";
  AppendJson(error.path, body);
  body += '}';
  return body;
}

// Scrapers of Leaf look for the sentence with type and status, so it is Leaf's.
std::string LeafPage(const LeafError& error) {
  std::string body =
      "<!DOCTYPE html>\n<html><head><meta "
      "charset=\"UTF-8\"><title>Error</title></head><body>\n<p>There was an unexpected error "
      "(type=";
  AppendHtml(ReasonOf(error.status), body);
  body += ", status=";
  AppendDecimal(error.status, body);
  body += ").</p>\n<p>";
  AppendHtml(error.message, body);
  body += "</p>\n</body></html>\n";
  return body;
}

}  // namespace

int StatusOf(Code code) noexcept {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kConflict:
      return 409;
    case Code::kDisabled:
      return 409;
    case Code::kExhausted:
      return 410;
    case Code::kOverloaded:
      return 429;
    case Code::kRegressed:
      return 500;
    case Code::kUnavailable:
      return 503;
    case Code::kInternal:
      return 500;
  }
  return 500;
}

std::string_view ReasonOf(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return {};
  }
}

Response Problem(const Error& error) { return Problem(StatusOf(error.code), error); }

Response Problem(int status, const Error& error, std::string extra_headers) {
  Response response;
  response.status = status;
  response.content_type = "application/problem+json";
  response.extra_headers = std::move(extra_headers);
  response.extra_headers += kNoStore;
  if (status == 503) response.extra_headers += "Retry-After: 1\r\n";
  std::string& body = response.body;
  body = "{\"type\":\"about:blank\",\"title\":";
  AppendJson(ReasonOf(status), body);
  body += ",\"status\":";
  AppendDecimal(status, body);
  body += ",\"code\":";
  AppendJson(CodeName(error.code), body);
  body += ",\"detail\":";
  AppendJson(error.message, body);
  body += '}';
  return response;
}

Response LeafAnswer(const LeafError& error, std::int64_t wall_ms) {
  Response response;
  response.status = error.status;
  response.content_type = error.html ? "text/html;charset=UTF-8" : "application/json;charset=UTF-8";
  response.body = error.html ? LeafPage(error) : LeafJson(error, wall_ms);
  response.extra_headers = CodeHeader(error.code);
  return response;
}

Response LeafNotFound(std::string_view path, bool html, std::int64_t wall_ms) {
  LeafError error;
  error.status = 404;
  error.message = "No message available";
  error.path = path;
  error.code = Code::kNotFound;
  error.html = html;
  return LeafAnswer(error, wall_ms);
}

Response LeafBadPath() {
  Response response;
  response.status = 400;
  response.extra_headers = CodeHeader(Code::kInvalidArgument);
  return response;
}

LeafWords LeafWordsOf(Code code, bool snowflake) noexcept {
  switch (code) {
    case Code::kDisabled:
      return {kArgumentException, snowflake ? "You should config leaf.snowflake.enable=true first"
                                            : "You should config leaf.segment.enable=true first"};
    case Code::kNotFound:
    case Code::kInvalidArgument:
      if (!snowflake) return {kServerException, "Result{id=-2, status=EXCEPTION}"};
      break;
    case Code::kUnauthenticated:
    case Code::kPermissionDenied:
    case Code::kConflict:
    case Code::kExhausted:
    case Code::kOverloaded:
    case Code::kRegressed:
    case Code::kUnavailable:
    case Code::kInternal:
      break;
  }
  return {kServerException, "Result{id=-3, status=EXCEPTION}"};
}

}  // namespace leaf::http1
