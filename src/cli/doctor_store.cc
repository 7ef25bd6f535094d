// The store as leafd's own driver sees it.

#include <string>
#include <utility>

#include "cli/doctor_checks.h"
#include "server/stores.h"

namespace leaf::doctor {
namespace {

// What a person does to reach a level, where no warning of the probe's says it.
std::string HowToReach(const std::string& kind, Durability level) {
  if (level == Durability::kReplicated) {
    if (kind == "mysql") {
      return "two nodes of Galera or more, or a semi-synchronous replica with, here and in my.cnf: "
             "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC', GLOBAL "
             "rpl_semi_sync_master_timeout = 4294967295, GLOBAL "
             "rpl_semi_sync_master_wait_no_slave = 1, GLOBAL rpl_semi_sync_master_enabled = 1;";
    }
    if (kind == "postgres") {
      return "with a standby that is connected: ALTER SYSTEM SET synchronous_standby_names = 'ANY "
             "1 "
             "(*)'; SELECT pg_reload_conf();";
    }
    if (kind == "etcd")
      return "a cluster of three members: etcdctl member add NAME --peer-urls=URL; and a user who "
             "may read the list of members";
  }
  if (kind == "sqlite") return "keep the file on a disk: store.url = sqlite:/PATH/leafd.db";
  if (kind == "memory") return "a store that keeps what it holds, e.g. store.url = sqlite:leafd.db";
  return "lower store.min_durability, if less is enough";
}

// By the words of the server, of its library or of ours.
std::string HowToConnect(const std::string& said) {
  struct Cause {
    const char *word, *mend;
  };
  constexpr const char* kPassword =
      "correct the user or the password in store.url, or store.password_file";
  constexpr const char* kHost = "correct the host in store.url, or have its name known here";
  constexpr const char* kRefused = "start the server, or correct host and port in store.url";
  constexpr const char* kTls = "correct the TLS options of store.url, or the server's";
  constexpr Cause kCauses[] = {
      {"password", kPassword},
      {"Access denied", kPassword},
      {"authentication", kPassword},
      {"Unknown database", "correct the database in store.url, or have it made: CREATE DATABASE"},
      {"database", "correct the database in store.url, or have it made: CREATE DATABASE"},
      {"not known", kHost},
      {"no address", kHost},
      {"resolve", kHost},
      {"TLS", kTls},
      {"SSL", kTls},
      {"certificate", kTls},
      {"refused", kRefused},
      {"(111)", kRefused},
      {"in time", "see whether the host can be reached, or raise store.timeout"}};
  for (const auto& [word, mend] : kCauses) {
    if (said.find(word) != std::string::npos) return mend;
  }
  return "start the server, or correct store.url, its user and password and its TLS options";
}

std::string Level(Durability level) { return "'" + std::string(DurabilityName(level)) + "'"; }

}  // namespace

void CheckStore(Context& context) {
  const StoreOptions& options = context.config.store;
  Report& report = context.report;
  const Result<DriverFactory> factory = MakeStoreDriver(options);
  if (!factory.ok())
    return report.Say(Severity::kError, "store", options.display_url, factory.error().message,
                      "correct store.url");
  auto session = (*factory)();
  Result<StoreInfo> opened = session->Open(context.Deadline());
  if (!opened.ok()) {
    return report.Say(Severity::kError, "store", options.display_url, opened.error().message,
                      HowToConnect(opened.error().message));
  }
  report.durability = DurabilityName(opened->durability);
  report.identity = opened->identity;
  report.Ok("store", options.display_url,
            "it answers, and its table " + options.table + " can be used: " + opened->identity);
  context.store = std::move(*opened);
  context.session = std::move(session);
}

void CheckDurability(Context& context) {
  const StoreOptions& options = context.config.store;
  const Durability level = context.store->durability, wanted = options.min_durability;
  std::string mends;
  for (const std::string& warning : context.store->warnings) {
    context.report.Say(Severity::kWarning, "store", options.display_url, warning);
    const std::string mend = SplitRemedy(warning).mend;
    if (!mend.empty()) mends += (mends.empty() ? "" : " ") + mend;
  }
  if (level >= wanted) {
    return context.report.Ok(
        "durability", options.display_url,
        "its yes is " + Level(level) + "-durable; store.min_durability asks for " + Level(wanted));
  }
  const bool by_warning = level < Durability::kPower && !mends.empty();
  context.report.Add({Severity::kError, "durability", options.display_url,
                      "the store is only " + Level(level) +
                          "-durable, but store.min_durability is " + Level(wanted),
                      by_warning ? mends : HowToReach(options.kind, wanted)});
}

void CheckPrivileges(Context& context) {
  const auto lacking = context.session->LackingRights(context.Deadline());
  const std::string& url = context.config.store.display_url;
  if (!lacking.ok())
    return context.report.Say(Severity::kError, "privileges", url, lacking.error().message);
  for (const std::string& right : *lacking)
    context.report.Say(Severity::kWarning, "privileges", url, right);
  if (lacking->empty())
    context.report.Ok("privileges", url, "its user may all that serving and the admin API need");
}

}  // namespace leaf::doctor
