// The rows of the table of tags, each by itself and beside its mark.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "cli/doctor_checks.h"
#include "core/tag_name.h"
#include "store/etcd/etcd_value.h"
#include "store/mysql/mysql_settings.h"
#include "store/postgres/postgres_settings.h"
#include "store/refusals.h"

namespace leaf::doctor {
namespace {

constexpr int kPage = 1000;
constexpr int kMostNulls = 100;
constexpr std::int64_t kLastId = std::numeric_limits<std::int64_t>::max() - 1;  // 2^63 - 2
constexpr std::int64_t kNearEnd = kLastId / 10 * 9;

std::string Quoted(const std::string& kind, const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || (c == '\\' && kind == "mysql")) quoted += c;
    quoted += c;
  }
  return quoted + "'";
}

std::string TableOf(const StoreOptions& options) {
  if (options.kind == "mysql") {
    const auto settings = ParseMysqlSettings(options);
    if (settings.ok()) return QuotedTable(*settings);
  } else if (options.kind == "postgres") {
    const auto settings = ParsePostgresSettings(options);
    if (settings.ok()) return QuotedTable(*settings);
  }
  return options.table;
}

std::string Change(const Config& config, const Row& row, const std::string& column,
                   std::int64_t value) {
  const StoreOptions& store = config.store;
  if (store.kind == "etcd") {
    const EtcdValue wanted{column == "max_id" ? value : row.max_id,
                           column == "step" ? value : row.step};
    return "etcdctl put " + Quoted("etcd", store.path + "/" + store.table + "/" + row.tag) + " '" +
           wanted.Text() + "'";
  }
  return "UPDATE " + TableOf(store) + " SET " + column + " = " + std::to_string(value) +
         " WHERE biz_tag = " + Quoted(store.kind, row.tag) + ";";
}

std::string Tag(const std::string& name) { return "tag '" + name + "'"; }

void JudgeMark(Context& context, const Row& row) {
  const auto known = context.marks.find(row.tag);
  if (known == context.marks.end()) return;
  const Mark& mark = known->second;
  const std::int64_t end = std::max(mark.end, mark.seen);
  if (row.max_id < mark.end) {
    context.report.Add({Severity::kError, "marks", Tag(row.tag),
                        "the row went back: its max_id is " + std::to_string(row.max_id) +
                            ", but this server has leased ids below " + std::to_string(mark.end) +
                            " and seen " + std::to_string(end) +
                            "; it has to be above every id that any server has issued",
                        SetMaxId(context.config, row, end)});
  } else if (mark.regressed) {
    context.report.Add(
        {Severity::kError, "marks", Tag(row.tag),
         "it is stopped, because its row had gone back before; the row is above every id that this "
         "server knows of now",
         "find out why; then resume it: POST /api/v1/tags/" + row.tag + "/resume"});
  }
}

}  // namespace

std::string SetMaxId(const Config& config, const Row& row, std::int64_t max_id) {
  return Change(config, row, "max_id", max_id);
}
std::string SetStep(const Config& config, const Row& row, std::int64_t step) {
  return Change(config, row, "step", step);
}

void JudgeRow(Context& context, const Row& row) {
  Report& report = context.report;
  if (!IsPlainTag(row.tag)) {
    report.Say(
        Severity::kWarning, "rows", Tag(row.tag),
        "its name is not of 1 to 128 bytes of A-Z a-z 0-9 . _ : -, so it is served but could "
        "not be created by leafd: " +
            row.tag,
        "give new tags plain names");
  }
  const std::int64_t count = std::max<std::int64_t>(1, row.step);
  if (const auto bad = refusal::BadRow(row.tag, row.max_id, row.step, count)) {
    std::string found = bad->message, mend = "begin another tag: the ids of this one are used up";
    if (row.step <= 0) {
      mend = SetStep(context.config, row, context.config.segment.step);
    } else if (row.max_id < 0) {
      found += "; it has to be above every id ever issued, and 1 is if none was";
      mend = SetMaxId(context.config, row, 1);
    }
    report.Add({Severity::kError, "rows", Tag(row.tag), found, mend});
  } else if (row.max_id > kNearEnd) {
    report.Add({Severity::kWarning, "rows", Tag(row.tag),
                "its max_id " + std::to_string(row.max_id) +
                    " is near the end of the ids, 2^63 - 2: less than a tenth is left",
                "begin another tag before it ends"});
  }
  JudgeMark(context, row);
}

void SayNull(Context& context, const std::string& tag) {
  const Row row{tag, 1, context.config.segment.step, ""};
  context.report.Add(
      {Severity::kError, "rows", Tag(tag),
       "its max_id or its step is NULL or no integer; such a tag is refused. max_id "
       "has to be above every id ever issued, and 1 is if none was",
       SetMaxId(context.config, row, 1) + " " + SetStep(context.config, row, row.step)});
}

void CheckRows(Context& context) {
  Report& report = context.report;
  const StoreOptions& options = context.config.store;
  const auto nulls = context.session->NullRows(kMostNulls, context.Deadline());
  if (!nulls.ok())
    return report.Say(Severity::kError, "rows", options.table, nulls.error().message);
  for (const std::string& tag : *nulls) SayNull(context, tag);
  std::int64_t count = 0;
  for (std::string after;;) {
    const auto page = context.session->List(after, kPage, context.Deadline());
    if (!page.ok())
      return report.Say(Severity::kError, "rows", options.table, page.error().message);
    for (const Row& row : *page) {
      if (std::find(nulls->begin(), nulls->end(), row.tag) == nulls->end()) JudgeRow(context, row);
    }
    count += static_cast<std::int64_t>(page->size());
    if (page->size() < kPage) break;
    after = page->back().tag;
  }
  report.Ok("rows", options.table, "it was read to its end: " + std::to_string(count) + " tags");
}

}  // namespace leaf::doctor
