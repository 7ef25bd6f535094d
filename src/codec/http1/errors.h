#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/http1/message.h"
#include "leaf/result.h"

namespace leaf::http1 {

/// The HTTP status of a code below /api/v1/ and on the admin listener; docs/errors.md has the
/// table.
int StatusOf(Code code) noexcept;

/// The words for a status that leafd sends ("Not Found"); empty for others.
std::string_view ReasonOf(int status) noexcept;

/// application/problem+json of an error; 503 carries Retry-After.
Response Problem(const Error& error);
/// The same under another status (404 of a path, 405, 501); `extra_headers` are whole lines.
Response Problem(int status, const Error& error, std::string extra_headers = {});

/// An error in Leaf's form.
struct LeafError {
  int status = 500;
  std::string_view exception;  ///< Java's class, which clients may match on; empty: left out
  std::string_view message;
  std::string_view path;        ///< raw
  Code code = Code::kInternal;  ///< for X-Leafd-Code
  bool html = false;            ///< a page instead of JSON
};
/// `wall_ms` becomes the timestamp.
Response LeafAnswer(const LeafError& error, std::int64_t wall_ms);

/// Leaf's 404 of a path that nobody serves.
Response LeafNotFound(std::string_view path, bool html, std::int64_t wall_ms);
/// Leaf's 400 of a path with a bad escape: no body.
Response LeafBadPath();

/// Leaf's words for an id that could not be had: the error of the segment path, or of the snowflake
/// path when `snowflake` is set.
struct LeafWords {
  std::string_view exception, message;
};
LeafWords LeafWordsOf(Code code, bool snowflake) noexcept;

}  // namespace leaf::http1
