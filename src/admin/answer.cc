#include "admin/answer.h"

#include <utility>

#include "codec/http1/errors.h"
#include "codec/http1/percent.h"
#include "codec/text.h"

namespace leaf {

using http1::Method;
using http1::Response;

Response TextAnswer(std::string_view content_type, std::string body) {
  Response response;
  response.content_type = content_type;
  response.body = std::move(body);
  response.extra_headers = "Cache-Control: no-store\r\n";
  return response;
}

Response JsonAnswer(std::string body, int status) {
  Response response = TextAnswer("application/json", std::move(body));
  response.status = status;
  return response;
}

void AppendField(std::string_view name, std::string_view text, std::string& out) {
  AppendJson(name, out);
  out += ':';
  AppendJson(text, out);
}

void AppendNumber(std::string_view name, std::int64_t number, std::string& out) {
  AppendJson(name, out);
  out += ':';
  AppendDecimal(number, out);
}

Response NoSuchPath(std::string_view path) {
  return http1::Problem({Code::kNotFound, "nothing is served at " + std::string(path)});
}

Response WrongMethod(std::string_view allow) {
  const std::string methods(allow);
  return http1::Problem(405, {Code::kInvalidArgument, "this path takes " + methods},
                        "Allow: " + methods + "\r\n");
}

Response UnknownMethod(std::string_view method) {
  return http1::Problem(
      501, {Code::kInvalidArgument, "leafd does not know the method " + std::string(method)});
}

bool IsUnknown(Method method) noexcept {
  return method == Method::kOther || method == Method::kConnect;
}

bool IsRead(Method method) noexcept { return method == Method::kGet || method == Method::kHead; }

Result<std::vector<std::string>> SplitPath(std::string_view path) {
  std::vector<std::string> segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  for (bool more = true; more;) {
    const std::size_t slash = path.find('/');
    more = slash != std::string_view::npos;
    std::string segment;
    if (!http1::PercentDecode(path.substr(0, slash), segment)) {
      return Error{Code::kInvalidArgument, "the path has a bad percent escape or a NUL"};
    }
    segments.push_back(std::move(segment));
    if (more) path.remove_prefix(slash + 1);
  }
  return segments;
}

}  // namespace leaf
