#include "history.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace leaf::tools {
namespace {

constexpr std::string_view kMagic = "LEAFHIS1";
constexpr std::int64_t kNameMax = 4096;
constexpr std::size_t kReadBuffer = std::size_t{1} << 20;

std::size_t Padding(std::size_t size) { return (8 - size % 8) % 8; }

struct Closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

}  // namespace

HistoryWriter::HistoryWriter(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) {
  ok_ = file_ != nullptr;
  Put(kMagic.data(), kMagic.size());
}

void HistoryWriter::Put(const void* bytes, std::size_t size) {
  if (ok_) ok_ = std::fwrite(bytes, 1, size, file_.get()) == size;
}

void HistoryWriter::Name(HistoryRecord record, std::string_view name) {
  static constexpr std::array<char, 8> kZeros{};
  record.count = static_cast<std::int64_t>(name.size());
  Put(&record, sizeof record);
  Put(name.data(), name.size());
  Put(kZeros.data(), Padding(name.size()));
}

void HistoryWriter::NameTag(std::uint32_t tag, std::string_view name) {
  HistoryRecord record;
  record.kind = HistoryRecord::kTagName;
  record.tag = tag;
  Name(record, name);
}

void HistoryWriter::NameServer(std::uint16_t server, std::string_view name) {
  HistoryRecord record;
  record.kind = HistoryRecord::kServerName;
  record.server = server;
  Name(record, name);
}

void HistoryWriter::Write(const HistoryRecord& record) { Put(&record, sizeof record); }

bool HistoryWriter::Close() {
  if (file_ != nullptr && std::fclose(file_.release()) != 0) ok_ = false;
  return ok_;
}

HistoryReader::HistoryReader(const std::string& path)
    : path_(path), file_(std::fopen(path.c_str(), "rb")) {
  if (file_ == nullptr) {
    error_ = path + ": " + std::strerror(errno);
    return;
  }
  std::setvbuf(file_.get(), nullptr, _IOFBF, kReadBuffer);
  std::array<char, 8> magic{};
  if (!Read(magic.data(), magic.size()) || std::string_view(magic.data(), magic.size()) != kMagic) {
    error_ = path + ": not a history: it does not begin with " + std::string(kMagic);
  }
}

/// False: less is left.
bool HistoryReader::Read(void* bytes, std::size_t size) {
  const std::size_t got = std::fread(bytes, 1, size, file_.get());
  end_ += got;
  if (got == size) return true;
  if (std::ferror(file_.get()) != 0) error_ = path_ + ": " + std::strerror(errno);
  return false;
}

bool HistoryReader::Next() {
  if (!error_.empty() || truncated_) return false;
  offset_ = end_;
  if (!Read(&record_, sizeof record_)) {
    truncated_ = end_ != offset_ && error_.empty();
    return false;
  }
  name_.clear();
  if (record_.kind == HistoryRecord::kAnswer) return true;
  const bool is_name =
      record_.kind == HistoryRecord::kTagName || record_.kind == HistoryRecord::kServerName;
  if (!is_name || record_.count < 0 || record_.count > kNameMax) {
    error_ = path_ + ": a record of an unknown kind at byte " + std::to_string(offset_);
    return false;
  }
  const auto size = static_cast<std::size_t>(record_.count);
  name_.resize(size + Padding(size));
  if (!Read(name_.data(), name_.size())) {
    truncated_ = error_.empty();
    return false;
  }
  name_.resize(size);
  return true;
}

bool ReadRecordAt(const std::string& path, std::uint64_t offset, HistoryRecord& out) {
  const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "rb"));
  return file != nullptr && std::fseek(file.get(), static_cast<long>(offset), SEEK_SET) == 0 &&
         std::fread(&out, sizeof out, 1, file.get()) == 1;
}

}  // namespace leaf::tools
