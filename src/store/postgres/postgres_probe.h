#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/driver.h"
#include "store/postgres/postgres_connection.h"

namespace leaf {

/// What ProbePostgres found of a server and a table.
struct PostgresFacts {
  StoreInfo info;
  std::string table;        ///< with its schema, quoted
  std::string fingerprint;  ///< of all that a hand or a failover changes; see FingerprintOf
  /// Answers with the fingerprint: one that waited for a standby is let go, as if the standby had
  /// it, when synchronous_standby_names is cleared. The server's processes hear of that before the
  /// waits end (process_pm_reload_request in its postmaster.c signals them before the checkpointer,
  /// which ends the waits), so a statement after the commit answers otherwise.
  std::string still;
  bool has_update_time = false;
  bool direct = false;  ///< no pooler is between, so transactions may be sent ahead
};

/// Judges the server (read-only, a standby), its settings and the table (kind, persistence,
/// columns, key, privileges). kUnavailable with what is wrong and the statement that mends it.
Result<PostgresFacts> ProbePostgres(PostgresConnection& connection,
                                    const PostgresSettings& settings, Instant deadline);

/// The server's part: identity, durability and warnings. Of use where the table is another.
Result<StoreInfo> ProbePostgresServer(PostgresConnection& connection, Instant deadline);

/// Connects to the first of the servers that `judge` finds nothing wrong with. With several, one
/// that is a standby is passed over; the error is the last one's.
template <typename F>
Result<void> OpenPostgres(PostgresConnection& connection, const PostgresSettings& settings,
                          Clock& clock, Instant deadline, F judge) {
  Result<void> last;
  for (std::size_t i = 0; i < settings.servers.size(); ++i) {
    const Instant now = clock.Now();
    const Instant until =
        now + (deadline - now) / static_cast<std::int64_t>(settings.servers.size() - i);
    last = connection.Connect(settings, settings.servers[i], until);
    if (last.ok()) last = judge(until);
    if (last.ok()) return last;
    connection.Close();
  }
  return last;
}

/// SQL for one text that differs as soon as the server is another one, was promoted, has other
/// settings of durability, or the table was written anew, as when it becomes UNLOGGED. `filenode`
/// is an expression for the table's file. Cheap enough for every reservation.
std::string FingerprintOf(std::string_view filenode);

/// The first statement of a transaction that changes something: it waits for locks and runs no
/// longer than `limit`, its commit counts only when it is durable here and on the synchronous
/// standbys, and the warning that it is not there is sent whatever the role wants to hear. Set
/// within the transaction, so a pooler cannot lose it.
PostgresStatement Preamble(Duration limit);

}  // namespace leaf
