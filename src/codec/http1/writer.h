#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/http1/message.h"

namespace leaf::http1 {

/// The head of an answer.
struct ResponseHead {
  int status = 200;
  std::string_view date{};           ///< a whole line as DateLine gives it, or empty
  std::string_view content_type{};   ///< empty: none
  std::size_t content_length = 0;    ///< of the body, also where HEAD leaves it out
  std::string_view extra_headers{};  ///< whole lines, each ending in CRLF
  bool keep_alive = true;
  int minor = 1;  ///< HTTP/1.minor of the request; the answer is HTTP/1.1 always
};

/// Appends the status line, the fields and the empty line. "Connection: close" unless keep_alive,
/// "keep-alive" for a 1.0 request that asked for it, otherwise no such field. No allocation when
/// `out` has room: 200 bytes and the views.
void AppendHead(std::string& out, const ResponseHead& head);

/// How the request wants to be answered.
struct ResponseForm {
  std::string_view date{};
  bool keep_alive = true;
  int minor = 1;
  bool head = false;  ///< HEAD: the body is left out
};
void AppendResponse(std::string& out, const Response& response, const ResponseForm& form);

/// The line "Date: ...\r\n", made once a second. Confined to its reactor.
class DateLine {
 public:
  /// The view ends with the next call.
  std::string_view At(std::int64_t wall_ms) noexcept;

 private:
  std::array<char, 37> text_{};
  std::int64_t second_ = -1;
};

}  // namespace leaf::http1
