#include "base/iso_time.h"

#include <array>
#include <ctime>

namespace leaf {

std::string IsoTime(std::int64_t unix_ms) {
  std::int64_t seconds = unix_ms / 1000, millis = unix_ms % 1000;
  if (millis < 0) {
    millis += 1000;
    --seconds;
  }
  const std::time_t time = seconds;
  std::tm parts{};
  std::array<char, 64> text;
  if (gmtime_r(&time, &parts) == nullptr || parts.tm_year < -1900 || parts.tm_year > 8099) {
    return std::to_string(unix_ms);
  }
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string result(text.data(), length);
  result += '.';
  result += static_cast<char>('0' + millis / 100);
  result += static_cast<char>('0' + millis / 10 % 10);
  result += static_cast<char>('0' + millis % 10);
  return result + "Z";
}

}  // namespace leaf
