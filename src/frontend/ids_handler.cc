// A request is matched by the prefix of its path, its tag is cut out as a view, and the answer is
// written straight into the connection's output. Only requests that park, escapes in a path and
// errors build strings.

#include "frontend/ids_handler.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "base/failpoint.h"
#include "codec/http1/accept.h"
#include "codec/http1/errors.h"
#include "codec/http1/percent.h"
#include "codec/http1/query.h"
#include "codec/http1/writer.h"
#include "codec/text.h"

namespace leaf {

using http1::Method;

/// How one request is to be answered; views into the request, or into the IdReply that kept it.
struct IdsHandler::Shape : IdForm {
  std::string_view tag, path;
  std::string_view
      accept;  // of the request, as long as it is there; html_error is drawn from it late

  http1::ResponseForm response_form(const ReactorTurn& turn) const noexcept {
    return {turn.date, keep_alive, minor, head};
  }
};

namespace {

constexpr std::string_view kLeafPrefix = "/api/segment/get/";
constexpr std::string_view kLeafSnowflakePrefix = "/api/snowflake/get/";
constexpr std::string_view kSnowflakePath = "/api/v1/snowflake";
constexpr std::string_view kIdsPrefix = "/api/v1/ids/";
constexpr std::string_view kRangesPrefix = "/api/v1/ranges/";
constexpr std::string_view kNoStore = "Cache-Control: no-store\r\n";
constexpr std::string_view kText = "text/plain;charset=UTF-8";
constexpr std::string_view kJson = "application/json";
constexpr std::size_t kScratchFirst = 4096;
constexpr std::size_t kScratchKept = 1 << 20;  // bytes of a body buffer that a thread keeps

/// A decimal number without an allocation.
class Digits {
 public:
  explicit Digits(std::int64_t number) noexcept
      : size_(static_cast<std::size_t>(
            std::to_chars(bytes_.data(), bytes_.data() + bytes_.size(), number).ptr -
            bytes_.data())) {}
  std::string_view text() const noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, 20> bytes_;
  std::size_t size_;
};

bool IsKnown(Method method) noexcept {
  return method != Method::kOther && method != Method::kConnect;
}

/// Leaf's methods that take an id.
bool TakesLeafId(Method method) noexcept {
  switch (method) {
    case Method::kGet:
    case Method::kHead:
    case Method::kPost:
    case Method::kPut:
    case Method::kPatch:
    case Method::kDelete:
      return true;
    case Method::kOptions:
    case Method::kTrace:
    case Method::kConnect:
    case Method::kOther:
      break;
  }
  return false;
}

/// What in a key of Leaf's path needs care, found in one pass.
struct KeyMarks {
  bool splits = false;   // '/' or ';': deeper than a key, or with a matrix parameter
  bool escapes = false;  // '%'
};

KeyMarks MarksOf(std::string_view key) noexcept {
  KeyMarks marks;
  for (const char c : key) {
    marks.splits |= c == '/' || c == ';';
    marks.escapes |= c == '%';
  }
  return marks;
}

/// The buffer in which this thread builds a body whose length is not known before.
std::string& Scratch() {
  thread_local std::string scratch;
  if (scratch.capacity() > kScratchKept) scratch = std::string();
  scratch.clear();
  scratch.reserve(kScratchFirst);
  return scratch;
}

void AppendIdsJson(std::string_view tag, const Ranges& ids, std::string& body) {
  body += "{\"tag\":";
  AppendJson(tag, body);
  body += ",\"ids\":[";
  const char* separator = "\"";
  for (const Range& range : ids) {
    for (std::int64_t id = range.first; id < range.last; ++id) {
      body += separator;
      AppendDecimal(id, body);
      separator = "\",\"";
    }
  }
  body += "\"]}";
}

void AppendRangesJson(std::string_view tag, const Ranges& ids, std::string& body) {
  body += "{\"tag\":";
  AppendJson(tag, body);
  body += ",\"ranges\":[";
  const char* separator = "";
  for (const Range& range : ids) {
    body += separator;
    body += "{\"first\":\"";
    AppendDecimal(range.first, body);
    body += "\",\"count\":";
    AppendDecimal(range.size(), body);
    body += '}';
    separator = ",";
  }
  body += "]}";
}

void AppendLines(const Ranges& ids, std::string& body) {
  for (const Range& range : ids) {
    for (std::int64_t id = range.first; id < range.last; ++id) {
      AppendDecimal(id, body);
      body += '\n';
    }
  }
}

/// Digits only; nullopt if it is no number or above `max`.
std::optional<std::int64_t> ParseCount(std::string_view text, std::int64_t max) noexcept {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > max)
    return std::nullopt;
  return count;
}

/// The n of a query; nullopt if it is not exactly one good number.
std::optional<std::int64_t> CountOf(std::string_view query, std::int64_t max) {
  if (query.empty()) return 1;
  if (query.starts_with("n=") && query.find_first_of("&%+") == std::string_view::npos) {
    return ParseCount(query.substr(2), max);
  }
  const http1::Parameter n = http1::FindParameter(query, "n");
  if (n.bad || n.count > 1) return std::nullopt;
  return n.count == 0 ? std::optional<std::int64_t>(1) : ParseCount(n.value, max);
}

void AppendMintedJson(const Layout& layout, const Minted& minted, std::string& body) {
  body += "{\"ids\":[";
  const char* separator = "\"";
  for (std::int64_t i = 0; i < minted.count; ++i) {
    body += separator;
    AppendDecimal(minted.At(layout, i), body);
    separator = "\",\"";
  }
  body += "\"]}";
}

void AppendMintedLines(const Layout& layout, const Minted& minted, std::string& body) {
  for (std::int64_t i = 0; i < minted.count; ++i) {
    AppendDecimal(minted.At(layout, i), body);
    body += '\n';
  }
}

Error BadCount(std::string_view key, std::int64_t max) {
  return {Code::kInvalidArgument, "n must be one whole number from 1 to " + std::to_string(max) +
                                      " (" + std::string(key) + ")"};
}

Ranges Zero() noexcept {
  Ranges zero;
  zero.at[0] = {0, 1};
  zero.size = 1;
  return zero;
}

/// Leaf reads the key "a.b" as "a", and lets the part behind the last dot choose the content type.
void CutAfterDot(std::string_view& tag, std::string_view& content_type) noexcept {
  const std::size_t dot = tag.rfind('.');
  if (dot == std::string_view::npos) return;
  content_type = http1::SuffixContentType(tag.substr(dot + 1));
  tag = tag.substr(0, dot);
}

}  // namespace

