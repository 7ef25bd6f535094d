// A record: checksum (4 bytes, of all that follows), tag length (4), end (8), seen (8), flags (1),
// the store's name (4, if flag 2 says so) and generation (4, if flag 8 does), tag. Flags: 1
// regressed, 2 has a store, 8 has a generation; in version 2, which had none of these, 4: moved.
#include "state/mark_record.h"

#include <array>

namespace leaf {
namespace {

constexpr std::size_t kFixed = 25, kStore = 4, kGeneration = 4;
constexpr unsigned kRegressed = 1, kHasStore = 2, kMoved = 4, kHasGeneration = 8;
constexpr std::size_t kMaxTag = 1 << 20;  // keeps a broken length from reading far

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? 0xedb88320U : 0U);
    table[i] = value;
  }
  return table;
}
constexpr auto kTable = MakeTable();

std::uint32_t Checksum(std::string_view bytes) {
  std::uint32_t value = 0xffffffffU;
  for (const char c : bytes) {
    value = (value >> 8) ^ kTable[(value ^ static_cast<unsigned char>(c)) & 0xffU];
  }
  return value ^ 0xffffffffU;
}

void Put(std::uint64_t value, std::size_t bytes, std::string& out) {
  for (std::size_t i = 0; i < bytes; ++i)
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t Get(std::string_view at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
  }
  return value;
}

// What precedes the tag of a record.
std::size_t Fixed(std::string_view record) {
  const std::uint64_t flags = Get(record.substr(24), 1);
  return kFixed + ((flags & kHasStore) != 0 ? kStore : 0) +
         ((flags & kHasGeneration) != 0 ? kGeneration : 0);
}

// The size of a sound record at the front of `bytes`, or 0.
std::size_t SoundRecord(std::string_view bytes) {
  if (bytes.size() < kFixed) return 0;
  const std::size_t tag = Get(bytes.substr(4), 4);
  if (tag == 0 || tag > kMaxTag || bytes.size() - kFixed < tag) return 0;
  const std::size_t size = Fixed(bytes) + tag;
  if (bytes.size() < size) return 0;
  return Checksum(bytes.substr(4, size - 4)) == Get(bytes, 4) ? size : 0;
}

}  // namespace

void AppendMark(std::string_view tag, const Mark& mark, std::string& out) {
  const std::size_t begin = out.size();
  Put(0, 4, out);
  Put(tag.size(), 4, out);
  Put(static_cast<std::uint64_t>(mark.end), 8, out);
  Put(static_cast<std::uint64_t>(mark.seen), 8, out);
  const bool leased = mark.generation != 0;
  Put((mark.regressed ? kRegressed : 0) | (leased ? kHasStore | kHasGeneration : 0), 1, out);
  if (leased) {
    Put(mark.store, kStore, out);
    Put(mark.generation, kGeneration, out);
  }
  out.append(tag);
  std::string sum;
  Put(Checksum(std::string_view(out).substr(begin + 4)), 4, sum);
  out.replace(begin, 4, sum);
}

Result<std::size_t> ParseMarks(std::string_view file,
                               const std::function<void(std::string_view, const Mark&)>& visit) {
  if (!file.starts_with(kMarkHeader) && !file.starts_with(kMarkHeader2) &&
      !file.starts_with(kMarkHeader1)) {
    return Error{Code::kInternal, "it does not begin as a journal of marks of this version"};
  }
  std::size_t at = kMarkHeader.size();
  while (at < file.size()) {
    const std::string_view rest = file.substr(at);
    const std::size_t size = SoundRecord(rest);
    if (size == 0) break;
    Mark mark;
    mark.end = static_cast<std::int64_t>(Get(rest.substr(8), 8));
    mark.seen = static_cast<std::int64_t>(Get(rest.substr(16), 8));
    const std::uint64_t flags = Get(rest.substr(24), 1);
    mark.regressed = (flags & kRegressed) != 0;
    if ((flags & kHasStore) != 0) {
      mark.store = static_cast<std::uint32_t>(Get(rest.substr(kFixed), kStore));
      mark.generation = (flags & kMoved) != 0 ? 2 : 1;
    }
    if ((flags & kHasGeneration) != 0) {
      mark.generation = static_cast<std::uint32_t>(Get(rest.substr(kFixed + kStore), kGeneration));
    }
    const std::size_t fixed = Fixed(rest);
    visit(rest.substr(fixed, size - fixed), mark);
    at += size;
  }
  // A crash tears only the end. A sound record behind a broken one means that the disk lies.
  for (std::size_t later = at + 1; later < file.size(); ++later) {
    if (SoundRecord(file.substr(later)) == 0) continue;
    return Error{Code::kInternal, "the record at byte " + std::to_string(at) + " is broken"};
  }
  return at;
}

}  // namespace leaf
