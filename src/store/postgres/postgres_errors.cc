#include "store/postgres/postgres_errors.h"

#include <algorithm>
#include <array>

namespace leaf {
namespace {

template <std::size_t N>
bool In(std::string_view state, const std::array<std::string_view, N>& all) noexcept {
  return std::find(all.begin(), all.end(), state) != all.end();
}

}  // namespace

bool IsDefinite(std::string_view sqlstate, std::string_view severity) noexcept {
  // A session that was refused a lock, a row or its rights says ERROR and goes on.
  if (severity != "ERROR" || sqlstate.size() != 5) return false;
  if (sqlstate.starts_with("08")) return false;  // connection exception: a pooler's
  if (sqlstate.starts_with("58")) return false;  // system error, of files perhaps
  if (sqlstate == "40003") return false;         // statement completion unknown
  return sqlstate != "57P01" && sqlstate != "57P02" && sqlstate != "57P05";
}

bool ConcernsStore(std::string_view sqlstate) noexcept {
  static constexpr std::array<std::string_view, 8> kCodes = {
      "0A000",  // feature not supported: a prepared statement's columns have other types now
      "26000",  // invalid statement name: what was prepared is there no more
      "25006",  // read only: a standby, or default_transaction_read_only
      "53100",  // disk full
      "57P03",  // cannot connect now: starts, stops or recovers
      "55000",  // not in prerequisite state
      "42809",  // wrong object type: the table became a view
      "42804",  // datatype mismatch
  };
  return In(sqlstate, kCodes) || IsMissingTable(sqlstate) || IsDenied(sqlstate);
}

bool IsDuplicateKey(std::string_view sqlstate) noexcept { return sqlstate == "23505"; }

bool IsMissingTable(std::string_view sqlstate) noexcept {
  static constexpr std::array<std::string_view, 3> kCodes = {"42P01", "3F000", "42703"};
  return In(sqlstate, kCodes);
}

bool IsDenied(std::string_view sqlstate) noexcept { return sqlstate == "42501"; }

bool IsForeignCharacter(std::string_view sqlstate) noexcept {
  return sqlstate == "22P05" || sqlstate == "22021";
}

}  // namespace leaf