/// Of a request below /api/v1 that lists ids.
IdsHandler::Shape IdsHandler::ApiShape(const http1::Request& request) {
  Shape shape;
  const bool text = !request.accept.empty() && http1::PrefersText(request.accept);
  shape.body = text ? IdForm::Body::kIdsText : IdForm::Body::kIdsJson;
  shape.head = request.method == Method::kHead;
  shape.keep_alive = request.keep_alive;
  shape.minor = request.minor;
  return shape;
}

IdsHandler::Next IdsHandler::Handle(const http1::Request& request, const ReactorTurn& turn,
                                    Waiter& waiter, IdReply& reply, std::string& out) {
  const std::string_view path = request.path;
  if (path.starts_with(kLeafPrefix)) {
    return HandleLeaf(request, path.substr(kLeafPrefix.size()), false, turn, waiter, reply, out);
  }
  if (path.starts_with(kLeafSnowflakePrefix)) {
    return HandleLeaf(request, path.substr(kLeafSnowflakePrefix.size()), true, turn, waiter, reply,
                      out);
  }
  if (path.starts_with(kIdsPrefix)) {
    return HandleApi(request, path.substr(kIdsPrefix.size()), false, turn, waiter, reply, out);
  }
  if (path.starts_with(kRangesPrefix)) {
    return HandleApi(request, path.substr(kRangesPrefix.size()), true, turn, waiter, reply, out);
  }
  if (path == kSnowflakePath) return HandleSnowflake(request, turn, waiter, reply, out);
  return Next::kNotMine;
}

IdsHandler::Next IdsHandler::HandleLeaf(const http1::Request& request, std::string_view key,
                                        bool snowflake, const ReactorTurn& turn, Waiter& waiter,
                                        IdReply& reply, std::string& out) {
  const bool slash = key.ends_with('/');
  if (slash) key.remove_suffix(1);
  const KeyMarks marks = MarksOf(key);
  if (key.empty() || marks.splits || !TakesLeafId(request.method)) return Next::kNotMine;
  Shape shape;
  shape.snowflake = snowflake;
  shape.head = request.method == Method::kHead;
  shape.keep_alive = request.keep_alive;
  shape.minor = request.minor;
  shape.path = request.path;
  shape.tag = key;
  std::string decoded;
  if (marks.escapes) {
    if ((options_.reject_encoded_slash && http1::HasEncodedSlash(key)) ||
        !http1::PercentDecode(key, decoded)) {
      turn.stats.Count(Protocol::kHttp, static_cast<int>(Code::kInvalidArgument));
      http1::AppendResponse(out, http1::LeafBadPath(), shape.response_form(turn));
      return Next::kAnswered;
    }
    shape.tag = decoded;
  }
  // With a trailing slash Leaf takes the whole key.
  if (options_.leaf_cut_after_dot && !slash) CutAfterDot(shape.tag, shape.content_type);
  if (shape.content_type.empty()) shape.content_type = http1::IdContentType(request.accept);
  shape.accept = request.accept;
  waiter.count = 1;
  const bool enabled = snowflake ? ids_.snowflake_enabled() : ids_.segment_enabled();
  if (options_.disabled_returns_zero && !enabled) {
    Answer(shape, Result<Ranges>(Zero()), turn, out);
    return Next::kAnswered;
  }
  if (snowflake) return Mint(shape, turn, waiter, reply, out);
  return Take(shape, turn, waiter, reply, out);
}

