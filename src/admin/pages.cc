#include "admin/pages.h"

#include <algorithm>
#include <utility>

#include "admin/answer.h"
#include "codec/http1/accept.h"
#include "codec/http1/errors.h"
#include "codec/text.h"

namespace leaf {
namespace {

using http1::Request;
using http1::Response;

constexpr std::string_view kHtml = "text/html;charset=UTF-8";
constexpr std::string_view kCss = "/css/bootstrap.min.css";
constexpr int kListPage = 1000;  // rows asked of the store at once

// Under the name that Leaf's pages use; the sheet is leafd's own.
constexpr std::string_view kStyleSheet =
    R"(body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #1d2733; background: #fff; }
.table { border-collapse: collapse; width: 100%; }
.table th, .table td { padding: .45rem .8rem; border-top: 1px solid #d8dee6; text-align: right; font-variant-numeric: tabular-nums; }
.table th { border-top: 0; color: #4a5868; }
.table th:first-child, .table td:first-child { text-align: left; }
.table-hover tr:hover td { background: #f2f6fa; }
@media (prefers-color-scheme: dark) {
  body { color: #dfe6ee; background: #161b22; }
  .table th, .table td { border-color: #303943; }
  .table th { color: #9fb0c2; }
  .table-hover tr:hover td { background: #1f2730; }
}
)";

class Table {
 public:
  explicit Table(std::initializer_list<std::string_view> columns) {
    html_ =
        "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"UTF-8\">\n<title>Leaf</title>\n"
        "<link href=\"/css/bootstrap.min.css\" rel=\"stylesheet\">\n</head>\n<body>\n"
        "<table class=\"table table-hover\">\n<thead>\n<tr>\n";
    for (const std::string_view column : columns) html_ += "<th>" + std::string(column) + "</th>\n";
    html_ += "</tr>\n</thead>\n<tbody>\n";
  }
  void BeginRow() { html_ += "<tr>\n"; }
  void EndRow() { html_ += "</tr>\n"; }
  void Cell(std::string_view text) {
    html_ += "<td>";
    AppendHtml(text, html_);
    html_ += "</td>\n";
  }
  void Cell(std::int64_t number) { Cell(Grouped(number)); }
  std::string Finish(std::string_view note) && {
    html_ += "</tbody>\n</table>\n";
    if (!note.empty()) html_ += "<p>" + std::string(note) + "</p>\n";
    return std::move(html_) + "</body>\n</html>\n";
  }

 private:
  std::string html_;
};

struct Slot {
  std::int64_t value = 0, max = 0, step = 0;
};

Slot SlotOf(const TagView& tag, std::size_t index) {
  if (index < tag.segments.size()) {
    const TagView::Piece& piece = tag.segments[index];
    // The newest piece is what the last lease left after it had served those who waited for it.
    const bool newest = index + 1 == tag.segments.size() && tag.lease > 0;
    return {piece.next, piece.range.last, newest ? tag.lease : piece.range.size()};
  }
  // Used up: Leaf's segment then stands at its end.
  if (index == 0 && tag.refills > 0) return {tag.mark, tag.mark, tag.lease};
  return {};
}

/// Connector/J prints a timestamp's fraction always.
std::string UpdateText(const std::string& text) {
  constexpr std::size_t kWithoutFraction = 19;  // "2026-11-30 20:45:31"
  return text.size() == kWithoutFraction && text[10] == ' ' ? text + ".0" : text;
}

/// Reads the store's rows page by page for one answer; lives in its own callbacks.
class DbRead : public std::enable_shared_from_this<DbRead> {
 public:
  using Finish = std::function<void(Result<std::string>)>;
  DbRead(const AdminContext& context, std::shared_ptr<CallbackGate> gate, Finish finish)
      : context_(context), gate_(std::move(gate)), finish_(std::move(finish)) {}

  void Next() {
    const std::string after = rows_.empty() ? std::string() : rows_.back().tag;
    context_.store->List(after, kListPage, context_.clock.Now() + context_.store_timeout,
                         Through<std::vector<Row>>(
                             gate_, [self = shared_from_this()](Result<std::vector<Row>> page) {
                               self->OnPage(std::move(page));
                             }));
  }

 private:
  void OnPage(Result<std::vector<Row>> page) {
    if (!page.ok()) {
      finish_(page.error());
      return;
    }
    const bool last = page->size() < static_cast<std::size_t>(kListPage);
    std::move(page->begin(), page->end(), std::back_inserter(rows_));
    if (!last && rows_.size() < kPageRows) {
      Next();
      return;
    }
    finish_(DbPage(rows_, !last));
  }

  const AdminContext& context_;
  std::shared_ptr<CallbackGate> gate_;
  Finish finish_;
  std::vector<Row> rows_;
};

/// What of a request an error needs once the request is gone.
struct ErrorForm {
  bool as_leaf = false, html = false;
  std::string path;
};

Response FailureOf(const ErrorForm& form, const Error& error, std::int64_t wall_ms) {
  if (!form.as_leaf) return http1::Problem(error);
  http1::LeafError leaf;
  leaf.path = form.path;
  leaf.code = error.code;
  leaf.html = form.html;
  if (error.code == Code::kDisabled) {
    const http1::LeafWords words = http1::LeafWordsOf(error.code, false);
    leaf.exception = words.exception;
    leaf.message = words.message;
  } else {
    // The store's words stay off a listener that anybody may ask.
    leaf.message = "the table cannot be read now";
  }
  return http1::LeafAnswer(leaf, wall_ms);
}

ErrorForm FormOf(const Request& request, bool as_leaf) {
  return {as_leaf, http1::PrefersHtml(request.accept), std::string(request.path)};
}

}  // namespace

std::string Grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

void FirstTags::Add(const TagView& tag) {
  if (tag.state == TagState::kAbsent) return;
  const auto by_name = [](const TagView& a, const TagView& b) { return a.name < b.name; };
  if (heap_.size() == kPageRows) {
    ++more_;
    if (heap_.front().name <= tag.name) return;
    std::pop_heap(heap_.begin(), heap_.end(), by_name);
    heap_.pop_back();
  }
  heap_.push_back(tag);
  std::push_heap(heap_.begin(), heap_.end(), by_name);
}

std::vector<TagView> FirstTags::Take() && {
  std::sort(heap_.begin(), heap_.end(),
            [](const TagView& a, const TagView& b) { return a.name < b.name; });
  return std::move(heap_);
}

std::string CachePage(const std::vector<TagView>& tags, std::size_t more) {
  Table table(
      {"name", "init", "next", "pos", "value0", "max0", "step0", "value1", "max1", "step1"});
  for (const TagView& tag : tags) {
    table.BeginRow();
    table.Cell(tag.name);
    table.Cell(tag.refills > 0 || !tag.segments.empty() ? "true" : "false");
    table.Cell(tag.segments.size() > 1 ? "true" : "false");
    table.Cell("0");
    for (const std::size_t index : {0U, 1U}) {
      const Slot slot = SlotOf(tag, index);
      table.Cell(slot.value);
      table.Cell(slot.max);
      table.Cell(slot.step);
    }
    table.EndRow();
  }
  return std::move(table).Finish(more == 0 ? std::string()
                                           : "and " + std::to_string(more) + " more");
}

std::string DbPage(const std::vector<Row>& rows, bool more) {
  Table table({"tag", "max", "step", "update"});
  for (const Row& row : rows) {
    table.BeginRow();
    table.Cell(row.tag);
    table.Cell(row.max_id);
    table.Cell(row.step);
    table.Cell(UpdateText(row.updated));
    table.EndRow();
  }
  return std::move(table).Finish(more ? "and more rows" : "");
}

bool Pages::Has(std::string_view path) noexcept {
  return path == "/cache" || path == "/db" || path == kCss;
}

void Pages::Handle(http1::Exchange& exchange, std::string_view path, bool as_leaf) {
  if (path == kCss) {
    exchange.Reply(TextAnswer("text/css", std::string(kStyleSheet)));
    return;
  }
  const ErrorForm form = FormOf(exchange.request(), as_leaf);
  if (context_.ids.engine() == nullptr || context_.store == nullptr) {
    const Error disabled{Code::kDisabled, "segment mode is off (segment.enabled)"};
    exchange.Reply(FailureOf(form, disabled, context_.clock.WallMillis()));
    return;
  }
  if (path == "/cache") {
    FirstTags first;
    context_.ids.engine()->Visit([&first](const TagView& tag) { first.Add(tag); });
    const std::size_t more = first.more();
    exchange.Reply(TextAnswer(kHtml, CachePage(std::move(first).Take(), more)));
    return;
  }
  Db(exchange, as_leaf);
}

void Pages::Db(http1::Exchange& exchange, bool as_leaf) {
  const ErrorForm form = FormOf(exchange.request(), as_leaf);
  db_reads_->fetch_add(1);
  const std::shared_ptr<void> turn(nullptr, [reads = db_reads_](void*) { reads->fetch_sub(1); });
  if (db_reads_->load() > kDbReads) {
    const Error busy{Code::kOverloaded, "the table is being read for others; ask again later"};
    exchange.Reply(FailureOf(form, busy, context_.clock.WallMillis()));
    return;
  }
  auto finish = [later = exchange.Defer(), form, turn, this](Result<std::string> page) {
    later->Reply(page.ok() ? TextAnswer(kHtml, std::move(page).value())
                           : FailureOf(form, page.error(), context_.clock.WallMillis()));
  };
  std::make_shared<DbRead>(context_, gate_, std::move(finish))->Next();
}

}  // namespace leaf
