// Three judges see each acknowledged answer once, while its file is read: IdUnion melts the ids
// into intervals, and what the union is smaller than the sum was issued twice; OrderJudge sorts
// requests and answers by time; the order on one connection is checked at once, because a file has
// it. Only if ids were issued twice are the files read again, to name the answers that clash.

#include "check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "history.h"
#include "id_union.h"
#include "order.h"

namespace leaf::tools {
namespace {

struct Tag {
  std::string name;
  TagReport report;
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();  // no id may reach it
};

/// What the numbers of one file mean, and where its connections are.
struct File {
  std::unordered_map<std::uint32_t, std::uint32_t> tags;
  std::unordered_map<std::uint16_t, std::uint16_t> servers;
  std::unordered_map<std::uint64_t, std::int64_t> reached;  // by client and tag: past its latest id
};

struct Path {
  std::string path;
  std::uint64_t base;  // of its bytes among those of all files
};

enum Kind : std::uint8_t { kClash, kServer, kConnection, kBeyond, kLost, kGlobal, kKinds };

std::string FolderOf(const CheckOptions& options) {
  if (!options.folder.empty()) return options.folder;
  std::error_code failure;
  const std::filesystem::path path = std::filesystem::temp_directory_path(failure);
  return failure ? "/tmp" : path.string();
}

// An answer takes two events of the order and one interval, and intervals melt.
std::size_t UnionShare(std::size_t memory) { return memory / 4; }
std::size_t OrderShare(std::size_t memory) { return memory / 2; }

}  // namespace

class Checker::Impl {
 public:
  explicit Impl(CheckOptions options)
      : options_(std::move(options)),
        ids_(UnionShare(options_.memory_bytes), FolderOf(options_), options_.max_findings),
        order_(OrderShare(options_.memory_bytes), FolderOf(options_)) {
    for (const auto& [name, value] : options_.high) TagNumber(name);
  }

  std::string Add(const std::string& path);
  CheckReport Finish();

 private:
  std::uint32_t TagNumber(const std::string& name);
  std::string Name(File& file, const HistoryReader& reader);
  std::string Take(File& file, const HistoryReader& reader);
  void TakeIds(File& file, Tag& tag, const OrderJudge::Piece& piece, const HistoryRecord& record);
  void JudgeConnection(File& file, Tag& tag, const OrderJudge::Piece& piece, std::uint32_t client);
  void JudgeBeyond(Tag& tag, const OrderJudge::Piece& piece);
  bool JudgeUnion();
  bool JudgeOrder();
  void JudgeLost(Tag& tag);
  void NameClashes();
  bool IsBreach(const Tag& tag) const;

  void Find(Kind kind, const Tag& tag, const std::string& what);
  bool Wants(Kind kind) const { return findings_[kind].size() < options_.max_findings; }
  std::string Describe(std::uint64_t position) const;