std::optional<std::int64_t> IdsHandler::Admit(const http1::Request& request, const Shape& shape,
                                              std::int64_t max, std::string_view key,
                                              const ReactorTurn& turn, std::string& out) const {
  const auto refuse = [&](const http1::Response& response) {
    turn.stats.Count(Protocol::kHttp, static_cast<int>(Code::kInvalidArgument));
    http1::AppendResponse(out, response, shape.response_form(turn));
  };
  if (request.method != Method::kGet && request.method != Method::kPost) {
    refuse(http1::Problem(405, {Code::kInvalidArgument, "this path takes GET and POST"},
                          "Allow: GET, POST\r\n"));
    return std::nullopt;
  }
  const auto count = CountOf(request.query, max);
  if (!count) refuse(http1::Problem(BadCount(key, max)));
  return count;
}

IdsHandler::Next IdsHandler::HandleApi(const http1::Request& request, std::string_view key,
                                       bool ranges, const ReactorTurn& turn, Waiter& waiter,
                                       IdReply& reply, std::string& out) {
  if (key.empty() || key.find('/') != std::string_view::npos || !IsKnown(request.method))
    return Next::kNotMine;
  Shape shape = ApiShape(request);
  if (ranges) shape.body = IdForm::Body::kRanges;
  shape.tag = key;
  std::string decoded;
  if (key.find('%') != std::string_view::npos) {
    if (!http1::PercentDecode(key, decoded)) {
      turn.stats.Count(Protocol::kHttp, static_cast<int>(Code::kInvalidArgument));
      http1::AppendResponse(
          out,
          http1::Problem({Code::kInvalidArgument, "the path has a bad percent escape or a NUL"}),
          shape.response_form(turn));
      return Next::kAnswered;
    }
    shape.tag = decoded;
  }
  const IdLimits& limits = ids_.limits();
  const auto count = Admit(request, shape, ranges ? limits.max_count : limits.max_list,
                           ranges ? "segment.max_count" : "segment.max_list", turn, out);
  if (!count) return Next::kAnswered;
  waiter.count = *count;
  return Take(shape, turn, waiter, reply, out);
}

IdsHandler::Next IdsHandler::HandleSnowflake(const http1::Request& request, const ReactorTurn& turn,
                                             Waiter& waiter, IdReply& reply, std::string& out) {
  if (!IsKnown(request.method)) return Next::kNotMine;
  Shape shape = ApiShape(request);
  shape.snowflake = true;
  const bool takes = request.method == Method::kGet || request.method == Method::kPost;
  if (takes && ids_.snowflake() == nullptr) {
    Refuse(shape, ids_.no_snowflake(), turn, out);  // to any count
    return Next::kAnswered;
  }
  const std::int64_t max = takes ? ids_.snowflake()->options().max_count : 1;
  const auto count = Admit(request, shape, max, "snowflake.max_count", turn, out);
  if (!count) return Next::kAnswered;
  waiter.count = *count;
  return Mint(shape, turn, waiter, reply, out);
}

IdsHandler::Next IdsHandler::Take(const Shape& shape, const ReactorTurn& turn, Waiter& waiter,
                                  IdReply& reply, std::string& out) {
  Result<Ranges> result = Ranges{};
  waiter.one_piece = false;
  if (!ids_.NextIds(turn.reader, shape.tag, waiter, turn.now, result))
    return Park(shape, turn, reply);
  Answer(shape, result, turn, out);
  return Next::kAnswered;
}

IdsHandler::Next IdsHandler::Mint(const Shape& shape, const ReactorTurn& turn, Waiter& waiter,
                                  IdReply& reply, std::string& out) {
  Result<Minted> result = Minted{};
  LEAF_FAILPOINT("snowflake.before_mint");
  if (!ids_.MintIds(waiter, turn.now, result)) return Park(shape, turn, reply);
  LEAF_FAILPOINT("snowflake.after_mint");
  Answer(shape, result, turn, out);
  return Next::kAnswered;
}

