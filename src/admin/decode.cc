#include "admin/decode.h"

#include <array>
#include <charconv>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "admin/answer.h"
#include "base/iso_time.h"
#include "codec/http1/accept.h"
#include "codec/http1/errors.h"
#include "codec/http1/query.h"
#include "codec/text.h"
#include "core/snowflake/layout.h"

namespace leaf {
namespace {

using http1::Request;
using http1::Response;

constexpr std::string_view kJson = "application/json;charset=UTF-8";
constexpr std::string_view kFormType = "application/x-www-form-urlencoded";

/// As Java's Long.parseLong: an optional sign and digits, within 64 bits.
std::optional<std::int64_t> ParseJavaLong(std::string_view text) noexcept {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "yyyy-MM-dd HH:mm:ss.SSS" in the host's zone.
std::string LocalTime(std::int64_t unix_ms) {
  std::int64_t seconds = unix_ms / 1000, millis = unix_ms % 1000;
  if (millis < 0) {
    millis += 1000;
    --seconds;
  }
  const std::time_t time = seconds;
  std::tm parts{};
  if (localtime_r(&time, &parts) == nullptr) return {};
  std::array<char, 64> text;
  std::string result(text.data(),
                     std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S.", &parts));
  const std::string digits = std::to_string(1000 + millis);
  return result + digits.substr(1);
}

std::string LeafPartsJson(const SnowflakeParts& parts) {
  return "{\"workerId\":\"" + std::to_string(parts.worker) + "\",\"sequenceId\":\"" +
         std::to_string(parts.sequence) + "\",\"timestamp\":\"" + std::to_string(parts.time_ms) +
         "(" + LocalTime(parts.time_ms) + ")\"}";
}

bool IsForm(std::string_view content_type) noexcept {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return type.starts_with(kFormType) &&
         type.find_first_not_of(" \t", kFormType.size()) == std::string_view::npos;
}

/// A servlet's parameter: the query's values, then those of a posted form.
http1::Parameter LeafParameter(const Request& request) {
  http1::Parameter id = http1::FindParameter(request.query, "snowflakeId");
  if (request.method != http1::Method::kPost || !IsForm(request.content_type)) return id;
  http1::Parameter posted = http1::FindParameter(request.body, "snowflakeId");
  if (id.count == 0) id.value = std::move(posted.value);
  id.count += posted.count;
  return id;
}

Response LeafFailure(const Request& request, int status, std::string_view exception,
                     std::string_view message, std::int64_t wall_ms) {
  http1::LeafError error;
  error.status = status;
  error.exception = exception;
  error.message = message;
  error.path = request.path;
  error.code = Code::kInvalidArgument;
  error.html = http1::PrefersHtml(request.accept);
  return http1::LeafAnswer(error, wall_ms);
}

Response NotAcceptable(const Request& request, std::int64_t wall_ms) {
  Response response =
      LeafFailure(request, 406, "org.springframework.web.HttpMediaTypeNotAcceptableException",
                  "Could not find acceptable representation", wall_ms);
  if (http1::PrefersHtml(request.accept)) return response;
  // Neither the parts nor an error can be told in a type that the client takes.
  response.content_type.clear();
  response.body.clear();
  return response;
}

Response BadLayout() {
  return http1::Problem(
      {Code::kInvalidArgument,
       "unknown layout; leaf and js53 are known, and custom where this server is configured so"});
}

}  // namespace

Response DecodeAsLeaf(const Request& request, std::int64_t wall_ms) {
  const http1::Parameter id = LeafParameter(request);
  if (id.count == 0) {
    return LeafFailure(request, 400,
                       "org.springframework.web.bind.MissingServletRequestParameterException",
                       "Required String parameter 'snowflakeId' is not present", wall_ms);
  }
  if (http1::AcceptOf(request.accept, "application", "json").weight == 0)
    return NotAcceptable(request, wall_ms);
  // Repeated values reach Leaf joined by commas, which is no number.
  const auto number = id.count == 1 ? ParseJavaLong(id.value) : std::nullopt;
  return TextAnswer(kJson, number ? LeafPartsJson(Decode(kLeafLayout, *number))
                                  : std::string("{\"errorMsg\":\"snowflake Id反解析发生异常!\"}"));
}

Response DecodeId(std::string_view id, const Request& request, const Layout& own) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (id.empty() || id.front() == '-' || error != std::errc() || end != id.data() + id.size()) {
    return http1::Problem(
        {Code::kInvalidArgument, "an id is a decimal number from 0 to 9223372036854775807"});
  }
  const http1::Parameter name = http1::FindParameter(request.query, "layout");
  const bool is_own = name.count == 0 || name.value == own.name;
  const auto layout = is_own ? std::optional(own) : FindLayout(name.value);
  if (name.bad || name.count > 1 || !layout) return BadLayout();
  const SnowflakeParts parts = Decode(*layout, number);
  std::string body = "{\"id\":\"" + std::to_string(number) + "\",\"layout\":";
  AppendJson(layout->name, body);
  body += ",\"time\":\"" + IsoTime(parts.time_ms) +
          "\",\"time_ms\":" + std::to_string(parts.time_ms) +
          ",\"worker\":" + std::to_string(parts.worker) +
          ",\"sequence\":" + std::to_string(parts.sequence) + "}";
  return JsonAnswer(std::move(body));
}

}  // namespace leaf
