#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace leaf::tools {

/// A history: what clients asked for and what they were told, as idload writes it and idcheck reads
/// it.
///
/// The file is the eight bytes "LEAFHIS1", then records of 56 bytes in the byte order of the host.
/// A record of kTagName or kServerName gives a number a name: `count` bytes of text follow it,
/// filled up to a multiple of eight, and it stands before the first use of its number. Times come
/// from CLOCK_MONOTONIC, so that histories of several programs on one host can be judged together;
/// `sent_ns` is taken before the request is written and `received_ns` after its answer was read.
/// The records of one client stand in the order of their answers. A file may end within a record
/// (its writer was killed).
struct HistoryRecord {
  enum Kind : std::uint8_t { kAnswer = 0, kTagName = 1, kServerName = 2 };
  static constexpr std::uint16_t kNoAnswer = 0;  ///< status: it may or may not have been served

  std::uint64_t seq =
      0;  ///< of the request, rising over the whole file; the same in each piece of an answer
  std::int64_t sent_ns = 0;
  std::int64_t received_ns = 0;
  std::int64_t first = 0;    ///< status 200: the ids [first, first + count)
  std::int64_t count = 0;    ///< otherwise: how many were asked for
  std::uint32_t client = 0;  ///< one connection; a new connection has a new number
  std::uint32_t tag = 0;
  std::uint16_t server = 0;
  std::uint16_t status = 0;  ///< of HTTP, or kNoAnswer
  std::uint8_t kind = kAnswer;
  std::uint8_t reserved[3] = {};
};
static_assert(sizeof(HistoryRecord) == 56);

/// Writes a history. Thread-compatible. After a failed write ok() stays false.
class HistoryWriter {
 public:
  explicit HistoryWriter(const std::string& path);

  void NameTag(std::uint32_t tag, std::string_view name);
  void NameServer(std::uint16_t server, std::string_view name);
  void Write(const HistoryRecord& record);
  /// Flushes and closes; false if anything was not written.
  [[nodiscard]] bool Close();
  bool ok() const noexcept { return ok_; }

 private:
  void Name(HistoryRecord record, std::string_view name);
  void Put(const void* bytes, std::size_t size);

  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Closer> file_;
  bool ok_ = true;
};

/// Reads a history from its beginning. Thread-compatible.
class HistoryReader {
 public:
  explicit HistoryReader(const std::string& path);

  /// False at the end, at a torn tail and at an error.
  bool Next();
  const HistoryRecord& record() const noexcept { return record_; }
  const std::string& name() const noexcept { return name_; }    ///< empty for answers
  std::uint64_t offset() const noexcept { return offset_; }     ///< where the record stands
  std::uint64_t end() const noexcept { return end_; }           ///< behind all that was read
  bool truncated() const noexcept { return truncated_; }        ///< the last record is cut off
  const std::string& error() const noexcept { return error_; }  ///< with the path; or empty

 private:
  bool Read(void* bytes, std::size_t size);

  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  const std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  HistoryRecord record_;
  std::string name_, error_;
  std::uint64_t offset_ = 0, end_ = 0;
  bool truncated_ = false;
};

/// The one record at an offset that a HistoryReader told; false if it cannot be read.
bool ReadRecordAt(const std::string& path, std::uint64_t offset, HistoryRecord& out);

}  // namespace leaf::tools