/// The waiter runs on this thread, so not before this function has ended.
IdsHandler::Next IdsHandler::Park(const Shape& shape, const ReactorTurn& turn, IdReply& reply) {
  static_cast<IdForm&>(reply) = shape;
  reply.tag = shape.tag;
  reply.path = shape.path;
  reply.html_error = http1::PrefersHtml(shape.accept);
  reply.started = turn.now;
  return Next::kParked;
}

void IdsHandler::Finish(const IdReply& reply, Waiter& waiter, const ReactorTurn& turn,
                        std::string& out) {
  Shape shape;
  static_cast<IdForm&>(shape) = reply;
  shape.tag = reply.tag;
  shape.path = reply.path;
  turn.stats.Took(Protocol::kHttp, turn.now - reply.started, 1);
  if (shape.snowflake && waiter.result.ok()) {
    Answer(shape, Result<Minted>(waiter.minted), turn, out);
  } else {
    Answer(shape, waiter.result, turn, out);
  }
}

bool IdsHandler::Cancel(const IdReply& reply, Waiter& waiter) noexcept {
  return reply.snowflake ? ids_.snowflake()->Cancel(waiter) : ids_.engine()->Cancel(waiter);
}

void IdsHandler::GiveUp(const IdReply& reply, const Waiter& waiter) noexcept {
  if (!reply.snowflake && waiter.result.ok()) ids_.engine()->Abandon(reply.tag, *waiter.result);
}

void IdsHandler::Answer(const Shape& shape, const Result<Ranges>& result, const ReactorTurn& turn,
                        std::string& out) const {
  if (!result.ok()) {
    Refuse(shape, result.error(), turn, out);
    return;
  }
  const Ranges& ids = *result;
  if (shape.body == IdForm::Body::kLeaf) {
    const Digits digits(ids.at[0].first);
    Send(shape, digits.text(), shape.content_type, 1, turn, out);
    return;
  }
  std::string& body = Scratch();
  std::string_view content_type = kJson;
  if (shape.body == IdForm::Body::kIdsText) {
    AppendLines(ids, body);
    content_type = kText;
  } else if (shape.body == IdForm::Body::kRanges) {
    AppendRangesJson(shape.tag, ids, body);
  } else {
    AppendIdsJson(shape.tag, ids, body);
  }
  Send(shape, body, content_type, ids.count(), turn, out);
}

void IdsHandler::Answer(const Shape& shape, const Result<Minted>& result, const ReactorTurn& turn,
                        std::string& out) const {
  if (!result.ok()) {
    Refuse(shape, result.error(), turn, out);
    return;
  }
  const Layout& layout = ids_.snowflake()->options().layout;
  if (shape.body == IdForm::Body::kLeaf) {
    const Digits digits(result->At(layout, 0));
    Send(shape, digits.text(), shape.content_type, 1, turn, out);
    return;
  }
  std::string& body = Scratch();
  const bool text = shape.body == IdForm::Body::kIdsText;
  text ? AppendMintedLines(layout, *result, body) : AppendMintedJson(layout, *result, body);
  Send(shape, body, text ? kText : kJson, result->count, turn, out);
}

void IdsHandler::Send(const Shape& shape, std::string_view body, std::string_view content_type,
                      std::int64_t ids, const ReactorTurn& turn, std::string& out) const {
  if (shape.snowflake) LEAF_FAILPOINT("snowflake.before_send");
  turn.stats.Count(Protocol::kHttp, RequestStats::kOk);
  turn.stats.Issued(static_cast<std::uint64_t>(ids));
  http1::AppendHead(out, {.status = 200,
                          .date = turn.date,
                          .content_type = content_type,
                          .content_length = body.size(),
                          .extra_headers = kNoStore,
                          .keep_alive = shape.keep_alive,
                          .minor = shape.minor});
  if (!shape.head) out += body;
}

void IdsHandler::Refuse(const Shape& shape, const Error& error, const ReactorTurn& turn,
                        std::string& out) const {
  turn.stats.Count(Protocol::kHttp, static_cast<int>(error.code));
  http1::AppendResponse(out, ErrorAnswer(shape, error), shape.response_form(turn));
}

http1::Response IdsHandler::ErrorAnswer(const Shape& shape, const Error& error) const {
  if (shape.body != IdForm::Body::kLeaf) return http1::Problem(error);
  const http1::LeafWords words = http1::LeafWordsOf(error.code, shape.snowflake);
  http1::LeafError leaf;
  leaf.exception = words.exception;
  leaf.message = words.message;
  leaf.path = shape.path;
  leaf.code = error.code;
  leaf.html = shape.html_error || http1::PrefersHtml(shape.accept);
  return http1::LeafAnswer(leaf, clock_.WallMillis());
}

}  // namespace leaf
