#include "admin/main_service.h"

#include <optional>
#include <string>
#include <vector>

#include "admin/answer.h"
#include "admin/decode.h"
#include "admin/health.h"
#include "codec/http1/accept.h"
#include "codec/http1/errors.h"
#include "codec/http1/percent.h"

namespace leaf {
namespace {

using http1::Method;
using http1::Request;
using http1::Response;

constexpr std::string_view kApiPrefix = "/api/v1/";
constexpr std::string_view kSegmentPrefix = "/api/segment/get/";
constexpr std::string_view kSnowflakePrefix = "/api/snowflake/get/";
constexpr std::string_view kDecodePath = "/decodeSnowflakeId";
constexpr std::string_view kNoStore = "Cache-Control: no-store\r\n";

/// Whether `path` is the prefix and one key behind it.
bool IsKeyPath(std::string_view path, std::string_view prefix) noexcept {
  if (!path.starts_with(prefix)) return false;
  const std::string_view key = path.substr(prefix.size());
  return !key.empty() && key.find_first_of("/;") == std::string_view::npos;
}

/// Leaf takes one slash behind each of its paths.
std::string_view WithoutSlash(std::string_view path) noexcept {
  return path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
}

Response LeafOptions() {
  Response response;
  response.extra_headers =
      "Allow: GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS\r\n" + std::string(kNoStore);
  return response;
}

Response LeafTrace() {
  Response response;
  response.status = 405;
  response.extra_headers =
      "Allow: HEAD, DELETE, POST, GET, OPTIONS, PUT\r\nX-Leafd-Code: invalid_argument\r\n" +
      std::string(kNoStore);
  return response;
}

bool IsBadPath(std::string_view path, bool reject_encoded_slash) {
  if (path.find('%') == std::string_view::npos) return false;
  std::string decoded;
  return (reject_encoded_slash && http1::HasEncodedSlash(path)) ||
         !http1::PercentDecode(path, decoded);
}

/// The routes below /api/v1/ that the id handler leaves to this service.
Response Decode(const std::vector<std::string>& segments, const Request& request,
                const Layout& own) {
  if (request.method != Method::kGet) return WrongMethod("GET");
  return DecodeId(segments[3], request, own);
}

std::optional<Response> Probe(const AdminContext& context, Metrics& metrics,
                              const Request& request) {
  if (request.path == "/metrics")
    return IsRead(request.method) ? metrics.Answer() : WrongMethod("GET, HEAD");
  if (request.path == "/livez") return IsRead(request.method) ? Livez() : WrongMethod("GET, HEAD");
  if (request.path == "/readyz" || request.path == "/healthz") {
    return IsRead(request.method) ? Readyz(context, request) : WrongMethod("GET, HEAD");
  }
  return std::nullopt;
}

}  // namespace

bool MainService::Handle(http1::Exchange& exchange) {
  const Request& request = exchange.request();
  if (request.path.starts_with(kApiPrefix)) {
    exchange.Reply(Api(request));
    return true;
  }
  if (context_.probes_on_main && !IsUnknown(request.method)) {
    if (auto answer = Probe(context_, metrics_, request)) {
      exchange.Reply(std::move(*answer));
      return true;
    }
  }
  Leaf(exchange);
  return true;
}

Response MainService::Api(const Request& request) const {
  if (IsUnknown(request.method)) return UnknownMethod(request.method_text);
  const auto segments = SplitPath(request.path);
  if (!segments.ok()) return http1::Problem(segments.error());
  if (segments->size() == 4 && (*segments)[2] == "decode")
    return Decode(*segments, request, context_.layout);
  return NoSuchPath(request.path);
}

void MainService::Leaf(http1::Exchange& exchange) {
  const Request& request = exchange.request();
  if (IsUnknown(request.method)) {
    exchange.Reply(NotImplemented(request));
    return;
  }
  if (request.method == Method::kTrace) {
    exchange.Reply(LeafTrace());
    return;
  }
  if (IsBadPath(request.path, context_.reject_encoded_slash)) {
    exchange.Reply(http1::LeafBadPath());
    return;
  }
  const std::string_view path = WithoutSlash(request.path);
  if (request.method == Method::kOptions && (IsLeafPath(path) || path == "*")) {
    exchange.Reply(LeafOptions());
  } else if (path == kDecodePath) {
    exchange.Reply(DecodeAsLeaf(request, context_.clock.WallMillis()));
  } else if (context_.pages_on_main && Pages::Has(path)) {
    pages_.Handle(exchange, path, true);
  } else {
    exchange.Reply(NotFound(request));
  }
}

bool MainService::IsLeafPath(std::string_view path) const noexcept {
  return IsKeyPath(path, kSegmentPrefix) || IsKeyPath(path, kSnowflakePrefix) ||
         path == kDecodePath || (context_.pages_on_main && Pages::Has(path));
}

Response MainService::NotFound(const Request& request) const {
  return http1::LeafNotFound(request.path, http1::PrefersHtml(request.accept),
                             context_.clock.WallMillis());
}

Response MainService::NotImplemented(const Request& request) const {
  http1::LeafError error;
  error.status = 501;
  error.message = "No message available";
  error.path = request.path;
  error.code = Code::kInvalidArgument;
  error.html = http1::PrefersHtml(request.accept);
  return http1::LeafAnswer(error, context_.clock.WallMillis());
}

}  // namespace leaf