  const CheckOptions options_;
  std::vector<Tag> tags_;
  std::unordered_map<std::string, std::uint32_t> tag_numbers_;
  std::vector<std::string> servers_;
  std::vector<Path> paths_;
  std::uint64_t base_ = 0;
  IdUnion ids_;
  OrderJudge order_;
  std::array<std::vector<std::string>, kKinds> findings_;
  CheckReport report_;
};

void Checker::Impl::Find(Kind kind, const Tag& tag, const std::string& what) {
  if (Wants(kind)) findings_[kind].push_back(tag.name + ": " + what);
}

/// The answer whose record stands there, so that it can be looked up.
std::string Checker::Impl::Describe(std::uint64_t position) const {
  const auto after = std::upper_bound(paths_.begin(), paths_.end(), position,
                                      [](std::uint64_t at, const Path& p) { return at < p.base; });
  const Path& in = *std::prev(after);
  HistoryRecord record;
  if (!ReadRecordAt(in.path, position - in.base, record)) return in.path + " (now unreadable)";
  std::string server;
  HistoryReader reader(in.path);
  while (server.empty() && reader.Next()) {
    const HistoryRecord& name = reader.record();
    if (name.kind == HistoryRecord::kServerName && name.server == record.server)
      server = reader.name();
  }
  std::ostringstream out;
  out << "[" << record.first << "," << record.first + record.count << ") of file " << in.path
      << " client " << record.client << " sequence " << record.seq << " server " << server
      << " sent " << record.sent_ns << " received " << record.received_ns;
  return out.str();
}

std::uint32_t Checker::Impl::TagNumber(const std::string& name) {
  const auto [found, fresh] = tag_numbers_.emplace(name, static_cast<std::uint32_t>(tags_.size()));
  if (fresh) {
    const auto high = options_.high.find(name);
    tags_.push_back({name, {}, std::numeric_limits<std::int64_t>::max()});
    if (high != options_.high.end()) tags_.back().limit = high->second;
  }
  return found->second;
}

std::string Checker::Impl::Add(const std::string& path) {
  File file;
  paths_.push_back({path, base_});
  HistoryReader reader(path);
  std::string error;
  while (error.empty() && reader.Next()) {
    error =
        reader.record().kind == HistoryRecord::kAnswer ? Take(file, reader) : Name(file, reader);
    if (!error.empty()) error = path + ": " + error + " at byte " + std::to_string(reader.offset());
  }
  base_ += reader.end();
  if (reader.truncated()) ++report_.truncated_files;
  if (!reader.error().empty()) return reader.error();
  if (!ids_.error().empty()) return ids_.error();
  return order_.error().empty() ? error : order_.error();
}

std::string Checker::Impl::Name(File& file, const HistoryReader& reader) {
  const HistoryRecord& record = reader.record();
  if (record.kind == HistoryRecord::kTagName) {
    file.tags[record.tag] = TagNumber(reader.name());
    return "";
  }
  const auto known = std::find(servers_.begin(), servers_.end(), reader.name());
  const auto number = static_cast<std::size_t>(known - servers_.begin());
  if (number > std::numeric_limits<std::uint16_t>::max()) return "more than 65536 servers";
  if (known == servers_.end()) servers_.push_back(reader.name());
  file.servers[record.server] = static_cast<std::uint16_t>(number);
  return "";
}

std::string Checker::Impl::Take(File& file, const HistoryReader& reader) {
  const HistoryRecord& record = reader.record();
  const auto number = file.tags.find(record.tag);
  const auto server = file.servers.find(record.server);
  if (number == file.tags.end() || server == file.servers.end())
    return "a record names no known tag or server";
  if (record.count <= 0) return "a record has no count";
  if (record.received_ns < record.sent_ns) return "a record was answered before it was sent";
  Tag& tag = tags_[number->second];
  if (record.status == HistoryRecord::kNoAnswer) {
    ++tag.report.unsure;
    tag.report.unsure_ids += record.count;
  } else if (record.status != 200) {
    ++tag.report.failed;
  } else if (record.first > std::numeric_limits<std::int64_t>::max() - record.count) {
    return "a range passes the end of 2^63";
  } else {
    TakeIds(file, tag,
            {record.first, record.first + record.count, record.sent_ns, record.received_ns,
             base_ + reader.offset(), number->second, server->second},
            record);
  }
  return "";
}

void Checker::Impl::TakeIds(File& file, Tag& tag, const OrderJudge::Piece& piece,
                            const HistoryRecord& record) {
  ++tag.report.answers;
  tag.report.ids += record.count;
  JudgeConnection(file, tag, piece, record.client);
  JudgeBeyond(tag, piece);
  ids_.Add({piece.first, piece.last, piece.tag});
  order_.Add(piece);
}

void Checker::Impl::JudgeConnection(File& file, Tag& tag, const OrderJudge::Piece& piece,
                                    std::uint32_t client) {
  const std::uint64_t key = (std::uint64_t{client} << 32) | piece.tag;
  const auto [reached, fresh] = file.reached.emplace(key, piece.last);
  if (fresh) return;
  if (piece.first < reached->second) {
    ++tag.report.connection_breaches;
    if (Wants(kConnection))
      Find(kConnection, tag,
           "not above " + std::to_string(reached->second) +
               " on its connection: " + Describe(piece.position));
  }
  reached->second = std::max(reached->second, piece.last);
}

void Checker::Impl::JudgeBeyond(Tag& tag, const OrderJudge::Piece& piece) {
  const std::int64_t above = piece.last - std::max(piece.first, std::min(tag.limit, piece.last));
  const std::int64_t below =
      std::min<std::int64_t>(piece.last, 0) - std::min<std::int64_t>(piece.first, 0);
  if (above == 0 && below == 0) return;
  tag.report.beyond += above + below;
  if (Wants(kBeyond))
    Find(kBeyond, tag,
         "outside [0," + std::to_string(tag.limit) + "): " + Describe(piece.position));
}

bool Checker::Impl::JudgeUnion() {
  const bool whole = ids_.Finish([this](const IdUnion::Tag& seen) {
    TagReport& report = tags_[seen.tag].report;
    report.first = seen.first;
    report.last = seen.last;
    report.duplicates = report.ids - seen.distinct;
  });
  if (whole && !ids_.clashes().empty()) NameClashes();
  return whole;
}

/// Reads all again for the first two answers with each id that is known to be there twice.
void Checker::Impl::NameClashes() {
  struct Clash {
    IdUnion::Interval ids;
    std::vector<std::uint64_t> holders;
  };
  std::vector<Clash> clashes;
  for (const IdUnion::Interval& ids : ids_.clashes()) clashes.push_back({ids, {}});
  for (const Path& path : paths_) {
    HistoryReader reader(path.path);
    std::unordered_map<std::uint32_t, std::uint32_t> numbers;
    while (reader.Next()) {
      const HistoryRecord& record = reader.record();
      if (record.kind == HistoryRecord::kTagName) numbers[record.tag] = TagNumber(reader.name());
      if (record.kind != HistoryRecord::kAnswer || record.status != 200) continue;
      for (Clash& clash : clashes) {
        const std::int64_t id = clash.ids.first;
        if (id < record.first || id >= record.first + record.count) continue;
        if (clash.holders.size() < 2 && numbers[record.tag] == clash.ids.tag)
          clash.holders.push_back(path.base + reader.offset());
      }
    }
  }
  for (const Clash& clash : clashes) {
    std::string what = "issued twice: " + std::to_string(clash.ids.first) + " in";
    for (const std::uint64_t holder : clash.holders) what += " " + Describe(holder) + " and in";
    Find(kClash, tags_[clash.ids.tag], what.substr(0, what.size() - 7));
  }
}

bool Checker::Impl::JudgeOrder() {
  return order_.Finish([this](const OrderJudge::Breach& breach) {
    Tag& tag = tags_[breach.tag];
    // Across servers ids need not rise unless the caller says so: counted, but not told.
    const Kind kind = breach.one_server ? kServer : kGlobal;
    ++(breach.one_server ? tag.report.server_breaches : tag.report.global_breaches);
    if ((breach.one_server || options_.global_order) && Wants(kind))
      Find(kind, tag,
           std::string("order of ") + (breach.one_server ? "a server" : "all servers") + ": " +
               Describe(breach.asked) + " after " + Describe(breach.answered));
  });
}

void Checker::Impl::JudgeLost(Tag& tag) {
  if (!options_.high.contains(tag.name)) return;
  TagReport& report = tag.report;
  const auto low = options_.low.find(tag.name);
  const std::int64_t from = low != options_.low.end() ? low->second : report.first;
  // Ids counted twice must not hide lost ones.
  report.lost = tag.limit - from - (report.ids - report.duplicates);
  const auto bound = options_.max_lost.find(tag.name);
  if (bound != options_.max_lost.end() && report.lost > bound->second) {
    Find(kLost, tag,
         "lost " + std::to_string(report.lost) + " ids, allowed are " +
             std::to_string(bound->second));
  }
}

bool Checker::Impl::IsBreach(const Tag& tag) const {
  const TagReport& report = tag.report;
  const auto bound = options_.max_lost.find(tag.name);
  return report.duplicates > 0 || report.connection_breaches > 0 || report.server_breaches > 0 ||
         report.beyond > 0 || (options_.global_order && report.global_breaches > 0) ||
         (bound != options_.max_lost.end() && report.lost > bound->second);
}

CheckReport Checker::Impl::Finish() {
  if (!JudgeUnion()) report_.error = ids_.error();
  if (report_.error.empty() && !JudgeOrder()) report_.error = order_.error();
  report_.spilled = ids_.spilled() || order_.spilled();
  bool breach = false;
  for (Tag& tag : tags_) {
    JudgeLost(tag);
    breach = breach || IsBreach(tag);
    report_.total.Add(tag.report);
    report_.tags[tag.name] = tag.report;
  }
  for (const std::vector<std::string>& of_kind : findings_)
    report_.findings.insert(report_.findings.end(), of_kind.begin(), of_kind.end());
  if (breach) {
    report_.verdict = CheckReport::Verdict::kBreach;
  } else if (report_.total.ids < options_.min_ids) {
    report_.verdict = CheckReport::Verdict::kVoid;
  }
  return report_;
}

Checker::Checker(CheckOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Checker::~Checker() = default;
std::string Checker::Add(const std::string& path) { return impl_->Add(path); }
CheckReport Checker::Finish() { return impl_->Finish(); }

}  // namespace leaf::tools
