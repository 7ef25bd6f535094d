#include "admin/tags_api.h"

#include <charconv>
#include <utility>
#include <vector>

#include "admin/answer.h"
#include "admin/body.h"
#include "base/log.h"
#include "codec/http1/errors.h"
#include "codec/http1/query.h"
#include "codec/text.h"

namespace leaf {
namespace {

using http1::Exchange;
using http1::Later;
using http1::Response;

constexpr std::int64_t kDefaultLimit = 100, kMaxLimit = 1000;

struct Paging {
  std::int64_t limit = kDefaultLimit;
  std::string after;
};

Result<Paging> PagingOf(std::string_view query) {
  const http1::Parameter limit = http1::FindParameter(query, "limit"),
                         after = http1::FindParameter(query, "after");
  const Error bad{Code::kInvalidArgument, "limit is a number from 1 to " +
                                              std::to_string(kMaxLimit) +
                                              ", after is the next of the page before; each once"};
  if (limit.bad || after.bad || limit.count > 1 || after.count > 1) return bad;
  Paging paging;
  paging.after = after.value;
  if (limit.count == 0) return paging;
  const char* const end = limit.value.data() + limit.value.size();
  const auto parsed = std::from_chars(limit.value.data(), end, paging.limit);
  if (parsed.ec != std::errc() || parsed.ptr != end || paging.limit < 1 || paging.limit > kMaxLimit)
    return bad;
  return paging;
}

void AppendId(std::string_view key, std::int64_t id, std::string& out) {
  out += '"';
  out += key;
  out += "\":\"";
  AppendDecimal(id, out);
  out += '"';
}

void AppendSegments(const TagView& view, std::string& out) {
  const char* separator = "";
  for (const TagView::Piece& piece : view.segments) {
    out += separator;
    out += '{';
    AppendId("first", piece.range.first, out);
    out += ',';
    AppendId("last", piece.range.last, out);
    out += ',';
    AppendId("next", piece.next, out);
    out += '}';
    separator = ",";
  }
}

void AppendHeld(const TagView& view, std::string& out) {
  out += ",\"segments\":[";
  AppendSegments(view, out);
  out += "],\"lease\":";
  AppendDecimal(view.lease, out);
  out += ',';
  AppendId("mark", view.mark, out);
  out += ",\"parked\":";
  AppendDecimal(view.parked, out);
  out += ",\"last_error\":";
  AppendJson(view.last_error, out);
}

Error NoSuchTag() { return {Code::kNotFound, "no such tag"}; }

/// A line an administrator's change, for the record of who moved what.
void LogChange(std::string_view what, const std::string& tag, std::int64_t number) {
  log::Info("admin request done", {{"change", what}, {"tag", tag}, {"value", number}});
}

}  // namespace

std::string TagJson(const Row* row, const TagView* view) {
  const bool held = view != nullptr && view->state != TagState::kAbsent;
  std::string out = "{\"tag\":";
  AppendJson(row != nullptr ? row->tag : view->name, out);
  out += ',';
  AppendId("max_id", row != nullptr ? row->max_id : view->max_id, out);
  out += ",\"step\":";
  AppendDecimal(row != nullptr ? row->step : view->step, out);
  out += ",\"state\":";
  AppendJson(TagStateName(held ? view->state : TagState::kIdle), out);
  out += ',';
  AppendId("remaining", held ? view->remaining : 0, out);
  if (held) {
    AppendHeld(*view, out);
  } else {
    out += ",\"segments\":[]";
  }
  out += '}';
  return out;
}

bool TagsApi::Enabled(Exchange& exchange) const {
  if (context_.ids.engine() != nullptr && context_.store != nullptr) return true;
  exchange.Reply(http1::Problem({Code::kDisabled, "segment mode is off (segment.enabled)"}));
  return false;
}

std::optional<TagView> TagsApi::View(std::string_view tag) const {
  auto view = engine().View(tag);
  if (view && view->state == TagState::kAbsent) view.reset();
  return view;
}

void TagsApi::List(Exchange& exchange) {
  if (!Enabled(exchange)) return;
  auto paging = PagingOf(exchange.request().query);
  if (!paging.ok()) {
    exchange.Reply(http1::Problem(paging.error()));
    return;
  }
  const auto limit = static_cast<std::size_t>(paging->limit);
  // One row more than is shown tells whether there is a next page.
  context_.store->List(
      paging->after, static_cast<int>(limit) + 1, Deadline(),
      Through<std::vector<Row>>(gate_, [this, limit, later = exchange.Defer()](auto rows) {
        later->Reply(rows.ok() ? ListAnswer(*rows, limit) : http1::Problem(rows.error()));
      }));
}

Response TagsApi::ListAnswer(const std::vector<Row>& rows, std::size_t limit) const {
  std::string body = "{\"tags\":[";
  const std::size_t shown = std::min(limit, rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto view = View(rows[i].tag);
    if (i > 0) body += ',';
    body += TagJson(&rows[i], view ? &*view : nullptr);
  }
  body += "],\"next\":";
  if (rows.size() > limit) {
    AppendJson(rows[shown - 1].tag, body);
  } else {
    body += "null";
  }
  return JsonAnswer(body + "}");
}

void TagsApi::Get(Exchange& exchange, const std::string& tag) {
  if (!Enabled(exchange)) return;
  context_.store->Find(
      tag, Deadline(),
      Through<std::optional<Row>>(gate_, [this, tag, later = exchange.Defer()](auto row) {
        later->Reply(GetAnswer(tag, row));
      }));
}

Response TagsApi::GetAnswer(const std::string& tag, const Result<std::optional<Row>>& row) const {
  const auto view = View(tag);
  const TagView* known = view ? &*view : nullptr;
  if (row.ok() && row->has_value()) return JsonAnswer(TagJson(&**row, known));
  // While the store is away, and while held ids outlive their row, the engine's picture is the
  // answer.
  if (known != nullptr) return JsonAnswer(TagJson(nullptr, known));
  return http1::Problem(row.ok() ? NoSuchTag() : row.error());
}

void TagsApi::Put(Exchange& exchange, const std::string& tag) {
  if (!Enabled(exchange)) return;
  const auto body = ParsePutBody(exchange.request().body);
  if (!body.ok()) {
    exchange.Reply(http1::Problem(body.error()));
    return;
  }
  if (!IsPlainTag(tag) && !View(tag)) {
    exchange.Reply(
        http1::Problem({Code::kInvalidArgument, "a new tag is 1 to 128 of A-Z a-z 0-9 . _ : -"}));
    return;
  }
  engine().PutTag(
      tag, body->step, body->max_id,
      Through<Engine::Put>(gate_, [this, tag, later = exchange.Defer()](Result<Engine::Put> put) {
        if (!put.ok()) {
          later->Reply(http1::Problem(put.error()));
          return;
        }
        LogChange(put->created ? "tag created" : "step set", tag, put->row.step);
        const auto view = View(tag);
        later->Reply(
            JsonAnswer(TagJson(&put->row, view ? &*view : nullptr), put->created ? 201 : 200));
      }));
}

void TagsApi::Delete(Exchange& exchange, const std::string& tag) {
  if (!Enabled(exchange)) return;
  engine().DeleteTag(tag, Through<Row>(gate_, [tag, later = exchange.Defer()](Result<Row> row) {
                       if (!row.ok()) {
                         later->Reply(http1::Problem(row.error()));
                         return;
                       }
                       LogChange("tag deleted", tag, row->max_id);
                       later->Reply(JsonAnswer(TagJson(&*row, nullptr)));
                     }));
}

void TagsApi::Resume(Exchange& exchange, const std::string& tag) {
  if (!Enabled(exchange)) return;
  const auto skip = ParseResumeBody(exchange.request().body);
  if (!skip.ok()) {
    exchange.Reply(http1::Problem(skip.error()));
    return;
  }
  engine().ResumeTag(tag, *skip,
                     Through<std::int64_t>(gate_, [tag, later = exchange.Defer()](auto max_id) {
                       if (!max_id.ok()) {
                         later->Reply(http1::Problem(max_id.error()));
                         return;
                       }
                       LogChange("tag resumed", tag, *max_id);
                       std::string body = "{\"tag\":";
                       AppendJson(tag, body);
                       body += ',';
                       AppendId("max_id", *max_id, body);
                       later->Reply(JsonAnswer(body + "}"));
                     }));
}

void TagsApi::Drop(Exchange& exchange, const std::string& tag) {
  if (!Enabled(exchange)) return;
  const auto empty = ParseEmptyBody(exchange.request().body);
  const auto dropped = empty.ok() ? engine().DropTag(tag) : Result<std::int64_t>(empty.error());
  if (!dropped.ok()) {
    exchange.Reply(http1::Problem(dropped.error()));
    return;
  }
  LogChange("ids dropped", tag, *dropped);
  std::string body = "{\"tag\":";
  AppendJson(tag, body);
  body += ',';
  AppendId("discarded", *dropped, body);
  exchange.Reply(JsonAnswer(body + "}"));
}

}  // namespace leaf
