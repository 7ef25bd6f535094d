// Reserves from an SQLite file and says what it got, for tests that need a process to kill or to
// trace: sqlite_probe FILE ROUNDS. One line a reservation: "granted FIRST LAST", "refused WHY" or
// "unknown WHY"; "open" and "closed WHY" for sessions. ROUNDS 0: until killed.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "store/sqlite/sqlite_driver.h"

namespace leaf {
namespace {

bool Say(const std::string& line) {
  const std::string text = line + "\n";
  return write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Instant Soon() { return SystemClock().Now() + std::chrono::seconds(1); }

bool Connect(SegmentDriver& driver) {
  const Result<StoreInfo> info = driver.Open(Soon());
  if (!Say(info.ok() ? "open" : "closed " + info.error().message)) std::exit(1);
  if (info.ok()) (void)driver.Create("order", 10, 1, Soon()).ok();
  return info.ok();
}

std::string Round(SegmentDriver& driver) {
  const Ask ask{1, "order", 10, Soon()};
  Grant grant;
  driver.Reserve({&ask, 1}, {&grant, 1});
  if (grant.outcome == Outcome::kGranted) {
    return "granted " + std::to_string(grant.range.first) + " " + std::to_string(grant.range.last);
  }
  return (grant.outcome == Outcome::kUnknown ? "unknown " : "refused ") + grant.error.message;
}

int Run(const std::string& path, int rounds) {
  StoreOptions options;
  options.path = path;
  const Result<DriverFactory> factory = MakeSqliteFactory(options);
  if (!factory.ok()) return 1;
  const auto driver = (*factory)();
  for (int i = 0; rounds == 0 || i < rounds; ++i) {
    if (!driver->connected() && !Connect(*driver)) continue;
    if (!Say(Round(*driver))) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace leaf

int main(int argc, char** argv) { return argc == 3 ? leaf::Run(argv[1], std::atoi(argv[2])) : 2; }
