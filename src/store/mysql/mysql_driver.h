#pragma once

#include "store/driver.h"
#include "store/options.h"

namespace leaf {

/// Leaf's table on MariaDB (10.x or later) or MySQL (5.7, 8.x), unchanged, through libmariadb.
///
/// A session is one connection in autocommit mode; MysqlSettings has the parameters. A reservation
/// is one prepared statement, `UPDATE .. SET max_id = LAST_INSERT_ID(max_id + n)`, whose new end
/// comes with its acknowledgement; names are compared byte by byte as UTF-8. MariaDB and MySQL
/// cannot return the row from it, so Grant::row_step is never set. A row whose max_id is NULL or
/// negative, or whose step is not positive, is refused.
///
/// Each call ends by its deadline. Whatever happens between sending a reservation and a clear
/// answer makes it kUnknown and ends the connection. The server is told to give up a statement
/// before `options.timeout` and before the ask's deadline, whichever is shorter, so that one that
/// was abandoned behind a lock does not commit later; on MySQL, which limits an UPDATE only by
/// whole seconds of lock waiting, it may commit up to a second late. What a frozen server or
/// network still holds is out of reach and is what kUnknown is for.
///
/// A connection that the server closed while it was idle is noticed before the next statement is
/// sent, one that was dropped silently by a question after 5 s of idleness; the call is then
/// refused with connected() == false, and nothing was sent.
///
/// The server and the table are judged by Open (see ProbeMysql). At run time: on MariaDB each
/// reservation requires, within its own statement, that the engine is still InnoDB; and before a
/// reservation that comes a second or more after the last look, column types, engine, read_only,
/// flush settings and the server's identity are compared with what Open found. A difference ends
/// the session, so that Open judges anew.
///
/// The privileges SELECT and UPDATE on the one table serve; Create and Delete need INSERT and
/// DELETE. kInvalidArgument as ParseMysqlSettings.
Result<DriverFactory> MakeMysqlFactory(const StoreOptions& options);

}  // namespace leaf
