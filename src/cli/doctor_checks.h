#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/findings.h"
#include "config/config.h"
#include "core/segment/marks.h"
#include "store/driver.h"

namespace leaf::doctor {

/// What the checks of one run share.
struct Context {
  const Config& config;
  Clock& clock;
  Report& report;
  /// The journal, read before the rows: a row only rises, so one below its mark has gone back.
  std::map<std::string, Mark> marks = {};
  std::optional<StoreInfo> store = {};          ///< once it could be asked
  std::unique_ptr<SegmentDriver> session = {};  ///< connected; not with SQLite

  Instant Deadline() const { return clock.Now() + config.store.timeout; }
};

/// The checks, in the order of the table in doctor.cc. Each appends what it finds.
void CheckConfig(Context& context);
void CheckStateFolder(Context& context);
void CheckMarks(Context& context);
void CheckStore(Context& context);
void CheckStoreChange(Context& context);
void CheckDurability(Context& context);
void CheckPrivileges(Context& context);
void CheckRows(Context& context);
void CheckRegistry(Context& context);

/// With SQLite, whose file is only read: a leafd may be using it.
void CheckSqliteFile(Context& context);

/// The statement that raises a row's max_id to `least`, or sets its step. No remedy lowers a row,
/// whatever it has become by the time that it is run: a lowered one makes duplicates.
std::string RaiseMaxId(const Config& config, const Row& row, std::int64_t least);
std::string SetStep(const Config& config, const Row& row, std::int64_t step);

/// What is wrong with one row, and whether it went back.
void JudgeRow(Context& context, const Row& row);
/// A row that could be read but for its max_id or step.
void SayUnreadable(Context& context, const UnreadableRow& row);

}  // namespace leaf::doctor
