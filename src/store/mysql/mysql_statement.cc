#include <mysql.h>

#include <array>
#include <utility>

#include "base/assert.h"
#include "store/mysql/mysql_connection.h"
#include "store/mysql/mysql_waiter.h"

namespace leaf {
namespace {

constexpr std::size_t kMaxParams = 8;
// A key of InnoDB has 3072 bytes at most; one byte of a character set becomes up to three of UTF-8.
constexpr std::size_t kMaxTag = 3 * 3072;

/// Where one row of (tag, max_id, step, updated) is fetched to.
struct RowBuffer {
  std::array<char, kMaxTag> tag;
  std::array<char, 64> updated;
  std::int64_t max_id = 0, step = 0;
  unsigned long tag_size = 0, updated_size = 0;
  my_bool no_max_id = 0, no_step = 0, no_updated = 0;
  std::array<MYSQL_BIND, 4> binds{};

  RowBuffer() {
    Text(binds[0], tag.data(), tag.size(), tag_size);
    Number(binds[1], max_id, no_max_id);
    Number(binds[2], step, no_step);
    Text(binds[3], updated.data(), updated.size(), updated_size);
    binds[3].is_null = &no_updated;
  }

  static void Text(MYSQL_BIND& bind, char* at, std::size_t capacity, unsigned long& size) {
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = at;
    bind.buffer_length = capacity;
    bind.length = &size;
  }
  static void Number(MYSQL_BIND& bind, std::int64_t& at, my_bool& absent) {
    bind.buffer_type = MYSQL_TYPE_LONGLONG;
    bind.buffer = &at;
    bind.is_null = &absent;
  }

  MysqlRow Row() const {
    MysqlRow row;
    row.tag.assign(tag.data(), tag_size);
    if (no_max_id == 0) row.max_id = max_id;
    if (no_step == 0) row.step = step;
    if (no_updated == 0) row.updated.assign(updated.data(), updated_size);
    return row;
  }
};

}  // namespace

MysqlStatement::~MysqlStatement() { Drop(); }

// libmariadb tells the server when the connection is still this one's; that needs no answer.
void MysqlStatement::Drop() noexcept {
  if (stmt_ == nullptr) return;
  const MysqlWaiter::Scope scope(*connection_.waiter_, Instant::min());
  mysql_stmt_close(std::exchange(stmt_, nullptr));
}

void MysqlStatement::SetText(std::string sql) {
  if (sql == sql_) return;
  Drop();
  sql_ = std::move(sql);
}

Result<void> MysqlStatement::Prepare(Instant deadline) {
  LEAF_ASSERT(connection_.mysql_ != nullptr);
  if (stmt_ != nullptr && session_ == connection_.session_) return {};
  Drop();
  stmt_ = mysql_stmt_init(connection_.mysql_);
  if (stmt_ == nullptr) return Error{Code::kUnavailable, "out of memory"};
  session_ = connection_.session_;
  int failed = 0;
  {
    const MysqlWaiter::Scope scope(*connection_.waiter_, deadline);
    failed = mysql_stmt_prepare(stmt_, sql_.data(), sql_.size());
  }
  if (failed == 0) return {};
  Error error = Failed("prepare");
  Drop();
  return error;
}

Error MysqlStatement::Failed(std::string_view what) {
  return connection_.Failed(what, mysql_stmt_errno(stmt_), mysql_stmt_error(stmt_));
}

// REQUIRES: a Scope. False result: not sent, or sent and failed; Failed() tells.
Result<void> MysqlStatement::Start(std::span<const Param> params) {
  std::array<MYSQL_BIND, kMaxParams> binds{};
  std::array<unsigned long, kMaxParams> sizes{};
  LEAF_ASSERT(params.size() <= kMaxParams && params.size() == mysql_stmt_param_count(stmt_));
  for (std::size_t i = 0; i < params.size(); ++i) {
    MYSQL_BIND& bind = binds[i];
    if (const auto* number = std::get_if<std::int64_t>(&params[i])) {
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.buffer = const_cast<std::int64_t*>(number);
    } else {
      const auto& text = std::get<std::string_view>(params[i]);
      sizes[i] = text.size();
      bind.buffer_type = MYSQL_TYPE_STRING;
      bind.buffer = const_cast<char*>(text.data());
      bind.buffer_length = text.size();
      bind.length = &sizes[i];
    }
  }
  const bool ok = (params.empty() || mysql_stmt_bind_param(stmt_, binds.data()) == 0) &&
                  mysql_stmt_execute(stmt_) == 0;
  return ok ? Result<void>() : Error{Code::kUnavailable, ""};
}

Result<MysqlStatement::Done> MysqlStatement::Execute(std::span<const Param> params,
                                                     Instant deadline) {
  LEAF_ASSERT(stmt_ != nullptr && session_ == connection_.session_ &&
              connection_.mysql_ != nullptr);
  bool ok = false;
  {
    const MysqlWaiter::Scope scope(*connection_.waiter_, deadline);
    ok = Start(params).ok();
  }
  if (!ok) return Failed("statement");
  return Done{mysql_stmt_affected_rows(stmt_), mysql_stmt_insert_id(stmt_)};
}

Result<std::vector<MysqlRow>> MysqlStatement::Rows(std::span<const Param> params, std::size_t most,
                                                   Instant deadline) {
  LEAF_ASSERT(stmt_ != nullptr && session_ == connection_.session_ &&
              connection_.mysql_ != nullptr);
  std::vector<MysqlRow> rows;
  RowBuffer buffer;
  int status = 1;
  {
    const MysqlWaiter::Scope scope(*connection_.waiter_, deadline);
    if (Start(params).ok() && mysql_stmt_field_count(stmt_) == buffer.binds.size() &&
        mysql_stmt_bind_result(stmt_, buffer.binds.data()) == 0) {
      while ((status = mysql_stmt_fetch(stmt_)) == 0 && rows.size() < most)
        rows.push_back(buffer.Row());
    }
  }
  if (status == MYSQL_NO_DATA) return rows;
  if (status == 1) return Failed("query");
  connection_.Cut();  // rows are still on their way
  return Error{Code::kUnavailable, status == 0 ? "the server sent more rows than were asked for"
                                               : "a row does not fit its columns' types"};
}

}  // namespace leaf
