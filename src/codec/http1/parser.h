#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "codec/http1/message.h"

namespace leaf::http1 {

/// Reads requests from the contiguous bytes of one connection, as strictly as RFC 9112 allows: what
/// two readers could understand differently is refused, because one of them may be a proxy.
///
/// Refused beyond what the RFC demands: Content-Length that is a list or repeated (even if equal),
/// any transfer coding but one "chunked", chunk extensions, trailers, an empty Host, characters
/// outside RFC 3986 in the target. One empty line before the request line is skipped.
///
/// It copies nothing and allocates nothing; chunks are joined in place. Work is linear in the
/// bytes, however they are cut up, and the verdict does not depend on how. Confined to its
/// connection.
class Parser {
 public:
  enum class Step : std::uint8_t {
    kRequest,  ///< a whole request; consumed() bytes of it
    kMore,     ///< not whole yet; call again with the same bytes and more behind them
    kRefused,  ///< status() says why; nothing on this connection can be trusted any more
  };

  /// `data` begins where the request begins. Its bytes stay the caller's; those of a chunked body
  /// are moved. After kRequest the next call begins a new request. `request` holds views into
  /// `data`, complete only after kRequest.
  Step Parse(char* data, std::size_t size, const Limits& limits, Request& request);

  std::size_t consumed() const noexcept { return pos_; }

  /// After kMore: the client waits for "100 Continue". True once a request.
  bool TakeContinue() noexcept;

  /// After kMore: whether the head is complete, so that only body bytes are missing.
  bool in_body() const noexcept { return phase_ != Phase::kLine && phase_ != Phase::kFields; }

  /// After kRefused: 400, 413, 414, 417, 431, 501 or 505, and a sentence about it.
  int status() const noexcept { return status_; }
  std::string_view reason() const noexcept { return reason_; }
  /// After kRefused: whether the target, if it was understood, lies below /api/v1/.
  bool below_api() const noexcept { return below_api_; }

 private:
  enum class Phase : std::uint8_t {
    kLine,
    kFields,
    kBody,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kDone
  };
  enum class Advance : std::uint8_t { kGo, kMore, kRefused };

  Step Run(char* data, std::size_t size, const Limits& limits, Request& request);
  Advance Head(char* data, std::size_t size, const Limits& limits, Request& request);
  Advance Body(char* data, std::size_t size, const Limits& limits);
  Advance NextLine(const char* data, std::size_t size, std::size_t from, std::size_t limit,
                   int too_long, std::string_view& line);
  Advance RequestLine(std::string_view line, Request& request);
  Advance Target(std::string_view target, Request& request);
  Advance AbsoluteTarget(std::string_view target, std::size_t scheme, Request& request);
  Advance Field(std::string_view line, Request& request);
  Advance Known(std::string_view name, std::string_view value, Request& request);
  Advance ContentLength(std::string_view value);
  void Connection(std::string_view value) noexcept;
  Advance HeadDone(const Limits& limits, Request& request);
  Advance ChunkSize(const char* data, std::size_t size, const Limits& limits);
  void JoinChunk(char* data, std::size_t size) noexcept;
  Advance Crlf(const char* data, std::size_t size, Phase next);
  Advance Refuse(int status, std::string_view reason) noexcept;

  std::string_view reason_;
  std::size_t pos_ = 0;         ///< everything before it is understood
  std::size_t scanned_ = 0;     ///< no line end between pos_ and here
  std::size_t head_begin_ = 0;  ///< where the fields begin
  std::size_t body_begin_ = 0, body_size_ = 0;
  std::uint64_t length_ = 0;  ///< Content-Length, or what is left of a chunk
  std::size_t overhead_ = 0;  ///< chunk framing so far
  std::int16_t status_ = 0;
  std::int16_t fields_ = 0;
  Phase phase_ = Phase::kLine;
  bool has_host_ = false, has_length_ = false, chunked_ = false, close_ = false, keep_ = false;
  bool expects_ = false, bad_expect_ = false, line_skipped_ = false, below_api_ = false;
  bool absolute_ = false, minor_ = false;
};

}  // namespace leaf::http1
