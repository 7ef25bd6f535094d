#include "store/mysql/mysql_errors.h"

#include <algorithm>
#include <iterator>

namespace leaf {
namespace {

template <std::size_t N>
bool In(const unsigned (&numbers)[N], unsigned number) noexcept {
  return std::find(std::begin(numbers), std::end(numbers), number) != std::end(numbers);
}

// Unlike the names in libmariadb's headers, the numbers are the same on all servers and versions.
constexpr unsigned kOpen[] = {
    1026,        // writing a file failed
    1053,        // shutdown in progress
    1079,        // normal shutdown
    1080,        // killed connection
    1105,        // unknown error
    1152, 1184,  // aborted connection
    1180, 1181,  // error during commit, rollback
    1317,        // query interrupted by a hand
    1402,        // rolled back branch
    1598, 1785,  // the binary log could not take it
    1927,        // connection was killed
    3100, 3101,  // a plugin refused at the commit
    4031,        // disconnected for inactivity
};
constexpr unsigned kDenied[] = {1044, 1045, 1142, 1143, 1227, 1370, 1410, 1698};
constexpr unsigned kReadOnly[] = {1290, 1792, 1836};
constexpr unsigned kMissing[] = {1049, 1051, 1146};
constexpr unsigned kShape[] = {1054, 1347, 1348,
                               1356, 1932, 1964};  // columns, views, a table without its file
constexpr unsigned kFull[] = {1021, 1041, 1037, 1114, 3675};
constexpr unsigned kStatement[] = {1243, 1615};  // another server behind the same connection
constexpr unsigned kCluster[] = {1047};          // not in the primary component

}  // namespace

bool IsServerError(unsigned number) noexcept {
  return (number >= 1000 && number < 2000) || (number >= 3000 && number < 5000) || number >= 6000;
}

bool IsDefinite(unsigned number) noexcept { return IsServerError(number) && !In(kOpen, number); }

bool ConcernsStore(unsigned number) noexcept {
  return In(kDenied, number) || In(kReadOnly, number) || In(kMissing, number) ||
         In(kShape, number) || In(kFull, number) || In(kStatement, number) || In(kCluster, number);
}

bool IsOutOfRange(unsigned number) noexcept { return number == 1264 || number == 1690; }
bool IsForeignCharacter(unsigned number) noexcept {
  return number == 1267 || number == 3854 || number == 1300;
}
bool IsDuplicateKey(unsigned number) noexcept { return number == 1062 || number == 1586; }
bool IsDeadlock(unsigned number) noexcept { return number == 1213; }
bool IsMissingTable(unsigned number) noexcept { return In(kMissing, number); }
bool IsDenied(unsigned number) noexcept { return In(kDenied, number); }

std::string_view Advice(unsigned number) noexcept {
  switch (number) {
    case 1205:
      return "another session holds the row's lock";
    case 1213:
      return "a deadlock; to be tried again";
    case 1969:
    case 3024:
      return "it took longer than store.timeout allows, as behind another session's lock";
    case 1290:
    case 1792:
    case 1836:
      return "the server is read-only, as a replica is; point store.url at the primary";
    case 1040:
    case 1203:
      return "the server has no connection left";
    case 1021:
    case 1114:
      return "the server's disk is full";
    case 1047:
      return "this node of the cluster is not part of its primary component";
    case 2059:
      return "libmariadb's file for this authentication plugin is missing: install the package "
             "libmariadb3, or name its folder by "
             "plugin-dir in store.url";
    default:
      return "";
  }
}

}  // namespace leaf
