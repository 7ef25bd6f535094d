#pragma once

#include <map>
#include <string>
#include <string_view>

#include "store/driver.h"
#include "store/mysql/mysql_connection.h"

namespace leaf {

/// A server's variables and status values, by lower-case name. What a server does not know is
/// absent.
class MysqlVariables {
 public:
  static Result<MysqlVariables> Read(MysqlConnection& connection, Instant deadline);

  bool has(std::string_view name) const;
  /// "" if absent.
  std::string_view text(std::string_view name) const;
  /// ON, YES or 1.
  bool on(std::string_view name) const;
  /// 0 if absent or no number.
  std::uint64_t number(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// Whether the server is a node of a Galera cluster.
bool IsGalera(const MysqlVariables& variables);

/// Names the server so that restarts keep it and another server has another; a Galera cluster is
/// one.
std::string MysqlIdentity(const MysqlVariables& variables);

/// What tells one server from another, and of its settings, what a hand changes at run time: an
/// expression of SQL for one text, in letters that need no quoting.
std::string MysqlSettingsText(const MysqlVariables& variables);

/// An error if the server cannot be written to.
Result<void> CheckWritable(const MysqlVariables& variables);

/// The level, with a warning for each setting that keeps it below kPower.
Durability MysqlDurability(const MysqlVariables& variables, std::vector<std::string>& warnings);

}  // namespace leaf
