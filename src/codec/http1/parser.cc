// One line is judged when its end has come, never earlier and never twice, so that the verdict does
// not depend on how the bytes are cut up. While a request comes in pieces its lines are only
// judged: the views of earlier calls would be stale, and the Request belongs to the caller's next
// connection meanwhile. When the last piece is there the head is read once more into it.

#include "codec/http1/parser.h"

#include <algorithm>
#include <cstring>

#include "codec/http1/chars.h"
#include "codec/http1/host.h"

namespace leaf::http1 {
namespace {

constexpr std::size_t kMaxChunkLine = 18;  // 16 hexadecimal digits and CRLF

std::size_t Size(int limit) noexcept { return static_cast<std::size_t>(std::max(limit, 0)); }

Method MethodOf(std::string_view text) noexcept {
  switch (text.size()) {
    case 3:
      return text == "GET" ? Method::kGet : text == "PUT" ? Method::kPut : Method::kOther;
    case 4:
      return text == "POST" ? Method::kPost : text == "HEAD" ? Method::kHead : Method::kOther;
    case 5:
      return text == "PATCH" ? Method::kPatch : text == "TRACE" ? Method::kTrace : Method::kOther;
    case 6:
      return text == "DELETE" ? Method::kDelete : Method::kOther;
    case 7:
      return text == "OPTIONS"   ? Method::kOptions
             : text == "CONNECT" ? Method::kConnect
                                 : Method::kOther;
    default:
      return Method::kOther;
  }
}

int HexDigit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The length of "http://" or "https://" at the front, or 0.
std::size_t SchemeLength(std::string_view target) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (EqualsIgnoreCase(target.substr(0, scheme.size()), scheme)) return scheme.size();
  }
  return 0;
}

void SplitPath(std::string_view path_and_query, Request& request) noexcept {
  const std::size_t mark = path_and_query.find('?');
  request.path = path_and_query.substr(0, mark);
  request.query =
      mark == std::string_view::npos ? std::string_view() : path_and_query.substr(mark + 1);
}

}  // namespace

Parser::Step Parser::Parse(char* data, std::size_t size, const Limits& limits, Request& request) {
  if (phase_ == Phase::kDone) *this = Parser();
  const bool resumed = phase_ != Phase::kLine || pos_ != 0;
  const Step step = Run(data, size, limits, request);
  if (step != Step::kRequest) return step;
  if (resumed) {
    Parser again;
    if (again.Head(data, size, limits, request) != Advance::kGo) {
      Refuse(500, "the parser contradicts itself");
      return Step::kRefused;
    }
  }
  request.body = std::string_view(data + body_begin_, body_size_);
  return Step::kRequest;
}

bool Parser::TakeContinue() noexcept {
  // With body bytes already here the client does not wait.
  const bool take =
      expects_ && in_body() && phase_ != Phase::kDone && body_size_ == 0 && pos_ == body_begin_;
  if (take) expects_ = false;
  return take;
}

Parser::Step Parser::Run(char* data, std::size_t size, const Limits& limits, Request& request) {
  if (status_ != 0) return Step::kRefused;
  Advance advance = Head(data, size, limits, request);
  if (advance == Advance::kGo) advance = Body(data, size, limits);
  if (advance == Advance::kMore) return Step::kMore;
  return advance == Advance::kRefused ? Step::kRefused : Step::kRequest;
}

Parser::Advance Parser::Head(char* data, std::size_t size, const Limits& limits, Request& request) {
  std::string_view line;
  while (phase_ == Phase::kLine) {
    if (pos_ < size && !Is(data[pos_], kTokenChar) && (data[pos_] != '\r' || line_skipped_)) {
      return Refuse(400, "not an HTTP request");
    }
    const Advance found = NextLine(data, size, pos_, Size(limits.max_request_line), 414, line);
    if (found != Advance::kGo) return found;
    if (line.empty()) {
      line_skipped_ = true;
      continue;
    }
    request.header_count = 0;
    request.host = request.accept = request.content_type = request.query = request.body = {};
    if (const Advance read = RequestLine(line, request); read != Advance::kGo) return read;
    head_begin_ = pos_;
    phase_ = Phase::kFields;
  }
  const int max_fields = std::clamp(limits.max_header_fields, 0, Request::kMaxHeaders);
  while (phase_ == Phase::kFields) {
    const Advance found = NextLine(data, size, head_begin_, Size(limits.max_header), 431, line);
    if (found != Advance::kGo) return found;
    if (line.empty()) return HeadDone(limits, request);
    if (fields_ >= max_fields) return Refuse(431, "too many header fields");
    if (const Advance read = Field(line, request); read != Advance::kGo) return read;
  }
  return Advance::kGo;
}

