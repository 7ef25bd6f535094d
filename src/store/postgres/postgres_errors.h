#pragma once

#include <string_view>

/// What PostgreSQL's SQLSTATE codes mean to this driver (its manual, appendix "Error Codes").
namespace leaf {

/// Whether the error says for certain that the transaction has had and will have no effect. Not so
/// for the end of a session (`severity` FATAL or PANIC) and for connection errors, which a pooler
/// reports of a server that it lost after the statement was sent.
bool IsDefinite(std::string_view sqlstate, std::string_view severity) noexcept;

/// Whether it concerns the whole table or server (missing, read-only, full, no privilege), not one
/// row, one lock or one moment, so that the session should be opened anew and judge it.
bool ConcernsStore(std::string_view sqlstate) noexcept;

bool IsDuplicateKey(std::string_view sqlstate) noexcept;
bool IsMissingTable(std::string_view sqlstate) noexcept;  ///< or schema, or column
bool IsDenied(std::string_view sqlstate) noexcept;
/// The name has characters that the database's encoding lacks, so there is no such row.
bool IsForeignCharacter(std::string_view sqlstate) noexcept;

}  // namespace leaf
