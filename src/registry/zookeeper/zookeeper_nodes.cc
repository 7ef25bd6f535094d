#include "registry/zookeeper/zookeeper_nodes.h"

#include <algorithm>
#include <charconv>

#include "registry/flat_json.h"

namespace leaf {
namespace {

constexpr std::size_t kCounterDigits = 10;
constexpr std::size_t kShown = 120;
constexpr std::int64_t kEndOfTime = 1LL << 53;  // no clock says that; sums with it stay in range

std::optional<std::int64_t> ParseDigits(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || digits.front() == '-' || error != std::errc() ||
      end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return number;
}

Error Unreadable(const std::string& node, std::string_view text, std::string_view expected) {
  return {Code::kUnavailable, "node " + node + " holds " + QuoteJson(text.substr(0, kShown)) +
                                  (text.size() > kShown ? "..." : "") + ", not " +
                                  std::string(expected) +
                                  "; mend it with set, or delete it when no server uses it"};
}

const std::string* TextOf(const FlatJson& object, std::string_view name) {
  const auto at = object.find(name);
  return at == object.end() ? nullptr : std::get_if<std::string>(&at->second);
}

const std::int64_t* NumberOf(const FlatJson& object, std::string_view name) {
  const auto at = object.find(name);
  return at == object.end() ? nullptr : std::get_if<std::int64_t>(&at->second);
}

bool IsTime(const std::int64_t* number) {
  return number != nullptr && *number >= 0 && *number < kEndOfTime;
}

}  // namespace

std::string ZkPaths::NativeNode(std::int64_t worker) const {
  std::string digits = std::to_string(worker);
  if (digits.size() < 4) digits.insert(0, 4 - digits.size(), '0');
  return workers + "/" + digits;
}

std::optional<LeafName> ParseLeafName(std::string_view name) {
  if (name.size() < kCounterDigits + 2) return std::nullopt;
  const std::size_t dash = name.size() - kCounterDigits - 1;
  const auto counter = ParseDigits(name.substr(dash + 1));
  if (name[dash] != '-' || !counter) return std::nullopt;
  const std::string_view identity = name.substr(0, dash);
  const std::size_t colon = identity.rfind(':');
  if (colon == std::string_view::npos || !ParseDigits(identity.substr(colon + 1))) {
    return std::nullopt;
  }
  return LeafName{std::string(identity), *counter};
}

std::optional<std::int64_t> ParseNativeName(std::string_view name) {
  const auto worker = ParseDigits(name);
  if (!worker || !ZkPaths("").NativeNode(*worker).ends_with("/" + std::string(name))) {
    return std::nullopt;
  }
  return worker;
}

std::string LeafText(std::string_view identity, std::int64_t timestamp_ms) {
  const std::size_t colon = identity.rfind(':');
  return "{\"ip\":" + QuoteJson(identity.substr(0, colon)) +
         ",\"port\":" + QuoteJson(identity.substr(colon + 1)) +
         ",\"timestamp\":" + std::to_string(timestamp_ms) + "}";
}

Result<std::int64_t> ParseLeafText(std::string_view text, const std::string& node) {
  constexpr std::string_view kExpected =
      R"({"ip":"...","port":"...","timestamp":MILLISECONDS} and no more)";
  const auto object = ParseFlatJson(text);
  if (!object || object->size() != 3 || TextOf(*object, "ip") == nullptr ||
      !object->contains("port"))
    return Unreadable(node, text, kExpected);
  const std::int64_t* timestamp = NumberOf(*object, "timestamp");
  if (!IsTime(timestamp)) return Unreadable(node, text, kExpected);
  return *timestamp;
}

std::string NativeText(const NativeRow& row) {
  return "{\"owner\":" + QuoteJson(row.record.owner) +
         ",\"generation\":" + std::to_string(row.record.generation) +
         ",\"identity\":" + QuoteJson(row.record.identity) +
         ",\"layout\":" + QuoteJson(row.layout) +
         ",\"limit_ms\":" + std::to_string(row.record.limit_ms) + "}";
}

Result<NativeRow> ParseNativeText(std::string_view text, std::int64_t worker,
                                  const std::string& node) {
  constexpr std::string_view kExpected =
      "an object of owner, generation, identity, layout and limit_ms";
  const auto object = ParseFlatJson(text);
  if (!object) return Unreadable(node, text, kExpected);
  const std::string* owner = TextOf(*object, "owner");
  const std::string* identity = TextOf(*object, "identity");
  const std::string* layout = TextOf(*object, "layout");
  const std::int64_t* generation = NumberOf(*object, "generation");
  const std::int64_t* limit = NumberOf(*object, "limit_ms");
  if (owner == nullptr || identity == nullptr || layout == nullptr || generation == nullptr ||
      !IsTime(generation) || !IsTime(limit)) {
    return Unreadable(node, text, kExpected);
  }
  NativeRow row;
  row.record = {worker, *generation, *owner, *identity, *limit, ""};
  row.layout = *layout;
  return row;
}

}  // namespace leaf
