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
constexpr int kMostUnreadable = 100;
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

// What nobody but the user knows. A statement that still holds it is refused by every store.
constexpr const char* kLargest = "LARGEST_ID_EVER_ISSUED + 1";

std::string Key(const StoreOptions& store, const std::string& tag) {
  return store.path + "/" + store.table + "/" + tag;
}

// As etcdctl's transactions read it.
std::string InQuotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string InShell(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// A row that others moved meanwhile stays as it is.
std::string EtcdChange(const StoreOptions& store, const Row& from, const EtcdValue& to) {
  const std::string key = InQuotes(Key(store, from.tag));
  const std::string value = InQuotes(EtcdValue{from.max_id, from.step}.Text());
  return "printf '%s\\n' " + InShell("value(" + key + ") = " + value) + " '' " +
         InShell("put " + key + " " + InQuotes(to.Text())) + " '' '' | etcdctl txn";
}

std::string SqlChange(const StoreOptions& store, const std::string& tag,
                      const std::string& assignment) {
  return "UPDATE " + TableOf(store) + " SET " + assignment +
         " WHERE biz_tag = " + Quoted(store.kind, tag) + ";";
}

// Up only, whatever the row is by the time that it is run.
std::string RaiseTo(const StoreOptions& store, const Row& row, const std::string& least) {
  if (store.kind == "sqlite") {
    return SqlChange(store, row.tag,
                     "max_id = MAX(COALESCE(CAST(max_id AS INTEGER), 0), " + least + ")");
  }
  return SqlChange(store, row.tag, "max_id = GREATEST(COALESCE(max_id, 0), " + least + ")");
}

// The end of what this server knows to be issued; 0: nothing.
std::int64_t KnownEnd(const Context& context, const std::string& tag) {
  const auto known = context.marks.find(tag);
  return known == context.marks.end() ? 0 : std::max(known->second.end, known->second.seen);
}

std::string Bound(const Context& context, const std::string& tag) {
  const std::int64_t end = KnownEnd(context, tag);
  std::string text = "max_id has to be above every id that was ever issued";
  if (end > 0) text += "; this server has seen ids below " + std::to_string(end);
  return text;
}

std::string Tag(const std::string& name) { return "tag '" + name + "'"; }

// Where no number of ours can be right: other servers may have issued more than this one saw.
std::string ByHand(const Context& context, const Row& row) {
  const StoreOptions& store = context.config.store;
  if (store.kind != "etcd") return RaiseTo(store, row, kLargest);
  const std::int64_t step = row.step > 0 ? row.step : context.config.segment.step;
  return "etcdctl put " + InShell(Key(store, row.tag)) + " '{\"max_id\":\"" + kLargest +
         "\",\"step\":" + std::to_string(step) + "}'";
}

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
                        RaiseMaxId(context.config, row, end)});
  } else if (mark.regressed) {
    context.report.Add(
        {Severity::kError, "marks", Tag(row.tag),
         "it is stopped, because its row had gone back before; the row is above every id that this "
         "server knows of now",
         "find out why; then resume it: POST /api/v1/tags/" + row.tag + "/resume"});
  }
}

}  // namespace

std::string RaiseMaxId(const Config& config, const Row& row, std::int64_t least) {
  const StoreOptions& store = config.store;
  if (store.kind == "etcd") return EtcdChange(store, row, {std::max(least, row.max_id), row.step});
  return RaiseTo(store, row, std::to_string(least));
}
std::string SetStep(const Config& config, const Row& row, std::int64_t step) {
  const StoreOptions& store = config.store;
  if (store.kind == "etcd") return EtcdChange(store, row, {row.max_id, step});
  return SqlChange(store, row.tag, "step = " + std::to_string(step));
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
      found += "; " + Bound(context, row.tag);
      mend = ByHand(context, row);
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

void SayUnreadable(Context& context, const UnreadableRow& row) {
  const Row as_row{row.tag, 0, 0, ""};
  std::string found = row.why + "; such a tag is refused", mend;
  if (!row.has_max_id) {
    found += ". " + Bound(context, row.tag);
    mend = ByHand(context, as_row);
  }
  if (!row.has_step && context.config.store.kind != "etcd") {
    mend +=
        (mend.empty() ? "" : " ") + SetStep(context.config, as_row, context.config.segment.step);
  }
  context.report.Add({Severity::kError, "rows", Tag(row.tag), found, mend});
}

void CheckRows(Context& context) {
  Report& report = context.report;
  const StoreOptions& options = context.config.store;
  const auto unreadable = context.session->Unreadable(kMostUnreadable, context.Deadline());
  if (!unreadable.ok())
    return report.Say(Severity::kError, "rows", options.table, unreadable.error().message);
  for (const UnreadableRow& row : *unreadable) SayUnreadable(context, row);
  std::int64_t count = 0;
  for (std::string after;;) {
    const auto page = context.session->List(after, kPage, context.Deadline());
    if (!page.ok())
      return report.Say(Severity::kError, "rows", options.table, page.error().message);
    for (const Row& row : *page) {
      const bool said =
          std::any_of(unreadable->begin(), unreadable->end(),
                      [&row](const UnreadableRow& each) { return each.tag == row.tag; });
      if (!said) JudgeRow(context, row);
    }
    count += static_cast<std::int64_t>(page->size());
    if (page->size() < kPage) break;
    after = page->back().tag;
  }
  report.Ok("rows", options.table, "it was read to its end: " + std::to_string(count) + " tags");
}

}  // namespace leaf::doctor
