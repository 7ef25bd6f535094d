// The registry of workers as leafd's own driver sees it; nothing is claimed.

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/doctor_checks.h"
#include "server/registries.h"

namespace leaf::doctor {
namespace {

std::int64_t Millis(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// Neither this host's word nor the registry's is better: both may be wrong.
void JudgeClock(Context& context, RegistryDriver& registry, const std::string& where) {
  const Config::Snowflake& snowflake = context.config.snowflake;
  const std::int64_t before = context.clock.WallMillis();
  const auto there = registry.Now(context.clock.Now() + snowflake.registry.timeout);
  const std::int64_t after = context.clock.WallMillis();
  if (!there.ok())
    return context.report.Say(Severity::kError, "clock", where, there.error().message);
  if (!*there)
    return context.report.Ok("clock", where,
                             "the registry has no clock that can be read without a write");
  // What it may differ by at least, as it answered between the two.
  const std::int64_t ahead = before > **there  ? before - **there
                             : after < **there ? after - **there
                                               : 0;
  const std::string found = "this host's clock is " + std::to_string(std::abs(ahead)) + " ms " +
                            (ahead < 0 ? "behind" : "ahead of") + " the registry's";
  const std::int64_t refused = Millis(snowflake.lease) + kClockToleranceMs;
  if (ahead >= refused || std::abs(ahead) > Millis(snowflake.drift)) {
    return context.report.Add(
        {ahead >= refused ? Severity::kError : Severity::kWarning, "clock", where,
         found + "; snowflake.drift is " + std::to_string(Millis(snowflake.drift)) + " ms",
         "set both clocks by NTP: timedatectl set-ntp true"});
  }
  context.report.Ok("clock", where, found);
}

void JudgeWorkers(Context& context, RegistryDriver& registry, const std::string& where) {
  const Config::Snowflake& snowflake = context.config.snowflake;
  const auto workers = registry.List(context.clock.Now() + snowflake.registry.timeout);
  if (!workers.ok())
    return context.report.Say(Severity::kError, "workers", where, workers.error().message);
  const std::int64_t now = context.clock.WallMillis();
  const std::int64_t latest = now + Millis(snowflake.lease) + kClockToleranceMs;
  std::int64_t held = 0;
  for (const WorkerRecord& worker : *workers) {
    const std::string subject =
        "worker " + std::to_string(worker.worker) + " of '" + snowflake.registry.cluster + "'";
    held += worker.limit_ms > now ? 1 : 0;
    if (!worker.note.empty())
      context.report.Say(Severity::kWarning, "workers", subject, worker.note);
    if (worker.limit_ms > latest)
      context.report.Add({Severity::kWarning, "workers", subject,
                          "it is held for longer than a lease can be, " +
                              std::to_string((worker.limit_ms - now) / 1000) +
                              " s from now: a clock was ahead, or snowflake.lease was longer",
                          "if no server uses it: POST /api/v1/workers/" +
                              std::to_string(worker.worker) + "/retire"});
  }
  context.report.Ok("workers", where,
                    std::to_string(workers->size()) + " workers are known, " +
                        std::to_string(held) + " of them held now");
}

}  // namespace

void CheckRegistry(Context& context) {
  const Config::Snowflake& snowflake = context.config.snowflake;
  Report& report = context.report;
  if (!snowflake.enabled)
    return report.Ok("registry", "snowflake.enabled",
                     "snowflake mode is off: " + snowflake.disabled_reason);
  if (!snowflake.unavailable_reason.empty())
    return report.Say(Severity::kWarning, "registry", "snowflake", snowflake.unavailable_reason,
                      "set what it asks for, or snowflake.enabled = false");
  if (snowflake.registry.kind == "store" && context.config.store.kind == "sqlite") return;
  const std::string where = snowflake.registry.kind == "store" ? context.config.store.display_url
                                                               : snowflake.registry.display_url;
  const Result<RegistryFactory> factory = MakeRegistryDriver(context.config);
  if (!factory.ok())
    return report.Say(Severity::kError, "registry", where, factory.error().message,
                      "correct snowflake.registry");
  const auto registry = (*factory)();
  std::vector<std::string> warnings;
  const Result<void> opened =
      registry->Open(context.clock.Now() + snowflake.registry.timeout, warnings);
  for (const std::string& warning : warnings)
    report.Say(Severity::kWarning, "registry", where, warning);
  if (!opened.ok())
    return report.Say(
        Severity::kError, "registry", where, opened.error().message,
        "start the server, or correct snowflake.registry (with kind store: store.url)");
  report.Ok("registry", where, "it answers and can be used");
  JudgeWorkers(context, *registry, where);
  JudgeClock(context, *registry, where);
}

}  // namespace leaf::doctor
