#include "registry/etcd/worker_value.h"

#include <charconv>
#include <optional>

#include "registry/flat_json.h"
#include "store/etcd/etcd_value.h"

namespace leaf {
namespace {

std::optional<std::string> Text(const FlatJson& object, std::string_view name) {
  const auto at = object.find(name);
  if (at == object.end() || !std::holds_alternative<std::string>(at->second)) return std::nullopt;
  return std::get<std::string>(at->second);
}

std::optional<std::int64_t> Number(const FlatJson& object, std::string_view name) {
  const std::optional<std::string> text = Text(object, name);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* const last = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data(), last, number);
  if (error != std::errc() || end != last || std::to_string(number) != *text) return std::nullopt;
  return number;
}

std::optional<WorkerRow> Read(std::string_view value) {
  const std::optional<FlatJson> object = ParseFlatJson(value);
  if (!object || object->size() != 4) return std::nullopt;
  const auto generation = Number(*object, "generation"), limit_ms = Number(*object, "limit_ms");
  const auto owner = Text(*object, "owner"), identity = Text(*object, "identity");
  if (!generation || !limit_ms || !owner || !identity) return std::nullopt;
  IdentityParts parts = ParseIdentity(*identity);
  WorkerRow row;
  row.record.generation = *generation;
  row.record.owner = *owner;
  row.record.identity = std::move(parts.identity);
  row.record.limit_ms = *limit_ms;
  row.layout = std::move(parts.layout);
  return row;
}

}  // namespace

std::string WorkerText(const WorkerRow& row) {
  return R"({"generation":")" + std::to_string(row.record.generation) + R"(","owner":)" +
         QuoteJson(row.record.owner) + R"(,"identity":)" +
         QuoteJson(IdentityText(row.record.identity, row.layout)) + R"(,"limit_ms":")" +
         std::to_string(row.record.limit_ms) + R"("})";
}

Result<WorkerRow> ParseWorker(std::string_view key, std::int64_t worker, std::string_view value) {
  if (std::optional<WorkerRow> row = Read(value)) {
    row->record.worker = worker;
    return *std::move(row);
  }
  return Error{
      Code::kUnavailable,
      "key " + ShownBytes(key) + " holds " + ShownBytes(value) +
          ", which is no worker; it must be like {\"generation\":\"1\",\"owner\":\"\","
          "\"identity\":\"HOST:PORT\",\"limit_ms\":\"1700000000000\"}. No worker is given "
          "until that is mended: write that form with owner and identity empty, generation "
          "1, and limit_ms a time, in ms since 1970, that its last owner certainly did not "
          "pass"};
}

}  // namespace leaf
