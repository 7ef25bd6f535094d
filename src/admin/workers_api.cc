#include "admin/workers_api.h"

#include <charconv>

#include "admin/answer.h"
#include "base/iso_time.h"
#include "base/log.h"
#include "codec/http1/errors.h"
#include "codec/text.h"

namespace leaf {
namespace {

using http1::Exchange;
using http1::Later;
using http1::Response;

void AppendRecord(const WorkerRecord& record, std::int64_t now_ms, bool mine, std::string& out) {
  out += '{';
  AppendNumber("worker", record.worker, out);
  out += ',';
  AppendNumber("generation", record.generation, out);
  out += ',';
  AppendField("owner", record.owner, out);
  out += ',';
  AppendField("identity", record.identity, out);
  out += ',';
  AppendField("limit", IsoTime(record.limit_ms), out);
  out += ',';
  AppendNumber("limit_ms", record.limit_ms, out);
  out += record.limit_ms > now_ms ? ",\"held\":true" : ",\"held\":false";
  out += mine ? ",\"mine\":true," : ",\"mine\":false,";
  AppendField("note", record.note, out);
  out += '}';
}

}  // namespace

std::string SnowflakeJson(const SnowflakeView& view) {
  std::string out = view.serving ? "{\"serving\":true," : "{\"serving\":false,";
  AppendField("reason", view.reason, out);
  out += ',';
  AppendNumber("worker", view.worker, out);
  out += ',';
  AppendNumber("generation", view.generation, out);
  for (const auto& [name, text] :
       {std::pair<const char*, std::string>{"owner", view.owner},
        {"identity", view.identity},
        {"layout", view.layout},
        {"limit", view.worker < 0 ? std::string() : IsoTime(view.limit_ms)},
        {"now", IsoTime(view.now_ms)},
        {"end", IsoTime(view.end_ms)}}) {
    out += ',';
    AppendField(name, text, out);
  }
  for (const auto& [name, number] :
       {std::pair<const char*, std::int64_t>{"limit_ms", view.limit_ms},
        {"now_ms", view.now_ms},
        {"last_ms", view.last_ms},
        {"end_ms", view.end_ms},
        {"wall_offset_ms", view.wall_offset_ms},
        {"steps_back", static_cast<std::int64_t>(view.steps_back)},
        {"steps_forward", static_cast<std::int64_t>(view.steps_forward)},
        {"issued", static_cast<std::int64_t>(view.issued)},
        {"waits", static_cast<std::int64_t>(view.waits)},
        {"parked", view.parked},
        {"claims", static_cast<std::int64_t>(view.claims)},
        {"extensions", static_cast<std::int64_t>(view.extensions)},
        {"failures", static_cast<std::int64_t>(view.failures)},
        {"losses", static_cast<std::int64_t>(view.losses)},
        {"free_workers", view.free_workers}}) {
    out += ',';
    AppendNumber(name, number, out);
  }
  out += ",\"registry_offset_ms\":";
  out += view.registry_offset_ms ? std::to_string(*view.registry_offset_ms) : "null";
  return out + "}";
}

bool WorkersApi::Enabled(Exchange& exchange) const {
  if (context_.ids.snowflake() != nullptr) return true;
  exchange.Reply(http1::Problem(context_.ids.no_snowflake()));
  return false;
}

Response WorkersApi::ListAnswer(const std::vector<WorkerRecord>& records) const {
  const SnowflakeView view = context_.ids.snowflake()->View();
  std::string body = "{";
  AppendField("cluster", context_.cluster, body);
  body += ",\"workers\":[";
  const char* separator = "";
  for (const WorkerRecord& record : records) {
    body += separator;
    const bool mine = record.worker == view.worker &&
                      (record.owner == view.owner ||
                       (record.owner.empty() && record.generation == view.generation));
    AppendRecord(record, view.now_ms, mine, body);
    separator = ",";
  }
  body += ']';
  if (context_.registry != nullptr) {
    const RegistryStatus status = context_.registry->Status();
    body += ",\"registry\":{";
    AppendField("kind", status.kind, body);
    body += status.up ? ",\"up\":true," : ",\"up\":false,";
    AppendField("last_error", status.last_error, body);
    body += ",\"warnings\":[";
    separator = "";
    for (const std::string& warning : status.warnings) {
      body += separator;
      AppendJson(warning, body);
      separator = ",";
    }
    body += "]}";
  }
  return JsonAnswer(body + "}");
}

void WorkersApi::List(Exchange& exchange) {
  if (!Enabled(exchange)) return;
  auto later = exchange.Defer();
  context_.ids.snowflake()->Workers(Through<std::vector<WorkerRecord>>(
      gate_, [this, later](const Result<std::vector<WorkerRecord>>& records) {
        later->Reply(records.ok() ? ListAnswer(*records) : http1::Problem(records.error()));
      }));
}

void WorkersApi::Retire(Exchange& exchange, const std::string& worker) {
  if (!Enabled(exchange)) return;
  std::int64_t number = 0;
  const char* const end = worker.data() + worker.size();
  const auto parsed = std::from_chars(worker.data(), end, number);
  const std::int64_t workers = context_.layout.workers();
  if (parsed.ec != std::errc() || parsed.ptr != end || std::to_string(number) != worker ||
      number < 0) {
    exchange.Reply(http1::Problem(
        {Code::kInvalidArgument,
         "a worker is a number from 0 to " + std::to_string(workers - 1) + " in this layout"}));
    return;
  }
  auto later = exchange.Defer();
  context_.ids.snowflake()->Retire(
      number, Through<WorkerRecord>(gate_, [this, later](const Result<WorkerRecord>& record) {
        if (!record.ok()) {
          later->Reply(http1::Problem(record.error()));
          return;
        }
        log::Warn("a worker was retired by hand", {{"worker", record->worker},
                                                   {"identity", record->identity},
                                                   {"limit", IsoTime(record->limit_ms)}});
        std::string body;
        AppendRecord(*record, context_.ids.snowflake()->View().now_ms, false, body);
        later->Reply(JsonAnswer(std::move(body)));
      }));
}

}  // namespace leaf
