#pragma once

#include <string_view>

#include "leaf/result.h"

namespace leaf {

/// What the error numbers of MariaDB, MySQL and libmariadb mean to this driver.

/// Whether the number was sent by a server, as opposed to libmariadb's own.
bool IsServerError(unsigned number) noexcept;

/// Whether the server's error says for certain that the statement has had and will have no effect.
/// Not so for a connection or query that was killed, a shutdown, and failures in the middle of a
/// commit.
bool IsDefinite(unsigned number) noexcept;

/// Whether it concerns the whole table or server (missing, read-only, full, no privilege), not one
/// row, one lock or one moment, so that the session should be opened anew and judge it.
bool ConcernsStore(unsigned number) noexcept;

/// A value above the end of the 63 bits, or of the column.
bool IsOutOfRange(unsigned number) noexcept;
/// The name has characters that the column cannot hold, so there is no such row.
bool IsForeignCharacter(unsigned number) noexcept;
bool IsDuplicateKey(unsigned number) noexcept;
/// The server rolled the statement back for another's sake, as Galera does with a change of one row
/// through two nodes. It may be repeated.
bool IsDeadlock(unsigned number) noexcept;
bool IsMissingTable(unsigned number) noexcept;
bool IsDenied(unsigned number) noexcept;

/// A sentence that says what to do about it, or "".
std::string_view Advice(unsigned number) noexcept;

}  // namespace leaf
