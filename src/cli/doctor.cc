#include "cli/doctor.h"

#include <string_view>

#include "base/time.h"
#include "cli/doctor_checks.h"

namespace leaf {
namespace doctor {
namespace {

/// One check and when it makes sense.
struct Check {
  bool (*applies)(const Context&);
  void (*run)(Context&);
};

bool Always(const Context&) { return true; }
bool HasTags(const Context& context) { return context.config.segment.enabled; }
bool HasStore(const Context& context) { return context.store.has_value(); }
bool HasSession(const Context& context) { return context.session != nullptr; }
bool InSqlite(const Context& context) { return context.config.store.kind == "sqlite"; }
bool HasServer(const Context& context) { return HasTags(context) && !InSqlite(context); }
bool TakesFile(const Context& context) {
  const Config::Snowflake& snowflake = context.config.snowflake;
  return InSqlite(context) &&
         (HasTags(context) || (snowflake.enabled && snowflake.unavailable_reason.empty() &&
                               snowflake.registry.kind == "store"));
}

// The journal is read before the rows, and the rows are read once.
constexpr Check kChecks[] = {
    {Always, CheckConfig},        {Always, CheckStateFolder},    {HasTags, CheckMarks},
    {HasServer, CheckStore},      {TakesFile, CheckSqliteFile},  {HasStore, CheckDurability},
    {HasStore, CheckStoreChange}, {HasSession, CheckPrivileges}, {HasSession, CheckRows},
    {Always, CheckRegistry},
};

}  // namespace

void CheckConfig(Context& context) {
  const Config& config = context.config;
  for (const std::string& warning : config.warnings)
    context.report.Add({Severity::kWarning, "config", "configuration", warning,
                        "correct the setting, or leave it as it is if that is meant"});
  if (config.warnings.empty())
    context.report.Ok("config", "configuration", "it can be used; leafd --print-config shows it");
  if (!config.segment.enabled)
    context.report.Ok("config", "segment.enabled", "segment mode is off: no tags are looked at");
}

}  // namespace doctor

doctor::Report RunDoctor(const Config& config) {
  doctor::Report report;
  report.kind = config.store.kind;
  report.url = config.store.display_url;
  doctor::Context context{.config = config, .clock = SystemClock(), .report = report};
  for (const doctor::Check& check : doctor::kChecks) {
    if (check.applies(context)) check.run(context);
  }
  return report;
}

doctor::Report BadConfig(const std::string& message) {
  doctor::Report report;
  std::string_view rest = message;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.empty())
      report.Say(doctor::Severity::kError, "config", "configuration", line,
                 "correct the setting; docs/configuration.md lists them all");
  }
  return report;
}

}  // namespace leaf
