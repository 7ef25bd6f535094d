#include "admin/metrics.h"

#include <algorithm>
#include <array>
#include <map>

#include "admin/answer.h"
#include "admin/exposition.h"
#include "admin/health.h"
#include "admin/process_stats.h"
#include "base/log.h"
#include "base/utf8.h"
#include "codec/text.h"
#include "core/segment/engine.h"

namespace leaf {
namespace {

constexpr const char* kOther = "__other__";

/// What is told of one label value: a tag, or the sum of the others.
struct TagSeries {
  std::int64_t remaining = 0, step = 0, lease = 0, regressed = 0;
  std::uint64_t issued = 0, refills = 0, failures = 0, waits = 0;
  std::array<std::uint64_t, kDiscardCount> discarded{};

  void Add(const TagView& tag) {
    remaining += tag.remaining;
    step += tag.step;
    lease += tag.lease;
    regressed += tag.state == TagState::kRegressed ? 1 : 0;
    issued += tag.issued;
    refills += tag.refills;
    failures += tag.refill_failures;
    waits += tag.waits;
    for (std::size_t i = 0; i < discarded.size(); ++i) discarded[i] += tag.discarded[i];
  }
};
using AllSeries = std::map<std::string, TagSeries>;

bool WasUsed(const TagView& tag) noexcept {
  return tag.state == TagState::kActive || tag.state == TagState::kRegressed || tag.issued > 0 ||
         tag.refills > 0 || tag.refill_failures > 0 || tag.waits > 0;
}

/// One family with a sample a tag.
template <typename Value>
void TagFamily(Exposition& out, const AllSeries& series, std::string_view name,
               std::string_view type, std::string_view help, Value TagSeries::*value) {
  if (series.empty()) return;
  out.Family(name, type, help);
  for (const auto& [tag, numbers] : series) out.Sample({{"tag", tag}}, numbers.*value);
}

void IssuedFamily(Exposition& out, const AllSeries& series, const SnowflakeEngine* snowflake) {
  if (series.empty() && snowflake == nullptr) return;
  out.Family("leafd_ids_issued_total", "counter", "Ids handed out.");
  for (const auto& [tag, numbers] : series) {
    out.Sample({{"tag", tag}, {"mode", "segment"}}, numbers.issued);
  }
  if (snowflake != nullptr) out.Sample({{"mode", "snowflake"}}, snowflake->View().issued);
}

void TagFamilies(Exposition& out, const AllSeries& series) {
  if (series.empty()) return;
  TagFamily(out, series, "leafd_segment_remaining_ids", "gauge",
            "Ids held in memory and not yet handed out.", &TagSeries::remaining);
  TagFamily(out, series, "leafd_segment_step_ids", "gauge", "The step of the row.",
            &TagSeries::step);
  TagFamily(out, series, "leafd_segment_lease_ids", "gauge", "Ids of the last reservation.",
            &TagSeries::lease);
  TagFamily(out, series, "leafd_segment_regressed", "gauge",
            "1 while the tag is stopped because its row went back.", &TagSeries::regressed);
  TagFamily(out, series, "leafd_segment_refills_total", "counter", "Reservations granted.",
            &TagSeries::refills);
  TagFamily(out, series, "leafd_segment_fetch_failures_total", "counter",
            "Reservations refused, or of unknown outcome.", &TagSeries::failures);
  TagFamily(out, series, "leafd_segment_waits_total", "counter",
            "Requests that had to wait for a reservation.", &TagSeries::waits);
  out.Family("leafd_ids_discarded_total", "counter", "Ids reserved that will never be handed out.");
  for (const auto& [tag, numbers] : series) {
    for (std::size_t i = 0; i < numbers.discarded.size(); ++i) {
      if (numbers.discarded[i] == 0) continue;
      out.Sample({{"tag", tag}, {"reason", DiscardName(static_cast<Discard>(i))}},
                 numbers.discarded[i]);
    }
  }
}

using AllStats = std::vector<const RequestStats*>;

template <typename Get>
auto SumOver(const AllStats& all, Get get) {
  decltype(get(*all.front())) sum{};
  for (const RequestStats* stats : all) sum += get(*stats);
  return sum;
}

void RequestFamilies(Exposition& out, const AllStats& all) {
  constexpr Protocol kProtocol = Protocol::kHttp;
  const Exposition::Label http{"protocol", "http"};
  out.Family("leafd_requests_total", "counter",
             "Requests answered, by the stable code of the answer.");
  for (int code = 0; code <= RequestStats::kOk; ++code) {
    const auto name =
        code == RequestStats::kOk ? std::string_view("ok") : CodeName(static_cast<Code>(code));
    out.Sample({http, {"code", name}},
               SumOver(all, [&](const RequestStats& s) { return s.requests(kProtocol, code); }));
  }
  out.Family("leafd_request_duration_seconds", "histogram",
             "Time from reading a request to its answer.");
  std::uint64_t below = 0;
  for (std::size_t i = 0; i <= RequestStats::kBounds.size(); ++i) {
    below += SumOver(
        all, [&](const RequestStats& s) { return s.bucket(kProtocol, static_cast<int>(i)); });
    const std::string bound = i < RequestStats::kBounds.size()
                                  ? Exposition::Number(RequestStats::kBounds[i])
                                  : std::string("+Inf");
    out.Sample({http, {"le", bound}}, below, "_bucket");
  }
  out.Sample({http}, SumOver(all, [](const RequestStats& s) { return s.seconds(kProtocol); }),
             "_sum");
  out.Sample({http}, below, "_count");
  out.Family("leafd_connections", "gauge", "Connections open now.");
  out.Sample({http}, SumOver(all, [](const RequestStats& s) { return s.connections(kProtocol); }));
  out.Family("leafd_connections_refused_total", "counter",
             "Connections refused or closed because of a bound.");
  out.Sample({}, SumOver(all, [](const RequestStats& s) { return s.refused(); }));
}

void StoreFamilies(Exposition& out, const StoreStatus& store) {
  const Exposition::Label kind{"store", store.kind};
  out.Family("leafd_store_up", "gauge", "1 if the last call or connection attempt succeeded.");
  out.Sample({kind}, std::int64_t{store.up ? 1 : 0});
  out.Family("leafd_store_calls_total", "counter", "Calls to the store.");
  out.Sample({kind}, store.calls);
  out.Family("leafd_store_call_failures_total", "counter", "Calls to the store that failed.");
  out.Sample({kind}, store.failures);
  out.Family("leafd_store_sessions", "gauge", "Connections to the store open now.");
  out.Sample({kind}, store.sessions);
  out.Family("leafd_store_durability", "gauge", "1 at the level that the store was found to keep.");
  for (const auto level :
       {Durability::kVolatile, Durability::kProcess, Durability::kPower, Durability::kReplicated}) {
    out.Sample({kind, {"level", DurabilityName(level)}},
               std::int64_t{level == store.durability && !store.identity.empty() ? 1 : 0});
  }
}

void EngineFamilies(Exposition& out, const Engine::Totals& totals) {
  out.Family("leafd_tags", "gauge", "Tags by state; known counts all of them.");
  out.Sample({{"state", "known"}}, totals.known);
  out.Sample({{"state", "active"}}, totals.active);
  out.Sample({{"state", "regressed"}}, totals.regressed);
  out.Family("leafd_segment_parked_requests", "gauge", "Requests that wait for a reservation now.");
  out.Sample({}, totals.parked);
  out.Family("leafd_segment_flights", "gauge", "Reservations under way now.");
  out.Sample({}, totals.flights);
  out.Family("leafd_segment_store_changes_total", "counter",
             "How often another store took over, so that rows were raised.");
  out.Sample({}, totals.store_changes);
  out.Family("leafd_segment_stale_grants_total", "counter",
             "Grants that came too late and were burnt.");
  out.Sample({}, totals.stale_grants);
  out.Family("leafd_segment_lookups_total", "counter", "Look-ups of unknown tags.");
  out.Sample({}, totals.lookups);
  out.Family("leafd_segment_lookups_refused_total", "counter",
             "Look-ups of unknown tags refused by their bound.");
  out.Sample({}, totals.lookups_refused);
}

void SnowflakeFamilies(Exposition& out, const SnowflakeView& view) {
  constexpr double kSecond = 1000.0;
  const auto seconds = [](std::int64_t ms) { return static_cast<double>(ms) / kSecond; };
  out.Family("leafd_snowflake_worker_id", "gauge",
             "The worker that ids are minted with; -1: none.");
  out.Sample({}, view.worker);
  out.Family("leafd_snowflake_lease_expiry_timestamp_seconds", "gauge",
             "Until when the registry lets this server mint, since 1970.");
  out.Sample({}, seconds(view.limit_ms));
  out.Family("leafd_snowflake_right_seconds", "gauge",
             "How long ids go on if the registry stays away.");
  out.Sample(
      {}, view.worker < 0 ? 0.0 : seconds(std::max<std::int64_t>(0, view.limit_ms - view.now_ms)));
  out.Family("leafd_snowflake_ahead_seconds", "gauge",
             "How far minted time runs ahead of the clock.");
  out.Sample({}, seconds(std::max<std::int64_t>(0, view.last_ms - view.now_ms)));
  out.Family("leafd_snowflake_clock_offset_seconds", "gauge",
             "The time that ids are minted by, less the registry's clock; or less the host's.");
  if (view.registry_offset_ms) out.Sample({{"to", "registry"}}, seconds(*view.registry_offset_ms));
  out.Sample({{"to", "host"}}, seconds(-view.wall_offset_ms));
  out.Family("leafd_snowflake_clock_rollbacks_total", "counter",
             "Steps back of the host's clock that were absorbed.");
  out.Sample({}, view.steps_back);
  out.Family("leafd_snowflake_clock_jumps_total", "counter",
             "Steps forward of the host's clock, of more than a second, that were followed.");
  out.Sample({}, view.steps_forward);
  out.Family("leafd_snowflake_waits_total", "counter",
             "Requests that had to wait for the clock or for a worker.");
  out.Sample({}, view.waits);
  out.Family("leafd_snowflake_parked_requests", "gauge", "Requests that wait now.");
  out.Sample({}, view.parked);
  out.Family("leafd_snowflake_claims_total", "counter", "Workers claimed.");
  out.Sample({}, view.claims);
  out.Family("leafd_snowflake_extensions_total", "counter", "Extensions of the right.");
  out.Sample({}, view.extensions);
  out.Family("leafd_snowflake_failures_total", "counter",
             "Claims and extensions that failed, also for want of an answer.");
  out.Sample({}, view.failures);
  out.Family("leafd_snowflake_losses_total", "counter", "Rights that were lost to others.");
  out.Sample({}, view.losses);
  if (view.free_workers >= 0) {
    out.Family("leafd_snowflake_free_workers", "gauge",
               "Workers that a starting server could have had, at the last claim.");
    out.Sample({}, view.free_workers);
  }
  out.Family("leafd_id_space_exhaustion_timestamp_seconds", "gauge",
             "When the layout of snowflake ids ends, since 1970.");
  out.Sample({{"space", "snowflake"}}, seconds(view.end_ms));
  out.Family("leafd_id_space_left_seconds", "gauge", "Seconds to the end of the id space.");
  out.Sample({{"space", "snowflake"}}, seconds(view.end_ms - view.now_ms));
}

void RegistryFamilies(Exposition& out, const RegistryStatus& registry) {
  const Exposition::Label kind{"registry", registry.kind};
  out.Family("leafd_registry_up", "gauge",
             "1 if the last call to the registry of workers succeeded.");
  out.Sample({kind}, std::int64_t{registry.up ? 1 : 0});
  out.Family("leafd_registry_calls_total", "counter", "Calls to the registry of workers.");
  out.Sample({kind}, registry.calls);
  out.Family("leafd_registry_call_failures_total", "counter", "Calls to it that failed.");
  out.Sample({kind}, registry.failures);
}

void ProcessFamilies(Exposition& out, std::int64_t started_ms) {
  const ProcessStats process = ReadProcessStats();
  out.Family("process_cpu_seconds_total", "counter", "User and system time spent, in seconds.");
  out.Sample({}, process.cpu_seconds);
  out.Family("process_resident_memory_bytes", "gauge", "Resident memory.");
  out.Sample({}, process.resident_bytes);
  out.Family("process_virtual_memory_bytes", "gauge", "Virtual memory.");
  out.Sample({}, process.virtual_bytes);
  out.Family("process_open_fds", "gauge", "Open file descriptors.");
  out.Sample({}, process.open_files);
  out.Family("process_max_fds", "gauge", "Most file descriptors that may be open.");
  out.Sample({}, process.max_files);
  out.Family("process_threads", "gauge", "Threads.");
  out.Sample({}, process.threads);
  out.Family("process_start_time_seconds", "gauge", "When the server started, since 1970.");
  out.Sample({}, static_cast<double>(started_ms) / 1000.0);
}

void HealthFamilies(Exposition& out, const Health& health) {
  out.Family("leafd_ready", "gauge",
             "1 if the mode can hand out ids and the server is not draining.");
  const auto ready = [&](const ModeHealth& mode) {
    return std::int64_t{!health.draining && mode.state == ModeHealth::State::kOk ? 1 : 0};
  };
  out.Sample({{"mode", "segment"}}, ready(health.segment));
  out.Sample({{"mode", "snowflake"}}, ready(health.snowflake));
}

}  // namespace

http1::Response Metrics::Answer() {
  return TextAnswer("text/plain; version=0.0.4; charset=utf-8", Render());
}

std::string Metrics::LabelOf(const std::string& tag) {
  // A label value must be UTF-8, and a tag of the sum's name may not collide with it.
  if (tag == kOther || !IsUtf8(tag)) return kOther;
  MutexLock lock(mu_);
  if (labels_.contains(tag)) return tag;
  if (labels_.size() >= kTagLabels) return kOther;
  labels_.insert(tag);
  return tag;
}

std::string Metrics::Render() {
  Exposition out;
  out.Family("leafd_build_info", "gauge", "1, labelled with the version.");
  out.Sample({{"version", context_.version}}, std::int64_t{1});
  HealthFamilies(out, HealthOf(context_));
  if (context_.stats) RequestFamilies(out, context_.stats());
  if (context_.store != nullptr) StoreFamilies(out, context_.store->Status());
  AllSeries series;
  if (const Engine* engine = context_.ids.engine()) {
    engine->Visit([&](const TagView& tag) {
      if (WasUsed(tag)) series[LabelOf(tag.name)].Add(tag);
    });
    EngineFamilies(out, engine->Sum());
    TagFamilies(out, series);
  }
  IssuedFamily(out, series, context_.ids.snowflake());
  if (const SnowflakeEngine* snowflake = context_.ids.snowflake())
    SnowflakeFamilies(out, snowflake->View());
  if (context_.registry != nullptr) RegistryFamilies(out, context_.registry->Status());
  out.Family("leafd_log_lines_dropped_total", "counter",
             "Log lines dropped because their reader was slow.");
  out.Sample({}, log::Dropped());
  ProcessFamilies(out, context_.started_ms);
  return std::move(out).Take();
}

}  // namespace leaf
