#include "codec/http1/writer.h"

#include <charconv>
#include <cstring>
#include <ctime>

#include "codec/http1/errors.h"

namespace leaf::http1 {
namespace {

void AppendNumber(std::string& out, std::size_t number) {
  char digits[20];
  const char* const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
}

void AppendStatusLine(std::string& out, int status) {
  if (status == 200) {
    out.append("HTTP/1.1 200 OK\r\n");
    return;
  }
  out.append("HTTP/1.1 ");
  AppendNumber(out, static_cast<std::size_t>(status));
  out.append(" ").append(ReasonOf(status)).append("\r\n");
}

bool HasNoBody(int status) noexcept { return status < 200 || status == 204 || status == 304; }

void PutTwo(char* at, int value) noexcept {
  at[0] = static_cast<char>('0' + value / 10 % 10);
  at[1] = static_cast<char>('0' + value % 10);
}

}  // namespace

void AppendHead(std::string& out, const ResponseHead& head) {
  AppendStatusLine(out, head.status);
  out.append(head.date);
  if (!head.content_type.empty()) {
    out.append("Content-Type: ").append(head.content_type).append("\r\n");
  }
  if (!HasNoBody(head.status)) {
    out.append("Content-Length: ");
    AppendNumber(out, head.content_length);
    out.append("\r\n");
  }
  out.append(head.extra_headers);
  if (!head.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (head.minor == 0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

void AppendResponse(std::string& out, const Response& response, const ResponseForm& form) {
  AppendHead(out, {.status = response.status,
                   .date = form.date,
                   .content_type = response.content_type,
                   .content_length = response.body.size(),
                   .extra_headers = response.extra_headers,
                   .keep_alive = form.keep_alive && !response.close,
                   .minor = form.minor});
  if (!form.head && !HasNoBody(response.status)) out.append(response.body);
}

std::string_view DateLine::At(std::int64_t wall_ms) noexcept {
  constexpr std::string_view kShape = "Date: ---, 00 --- 0000 00:00:00 GMT\r\n";
  static_assert(kShape.size() == std::tuple_size_v<decltype(text_)>);
  const std::string_view line(text_.data(), text_.size());
  if (wall_ms / 1000 == second_) return line;
  second_ = wall_ms / 1000;
  const std::time_t seconds = static_cast<std::time_t>(second_);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  // Not strftime: its names of days and months depend on the locale.
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat",
                             kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  char* const text = text_.data();
  std::memcpy(text, kShape.data(), kShape.size());
  std::memcpy(text + 6, kDays.data() + 3 * utc.tm_wday, 3);
  PutTwo(text + 11, utc.tm_mday);
  std::memcpy(text + 14, kMonths.data() + 3 * utc.tm_mon, 3);
  PutTwo(text + 18, (utc.tm_year + 1900) / 100);
  PutTwo(text + 20, (utc.tm_year + 1900) % 100);
  PutTwo(text + 23, utc.tm_hour);
  PutTwo(text + 26, utc.tm_min);
  PutTwo(text + 29, utc.tm_sec);
  return line;
}

}  // namespace leaf::http1
