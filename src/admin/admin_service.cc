#include "admin/admin_service.h"

#include <algorithm>
#include <utility>

#include "admin/answer.h"
#include "admin/health.h"
#include "codec/http1/errors.h"

namespace leaf {
namespace {

using http1::Exchange;
using http1::Method;
using http1::Request;
using http1::Response;

constexpr std::string_view kTagsPath = "/api/v1/tags";
constexpr std::string_view kWorkersPath = "/api/v1/workers";
constexpr std::string_view kReads = "GET, HEAD";

bool IsPort(std::string_view text) noexcept {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a Host field names this host itself, with or without a port.
bool IsLocalHost(std::string_view host) {
  std::string lower(host);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (!lower.starts_with(name)) continue;
    const std::string_view rest = std::string_view(lower).substr(name.size());
    if (rest.empty() || (rest.front() == ':' && IsPort(rest.substr(1)))) return true;
  }
  return false;
}

/// True if the request may change something; otherwise it is answered.
bool MayChange(Exchange& exchange) {
  const auto refusal = RefuseChange(exchange.request(), exchange.peer_is_local());
  if (refusal) exchange.Reply(http1::Problem(*refusal));
  return !refusal;
}

bool IsLater(std::string_view path) noexcept {
  return path == "/api/v1/config" || path == "/api/v1/events" || path == "/";
}

/// Whether `path` is `root` or lies below it.
bool IsBelow(std::string_view path, std::string_view root) noexcept {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

}  // namespace

std::optional<Error> RefuseChange(const Request& request, bool peer_is_local) {
  if (!peer_is_local) {
    return Error{Code::kPermissionDenied,
                 "changes are taken from this host only: call the admin listener over loopback"};
  }
  if (!IsLocalHost(request.host)) {
    return Error{Code::kPermissionDenied, "changes need a Host of 127.0.0.1, localhost or [::1]"};
  }
  if (request.Find("X-Leafd-Admin") != "1") {
    return Error{Code::kPermissionDenied, "changes need the header X-Leafd-Admin: 1"};
  }
  return std::nullopt;
}

bool AdminService::Handle(Exchange& exchange) {
  const Request& request = exchange.request();
  if (IsUnknown(request.method)) {
    exchange.Reply(UnknownMethod(request.method_text));
  } else if (IsBelow(request.path, kTagsPath)) {
    Api(exchange);
  } else if (IsBelow(request.path, kWorkersPath)) {
    Workers(exchange);
  } else {
    Read(exchange);
  }
  return true;
}

void AdminService::Read(Exchange& exchange) {
  const Request& request = exchange.request();
  const std::string_view path = request.path;
  const bool known = path == "/livez" || path == "/readyz" || path == "/healthz" ||
                     path == "/metrics" || path == "/api/v1/status" || Pages::Has(path);
  if (IsLater(path)) {
    exchange.Reply(http1::Problem({Code::kNotFound, "not in this version: " + std::string(path)}));
  } else if (!known) {
    exchange.Reply(NoSuchPath(path));
  } else if (!IsRead(request.method)) {
    exchange.Reply(WrongMethod(kReads));
  } else if (path == "/livez") {
    exchange.Reply(Livez());
  } else if (path == "/metrics") {
    exchange.Reply(metrics_.Answer());
  } else if (path == "/api/v1/status") {
    exchange.Reply(StatusAnswer(context_));
  } else if (Pages::Has(path)) {
    pages_.Handle(exchange, path, false);
  } else {
    exchange.Reply(Readyz(context_, request));
  }
}

void AdminService::Api(Exchange& exchange) {
  const Request& request = exchange.request();
  const auto segments = SplitPath(request.path);
  if (!segments.ok()) {
    exchange.Reply(http1::Problem(segments.error()));
    return;
  }
  constexpr std::size_t kTagAt = 3, kActionAt = 4;
  if (segments->size() == kTagAt) {
    IsRead(request.method) ? tags_.List(exchange) : exchange.Reply(WrongMethod(kReads));
  } else if (segments->size() == kTagAt + 1 && !(*segments)[kTagAt].empty()) {
    OneTag(exchange, (*segments)[kTagAt]);
  } else if (segments->size() == kActionAt + 1 && !(*segments)[kTagAt].empty()) {
    TagAction(exchange, (*segments)[kTagAt], (*segments)[kActionAt]);
  } else {
    exchange.Reply(NoSuchPath(request.path));
  }
}

void AdminService::Workers(Exchange& exchange) {
  const auto segments = SplitPath(exchange.request().path);
  constexpr std::size_t kWorkerAt = 3, kActionAt = 4;
  if (!segments.ok()) {
    exchange.Reply(http1::Problem(segments.error()));
  } else if (segments->size() == kWorkerAt) {
    IsRead(exchange.request().method) ? workers_.List(exchange)
                                      : exchange.Reply(WrongMethod(kReads));
  } else if (segments->size() != kActionAt + 1 || (*segments)[kActionAt] != "retire") {
    exchange.Reply(NoSuchPath(exchange.request().path));
  } else if (exchange.request().method != Method::kPost) {
    exchange.Reply(WrongMethod("POST"));
  } else if (MayChange(exchange)) {
    workers_.Retire(exchange, (*segments)[kWorkerAt]);
  }
}

void AdminService::OneTag(Exchange& exchange, const std::string& tag) {
  const Method method = exchange.request().method;
  if (IsRead(method)) {
    tags_.Get(exchange, tag);
  } else if (method == Method::kPut) {
    if (MayChange(exchange)) tags_.Put(exchange, tag);
  } else if (method == Method::kDelete) {
    if (MayChange(exchange)) tags_.Delete(exchange, tag);
  } else {
    exchange.Reply(WrongMethod("GET, HEAD, PUT, DELETE"));
  }
}

void AdminService::TagAction(Exchange& exchange, const std::string& tag,
                             const std::string& action) {
  const bool resume = action == "resume";
  if (!resume && action != "drop") {
    exchange.Reply(NoSuchPath(exchange.request().path));
  } else if (exchange.request().method != Method::kPost) {
    exchange.Reply(WrongMethod("POST"));
  } else if (MayChange(exchange)) {
    resume ? tags_.Resume(exchange, tag) : tags_.Drop(exchange, tag);
  }
}

}  // namespace leaf
