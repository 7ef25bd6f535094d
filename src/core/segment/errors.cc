#include "core/segment/errors.h"

#include <chrono>
#include <string>

#include "core/tag_name.h"

namespace leaf {

namespace {

std::string Quoted(std::string_view tag) { return "tag \"" + std::string(tag) + "\""; }

/// For a path segment, and safe between a shell's quotes.
std::string PercentEncoded(std::string_view tag) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : tag) {
    if (IsPlainTag({&c, 1})) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace

Error NoSuchTag(std::string_view tag) { return {Code::kNotFound, Quoted(tag) + " does not exist"}; }

Error ShuttingDown() { return {Code::kUnavailable, "the server is shutting down"}; }

Error TooManyWaiters() {
  return {Code::kOverloaded, "too many requests wait for ids (segment.max_waiters)"};
}

Error TooManyLookups(std::string_view tag) {
  return {Code::kOverloaded,
          Quoted(tag) + " is not known here and too many unknown tags are being looked up"};
}

Error NoIdsInTime(std::string_view tag, Duration wait, std::string_view reason) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  return {Code::kUnavailable,
          "no ids for " + Quoted(tag) + " within " + std::to_string(ms) +
              " ms: " + (reason.empty() ? "the store has not answered yet" : std::string(reason))};
}

Error SpaceExhausted(std::string_view tag) {
  return {Code::kExhausted, Quoted(tag) + " has not that many ids left; its last one is 2^63 - 2"};
}

Error RowWentBack(std::string_view tag, std::string_view admin_url, std::string_view detail) {
  std::string message = Quoted(tag) +
                        " is stopped, because its row in the store went back (a restore, a "
                        "failover, or a hand)";
  if (!detail.empty()) message += ": " + std::string(detail);
  const std::string path = "/api/v1/tags/" + PercentEncoded(tag) + "/resume";
  if (admin_url.empty()) {
    message +=
        ". Find out why; then start leafd with server.admin_listen, and resume it with POST " +
        path;
  } else {
    message += ". Find out why; then resume it with: curl -X POST -H 'X-Leafd-Admin: 1' -d '{}' " +
               std::string(admin_url) + path;
  }
  return {Code::kRegressed, std::move(message)};
}

}  // namespace leaf