// Finds the line at pos_, without its CRLF. `limit` bounds the bytes from `from` to its end.
Parser::Advance Parser::NextLine(const char* data, std::size_t size, std::size_t from,
                                 std::size_t limit, int too_long, std::string_view& line) {
  const std::size_t begin = std::max(scanned_, pos_);
  const void* found = begin < size ? std::memchr(data + begin, '\n', size - begin) : nullptr;
  if (found == nullptr) {
    scanned_ = size;
    if (size - from >= limit) return Refuse(too_long, "too long");
    return Advance::kMore;
  }
  const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - data);
  if (end + 1 - from > limit) return Refuse(too_long, "too long");
  if (end == pos_ || data[end - 1] != '\r') return Refuse(400, "a line ends without CR");
  line = std::string_view(data + pos_, end - 1 - pos_);
  pos_ = end + 1;
  return Advance::kGo;
}

Parser::Advance Parser::RequestLine(std::string_view line, Request& request) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return Refuse(400, "malformed request line");
  request.method_text = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  const auto digit = [&](std::size_t i) { return version[i] >= '0' && version[i] <= '9'; };
  if (version.size() != 8 || !version.starts_with("HTTP/") || !digit(5) || version[6] != '.' ||
      !digit(7)) {
    return Refuse(400, "malformed version");
  }
  if (request.method_text.empty() || !AllAre(request.method_text, kTokenChar))
    return Refuse(400, "malformed method");
  if (version[5] != '1' || version[7] > '1')
    return Refuse(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  minor_ = version[7] == '1';
  request.minor = minor_ ? 1 : 0;
  request.method = MethodOf(request.method_text);
  return Target(request.target, request);
}

Parser::Advance Parser::Target(std::string_view target, Request& request) {
  if (request.method == Method::kConnect) return Refuse(501, "CONNECT is not offered");
  if (target == "*" && request.method == Method::kOptions) {
    request.path = target;
    return Advance::kGo;
  }
  if (!target.empty() && target.front() == '/') {
    if (!AllAre(target, kTargetChar)) return Refuse(400, "malformed target");
    SplitPath(target, request);
  } else if (const std::size_t scheme = SchemeLength(target); scheme != 0) {
    if (const Advance read = AbsoluteTarget(target, scheme, request); read != Advance::kGo)
      return read;
  } else {
    return Refuse(400, "malformed target");
  }
  below_api_ = request.path.starts_with("/api/v1/");
  return Advance::kGo;
}

Parser::Advance Parser::AbsoluteTarget(std::string_view target, std::size_t scheme,
                                       Request& request) {
  const std::string_view rest = target.substr(scheme);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  const std::string_view path = rest.substr(authority.size());
  if (!IsHost(authority) || !AllAre(path, kTargetChar)) return Refuse(400, "malformed target");
  absolute_ = true;
  request.host = authority;
  SplitPath(path, request);
  if (request.path.empty()) request.path = "/";
  return Advance::kGo;
}

Parser::Advance Parser::Field(std::string_view line, Request& request) {
  std::size_t colon = 0;
  while (colon < line.size() && Is(line[colon], kTokenChar)) ++colon;
  if (colon == 0 || colon == line.size() || line[colon] != ':')
    return Refuse(400, "malformed header field");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trim(line.substr(colon + 1));
  if (!AllAre(value, kValueChar)) return Refuse(400, "a control character in a header field");
  request.headers[static_cast<std::size_t>(fields_++)] = {name, value};
  request.header_count = fields_;
  return Known(name, value, request);
}

Parser::Advance Parser::Known(std::string_view name, std::string_view value, Request& request) {
  switch (name.size()) {
    case 4:
      if (!EqualsIgnoreCase(name, "host")) break;
      if (has_host_ || !IsHost(value)) return Refuse(400, "Host must be given once and be valid");
      has_host_ = true;
      // An absolute-form target overrules the field (RFC 9112, 3.2.2).
      if (!absolute_) request.host = value;
      break;
    case 6:
      if (EqualsIgnoreCase(name, "accept") && request.accept.empty()) request.accept = value;
      if (EqualsIgnoreCase(name, "expect")) {
        (EqualsIgnoreCase(value, "100-continue") ? expects_ : bad_expect_) = true;
      }
      break;
    case 10:
      if (EqualsIgnoreCase(name, "connection")) Connection(value);
      break;
    case 12:
      if (EqualsIgnoreCase(name, "content-type") && request.content_type.empty())
        request.content_type = value;
      break;
    case 14:
      if (EqualsIgnoreCase(name, "content-length")) return ContentLength(value);
      break;
    case 17:
      if (!EqualsIgnoreCase(name, "transfer-encoding")) break;
      if (chunked_ || !minor_ || !EqualsIgnoreCase(value, "chunked"))
        return Refuse(400, "unusable Transfer-Encoding");
      chunked_ = true;
      break;
    default:
      break;
  }
  return Advance::kGo;
}

