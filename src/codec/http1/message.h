#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace leaf::http1 {

enum class Method : std::uint8_t {
  kGet,
  kHead,
  kPost,
  kPut,
  kPatch,
  kDelete,
  kOptions,
  kTrace,
  kConnect,
  kOther
};

struct Header {
  std::string_view name, value;  ///< as received, value trimmed
};

/// Bounds; over them a request is refused and the connection closed.
struct Limits {
  int max_request_line = 8 * 1024;
  int max_header = 16 * 1024;
  int max_header_fields = 64;
  int max_body = 64 * 1024;
};

/// A request whose framing is valid by RFC 9112. All views point into the connection's buffer and
/// end with the call they were handed to.
struct Request {
  static constexpr int kMaxHeaders = 256;  ///< compile-time ceiling of Limits::max_header_fields

  Method method = Method::kGet;
  std::string_view method_text;
  std::string_view target;  ///< as received
  std::string_view
      path;  ///< raw, percent-encoded, without query; of an absolute-form target, its path
  std::string_view query;  ///< raw, without '?'
  int minor = 1;           ///< HTTP/1.minor
  bool keep_alive = true;
  std::string_view host, accept, content_type;
  std::string_view body;  ///< whole, chunks joined
  std::array<Header, kMaxHeaders> headers;
  int header_count = 0;

  /// The value of the first header of that name (case-insensitive), or an empty view.
  std::string_view Find(std::string_view name) const noexcept;
};

/// An answer as a handler builds it off the hot path.
struct Response {
  int status = 200;
  std::string content_type{};  ///< empty: no body, no Content-Type
  std::string body{};
  std::string extra_headers{};  ///< whole lines, each ending in CRLF
  bool close = false;           ///< close after it
};

}  // namespace leaf::http1
