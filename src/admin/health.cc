#include "admin/health.h"

#include <utility>

#include "admin/answer.h"
#include "admin/workers_api.h"
#include "base/iso_time.h"
#include "codec/http1/errors.h"
#include "codec/http1/query.h"
#include "codec/text.h"
#include "core/segment/engine.h"

namespace leaf {
namespace {

using State = ModeHealth::State;

std::string_view StateName(State state) noexcept {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kUnavailable:
      return "unavailable";
    case State::kDisabled:
      return "disabled";
  }
  return "unavailable";
}

/// Why the store cannot be reserved from; empty if it can.
std::string StoreTrouble(const StoreStatus& status, Durability required) {
  if (!status.up)
    return status.last_error.empty() ? "the store was not reached yet" : status.last_error;
  if (status.durability >= required) return {};
  return "the store's durability is " + std::string(DurabilityName(status.durability)) +
         ", store.min_durability asks for " + std::string(DurabilityName(required));
}

ModeHealth SegmentHealth(const AdminContext& context) {
  const Engine* engine = context.ids.engine();
  if (engine == nullptr || context.store == nullptr)
    return {State::kDisabled, "segment.enabled is false"};
  std::string trouble = StoreTrouble(context.store->Status(), context.min_durability);
  if (trouble.empty()) return {State::kOk, context.segment_notice};
  if (!engine->Sum().holds_ids) return {State::kUnavailable, std::move(trouble)};
  return {State::kOk, "serving the ids that are held in memory; " + trouble};
}

ModeHealth SnowflakeHealth(const AdminContext& context) {
  const SnowflakeEngine* engine = context.ids.snowflake();
  if (engine == nullptr) {
    const Error& why = context.ids.no_snowflake();
    return {why.code == Code::kDisabled ? State::kDisabled : State::kUnavailable, why.message};
  }
  SnowflakeView view = engine->View();
  return {view.serving ? State::kOk : State::kUnavailable, std::move(view.reason)};
}

void AppendMode(std::string_view name, const ModeHealth& mode, std::string& out) {
  AppendJson(name, out);
  out += ":{\"state\":";
  AppendJson(StateName(mode.state), out);
  out += ",\"reason\":";
  AppendJson(mode.reason, out);
  out += '}';
}

void AppendStore(const StoreStatus& store, std::string& out) {
  out += '{';
  AppendField("kind", store.kind, out);
  out += store.up ? ",\"up\":true," : ",\"up\":false,";
  // Before the first connect nothing is known of it.
  AppendField("durability", store.identity.empty() ? "" : DurabilityName(store.durability), out);
  out += ',';
  AppendField("identity", store.identity, out);
  out += ',';
  AppendField("last_error", store.last_error, out);
  out += ",\"identity_changes\":" + std::to_string(store.changes);
  out += ",\"warnings\":[";
  const char* separator = "";
  for (const std::string& warning : store.warnings) {
    out += separator;
    AppendJson(warning, out);
    separator = ",";
  }
  out += "]}";
}

std::int64_t Connections(const AdminContext& context) {
  std::int64_t sum = 0;
  if (!context.stats) return sum;
  for (const RequestStats* stats : context.stats()) sum += stats->connections(Protocol::kHttp);
  return sum;
}

}  // namespace

bool Health::ready() const noexcept {
  return !draining && (segment.state == State::kOk || snowflake.state == State::kOk);
}

Health HealthOf(const AdminContext& context) {
  Health health;
  health.draining = context.draining && context.draining();
  health.segment = SegmentHealth(context);
  health.snowflake = SnowflakeHealth(context);
  return health;
}

std::string ModesJson(const Health& health) {
  std::string out = "{";
  AppendMode("segment", health.segment, out);
  out += ',';
  AppendMode("snowflake", health.snowflake, out);
  out += '}';
  return out;
}

http1::Response Readyz(const AdminContext& context, const http1::Request& request) {
  const http1::Parameter mode = http1::FindParameter(request.query, "mode");
  const Health health = HealthOf(context);
  bool ready = health.ready();
  if (mode.count > 0 || mode.bad) {
    const bool segment = mode.value == "segment";
    if (mode.count != 1 || mode.bad || (!segment && mode.value != "snowflake")) {
      return http1::Problem({Code::kInvalidArgument, "mode is segment or snowflake"});
    }
    ready = !health.draining && (segment ? health.segment : health.snowflake).state == State::kOk;
  }
  std::string body = ready ? "{\"ready\":true" : "{\"ready\":false";
  if (health.draining) body += ",\"reason\":\"draining\"";
  body += ",\"modes\":" + ModesJson(health) + "}";
  return JsonAnswer(std::move(body), ready ? 200 : 503);
}

http1::Response Livez() { return TextAnswer("text/plain;charset=UTF-8", "ok\n"); }

http1::Response StatusAnswer(const AdminContext& context) {
  const Health health = HealthOf(context);
  std::string body = "{";
  AppendField("version", context.version, body);
  body += ',';
  AppendField("started", IsoTime(context.started_ms), body);
  body += health.draining ? ",\"draining\":true" : ",\"draining\":false";
  body += ",\"modes\":" + ModesJson(health) + ",\"store\":";
  if (context.store == nullptr) {
    body += "null";
  } else {
    AppendStore(context.store->Status(), body);
  }
  if (const SnowflakeEngine* snowflake = context.ids.snowflake())
    body += ",\"snowflake\":" + SnowflakeJson(snowflake->View());
  const Engine::Totals totals =
      context.ids.engine() == nullptr ? Engine::Totals{} : context.ids.engine()->Sum();
  body += ",\"tags\":{";
  AppendNumber("known", totals.known, body);
  body += ',';
  AppendNumber("active", totals.active, body);
  body += ',';
  AppendNumber("regressed", totals.regressed, body);
  body += totals.list_complete ? ",\"list_complete\":true," : ",\"list_complete\":false,";
  AppendField("list_error", totals.list_error, body);
  body += "},\"connections\":{";
  AppendNumber("http", Connections(context), body);
  body += "}}";
  return JsonAnswer(std::move(body));
}

}  // namespace leaf
