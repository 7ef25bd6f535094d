// Events are formatted by the caller and queued for one writer thread (spdlog's, bounded, oldest
// dropped), so that a stopped reader of the log delays nobody who issues ids.

#include "base/log.h"

#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

#include "base/utf8.h"

namespace leaf::log {
namespace {

constexpr std::size_t kQueue = 4096;
constexpr auto kFlushTimeout = std::chrono::milliseconds(500);
constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

/// Whole lines to standard error by write(2).
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::uint64_t written() const noexcept { return written_.load(std::memory_order_relaxed); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::size_t done = 0;
    while (done < line.size()) {
      const ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) {
        // Whoever shares the file made it non-blocking; a line must not be torn for that.
        pollfd room{STDERR_FILENO, POLLOUT, 0};
        ::poll(&room, 1, -1);
        continue;
      }
      if (n < 0) break;  // nowhere left to say so
      done += static_cast<std::size_t>(n);
    }
    written_.fetch_add(1, std::memory_order_relaxed);
  }
  void flush_() override {}

 private:
  std::atomic<std::uint64_t> written_{0};
};

struct Writer {
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<StderrSink> sink;
  std::shared_ptr<spdlog::async_logger> logger;
  Level level = Level::kInfo;
  Format format = Format::kText;
  std::atomic<std::uint64_t> queued{0};
};

// Leaked on purpose when its reader hangs: joining would hang as well.
std::atomic<Writer*> writer{nullptr};

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

void AppendCode(std::string& out, unsigned code) {
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", code);
  out += text;
}

/// Control characters, which could forge a line or steer a terminal, become \u00XX; in quotes,
/// quotes are escaped too. A byte that is no UTF-8, which would spoil a line of JSON, becomes
/// U+FFFD.
void AppendEscaped(std::string& out, std::string_view text, bool quoted) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (quoted && (byte == '"' || byte == '\\')) {
      out += '\\';
      out += text[0];
    } else if (byte < 0x20 || byte == 0x7f) {
      AppendCode(out, byte);
    } else if (byte == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0) {
      AppendCode(out, static_cast<unsigned char>(text[1]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

bool NeedsQuotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == '"' || c == '\\' || c == '=' ||
        static_cast<unsigned char>(c) >= 0x7f)
      return true;
  }
  return false;
}

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  AppendEscaped(out, text, true);
  out += '"';
}

std::string TextLine(std::string_view message, std::initializer_list<Field> fields) {
  std::string line;
  AppendEscaped(line, message, false);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (NeedsQuotes(field.value)) {
      AppendQuoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line;
}

std::string JsonMembers(std::string_view message, std::initializer_list<Field> fields) {
  std::string line = "\"message\":";
  AppendQuoted(line, message);
  for (const Field& field : fields) {
    line += ',';
    AppendQuoted(line, field.key);
    line += ':';
    AppendQuoted(line, field.value);
  }
  return line;
}

}  // namespace

void Start(Level level, Format format) {
  auto* w = new Writer;
  w->level = level;
  w->format = format;
  w->pool = std::make_shared<spdlog::details::thread_pool>(kQueue, 1);
  w->sink = std::make_shared<StderrSink>();
  w->logger = std::make_shared<spdlog::async_logger>("leafd", w->sink, w->pool,
                                                     spdlog::async_overflow_policy::overrun_oldest);
  w->logger->set_level(ToSpdlog(level));
  w->logger->set_pattern(format == Format::kJson ? kJsonPattern : kTextPattern);
  writer.store(w, std::memory_order_release);
}

void Stop() noexcept {
  Writer* w = writer.exchange(nullptr, std::memory_order_acq_rel);
  if (w == nullptr) return;
  const auto end = std::chrono::steady_clock::now() + kFlushTimeout;
  while (w->sink->written() + w->pool->overrun_counter() < w->queued.load()) {
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  delete w;
}

void Write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  Writer* w = writer.load(std::memory_order_acquire);
  if (w == nullptr) {
    if (level >= Level::kWarn)
      std::fprintf(stderr, "leafd: %s\n", TextLine(message, fields).c_str());
    return;
  }
  if (level < w->level) return;
  w->queued.fetch_add(1, std::memory_order_relaxed);
  w->logger->log(ToSpdlog(level),
                 spdlog::string_view_t(w->format == Format::kJson ? JsonMembers(message, fields)
                                                                  : TextLine(message, fields)));
}

std::uint64_t Dropped() noexcept {
  const Writer* w = writer.load(std::memory_order_acquire);
  return w == nullptr ? 0 : w->pool->overrun_counter();
}

}  // namespace leaf::log