Parser::Advance Parser::ContentLength(std::string_view value) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 60U;
  if (has_length_ || value.empty())
    return Refuse(400, "Content-Length must be one number, given once");
  has_length_ = true;
  for (const char c : value) {
    if (c < '0' || c > '9') return Refuse(400, "Content-Length must be one number, given once");
    // Saturates: anything near is far over every limit.
    length_ = length_ >= kHuge / 16 ? kHuge : length_ * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return Advance::kGo;
}

void Parser::Connection(std::string_view value) noexcept {
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    const std::string_view option = Trim(value.substr(0, comma));
    close_ = close_ || EqualsIgnoreCase(option, "close");
    keep_ = keep_ || EqualsIgnoreCase(option, "keep-alive");
    value = comma == std::string_view::npos ? std::string_view() : value.substr(comma + 1);
  }
}

Parser::Advance Parser::HeadDone(const Limits& limits, Request& request) {
  if (minor_ && !has_host_) return Refuse(400, "Host is missing");
  if (chunked_ && has_length_) return Refuse(400, "both Content-Length and Transfer-Encoding");
  if (bad_expect_) return Refuse(417, "unknown expectation");
  if (length_ > Size(limits.max_body)) return Refuse(413, "the body is too large");
  request.keep_alive = !close_ && (minor_ || keep_);
  // RFC 9110, 10.1.1: to be ignored in a 1.0 request.
  expects_ = expects_ && minor_;
  body_begin_ = pos_;
  phase_ = chunked_ ? Phase::kChunkSize : Phase::kBody;
  return Advance::kGo;
}

Parser::Advance Parser::Body(char* data, std::size_t size, const Limits& limits) {
  Advance advance = Advance::kGo;
  while (phase_ != Phase::kDone && advance == Advance::kGo) {
    switch (phase_) {
      case Phase::kBody:
        if (size - body_begin_ < length_) return Advance::kMore;
        body_size_ = static_cast<std::size_t>(length_);
        pos_ = body_begin_ + body_size_;
        phase_ = Phase::kDone;
        break;
      case Phase::kChunkSize:
        advance = ChunkSize(data, size, limits);
        break;
      case Phase::kChunkData:
        JoinChunk(data, size);
        if (length_ != 0) return Advance::kMore;
        phase_ = Phase::kChunkEnd;
        break;
      case Phase::kChunkEnd:
        advance = Crlf(data, size, Phase::kChunkSize);
        break;
      case Phase::kTrailer:
        advance = Crlf(data, size, Phase::kDone);
        break;
      case Phase::kLine:
      case Phase::kFields:
      case Phase::kDone:
        return Refuse(500, "the parser lost its way");
    }
  }
  return advance;
}

Parser::Advance Parser::ChunkSize(const char* data, std::size_t size, const Limits& limits) {
  std::string_view line;
  const std::size_t begin = pos_;
  const Advance found = NextLine(data, size, begin, kMaxChunkLine, 400, line);
  if (found != Advance::kGo) return found;
  if (line.empty()) return Refuse(400, "malformed chunk size");
  std::uint64_t value = 0;
  for (const char c : line) {
    const int digit = HexDigit(c);
    if (digit < 0) return Refuse(400, "malformed chunk size");
    value = value * 16 + static_cast<std::uint64_t>(digit);
  }
  // Many tiny chunks would make the buffer much larger than the body that it holds.
  overhead_ += pos_ - begin + 2;
  const std::uint64_t limit = Size(limits.max_body);
  if (value > limit || body_size_ + value > limit || overhead_ > Size(limits.max_header)) {
    return Refuse(413, "the body is too large");
  }
  length_ = value;
  phase_ = value == 0 ? Phase::kTrailer : Phase::kChunkData;
  return Advance::kGo;
}

void Parser::JoinChunk(char* data, std::size_t size) noexcept {
  const std::size_t here = std::min(size - pos_, static_cast<std::size_t>(length_));
  std::memmove(data + body_begin_ + body_size_, data + pos_, here);
  body_size_ += here;
  pos_ += here;
  length_ -= here;
}

Parser::Advance Parser::Crlf(const char* data, std::size_t size, Phase next) {
  constexpr std::string_view kEnd = "\r\n";
  const std::size_t here = std::min(size - pos_, kEnd.size());
  if (std::string_view(data + pos_, here) != kEnd.substr(0, here)) {
    return Refuse(400, next == Phase::kDone ? "trailers are not taken"
                                            : "a chunk does not end where it said");
  }
  if (here < kEnd.size()) return Advance::kMore;
  pos_ += kEnd.size();
  phase_ = next;
  return Advance::kGo;
}

Parser::Advance Parser::Refuse(int status, std::string_view reason) noexcept {
  status_ = static_cast<std::int16_t>(status);
  reason_ = reason;
  return Advance::kRefused;
}

}  // namespace leaf::http1
