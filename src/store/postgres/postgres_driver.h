#pragma once

#include "store/driver.h"
#include "store/options.h"

namespace leaf {

/// Leaf's table on PostgreSQL (12 or later), through libpq.
///
/// A session is one connection; PostgresSettings has the parameters. Nothing depends on the state
/// of a session, so a pooler in transaction mode may stand between. A reservation is one
/// transaction and one round trip: settings for it alone (lock and statement timeout,
/// synchronous_commit), then `UPDATE .. RETURNING` of the new end and the row's step. Several asks
/// go out in one pipeline, each a transaction of its own, and through a pooler one after the other;
/// a row that is locked holds back the rest of its pipeline for no more than its share of the
/// timeout. Names are compared byte by byte. A row whose max_id is NULL or negative, or whose step
/// is not positive, is refused.
///
/// Each call ends by its deadline. Whatever happens between sending a reservation and a clear
/// answer makes it kUnknown and ends the connection; so does a warning, by which the server says
/// that a synchronous standby did not confirm. A statement is never cancelled. The server is told
/// to give up waiting for a lock before the ask's deadline, so one that was abandoned behind a lock
/// does not commit later; one that waits for a synchronous standby has committed here, and is
/// kUnknown.
///
/// The server and the table are judged by Open (ProbePostgres). Each reservation returns, with the
/// same statement, who the server is, its timeline, its settings of durability and whether the
/// table is still logged; a difference from what Open found makes the outcome kUnknown and ends the
/// session, so that Open judges anew before anything is handed out.
///
/// The privileges SELECT and UPDATE on the one table serve; Create and Delete need INSERT and
/// DELETE. kInvalidArgument as ParsePostgresSettings.
Result<DriverFactory> MakePostgresFactory(const StoreOptions& options);

}  // namespace leaf
