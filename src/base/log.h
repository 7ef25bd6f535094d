#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace leaf::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError };
enum class Format : std::uint8_t { kText, kJson };

/// One value of an event, already text; escaped when written.
struct Field {
  Field(std::string_view field_key, std::string_view field_value)
      : key(field_key), value(field_value) {}
  Field(std::string_view field_key, std::int64_t number)
      : key(field_key), value(std::to_string(number)) {}
  std::string_view key;
  std::string value;
};

/// Starts the writer, to standard error. Before it, and in tests without it, events of kWarn and
/// above are written at once. Not thread-safe; call once.
void Start(Level level, Format format);

/// Writes what is queued, at most for half a second, and stops the writer.
void Stop() noexcept;

/// One line an event, never one an id. Thread-safe, never blocks: when the reader of the log is
/// slow the oldest lines are dropped, and Dropped() counts them.
void Write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

inline void Debug(std::string_view m, std::initializer_list<Field> f = {}) {
  Write(Level::kDebug, m, f);
}
inline void Info(std::string_view m, std::initializer_list<Field> f = {}) {
  Write(Level::kInfo, m, f);
}
inline void Warn(std::string_view m, std::initializer_list<Field> f = {}) {
  Write(Level::kWarn, m, f);
}
inline void Error(std::string_view m, std::initializer_list<Field> f = {}) {
  Write(Level::kError, m, f);
}

std::uint64_t Dropped() noexcept;

}  // namespace leaf::log
