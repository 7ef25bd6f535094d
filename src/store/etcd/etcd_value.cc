#include "store/etcd/etcd_value.h"

#include <charconv>
#include <optional>

#include "base/assert.h"

namespace leaf {
namespace {

bool Take(std::string_view& text, std::string_view wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(wanted.size());
  return true;
}

std::optional<std::int64_t> TakeNumber(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<EtcdValue> Read(std::string_view text) {
  if (!Take(text, R"({"max_id":")")) return std::nullopt;
  const auto max_id = TakeNumber(text);
  if (!max_id || !Take(text, R"(","step":)")) return std::nullopt;
  const auto step = TakeNumber(text);
  if (!step || text != "}") return std::nullopt;
  return EtcdValue{*max_id, *step};
}

}  // namespace

std::string EtcdValue::Text() const {
  return R"({"max_id":")" + std::to_string(max_id) + R"(","step":)" + std::to_string(step) + "}";
}

Result<EtcdValue> ParseEtcdValue(std::string_view key, std::string_view value) {
  // Written again it must be the same: no leading zeros, no blanks, no second spelling.
  if (const auto read = Read(value); read && read->Text() == value) return *read;
  return Error{Code::kUnavailable,
               "key " + ShownBytes(key) + " holds " + ShownBytes(value) +
                   R"(, which is no row; it must be exactly like {"max_id":"1001","step":1000}, )"
                   "two 64-bit integers and no blanks. Nothing is reserved for it until that is "
                   "mended (etcdctl put)"};
}

std::string ShownBytes(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  static constexpr std::size_t kMost = 200;
  std::string shown = "'";
  for (const char c : bytes.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      shown += c;
    } else {
      shown += "\\x";
      shown += kDigits[byte >> 4];
      shown += kDigits[byte & 15];
    }
  }
  return shown + (bytes.size() > kMost ? "...'" : "'");
}

std::string PrefixEnd(std::string prefix) {
  LEAF_ASSERT(!prefix.empty() && static_cast<unsigned char>(prefix.back()) != 0xFF);
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace leaf
