// One session. Reservations are etcd_reservation's; here is the rest: each call reads the row and
// changes it by a transaction that holds only if the row is still what was read.

#include "store/etcd/etcd_driver.h"

#include <etcd.pb.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "store/etcd/etcd_memory.h"
#include "store/etcd/etcd_reservation.h"
#include "store/etcd/etcd_session.h"
#include "store/etcd/etcd_settings.h"
#include "store/refusals.h"

namespace leaf {
namespace {

constexpr int kBatch = 256;
constexpr int kTries = 64;
constexpr std::int64_t kPage = 1000;  // rows of one answer

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

Row ToRow(std::string_view tag, const EtcdValue& value) {
  return Row{std::string(tag), value.max_id, value.step, ""};
}

etcdpb::PutRequest* AddPut(etcdpb::TxnRequest& request, const std::string& key,
                           const EtcdValue& value) {
  etcdpb::PutRequest* const put = request.add_success()->mutable_request_put();
  put->set_key(key);
  put->set_value(value.Text());
  return put;
}

class EtcdDriver final : public SegmentDriver {
 public:
  EtcdDriver(const EtcdSettings& settings, std::string keys, std::shared_ptr<EtcdMemory> memory)
      : keys_(std::move(keys)), memory_(std::move(memory)), session_(settings, keys_, clock_) {}

  Result<StoreInfo> Open(Instant deadline) override;
  bool connected() const noexcept override { return session_.connected(); }
  void Close() noexcept override { session_.Close(); }
  int batch_limit() const noexcept override { return kBatch; }
  void Reserve(std::span<const Ask> asks, std::span<Grant> grants) override;
  Result<std::optional<Row>> Find(std::string_view tag, Instant deadline) override;
  Result<std::vector<Row>> List(std::string_view after, int limit, Instant deadline) override;
  Result<Row> Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                     Instant deadline) override;
  Result<Row> SetStep(std::string_view tag, std::int64_t step, Instant deadline) override;
  Result<Row> Delete(std::string_view tag, Instant deadline) override;
  Result<std::int64_t> Raise(std::string_view tag, std::int64_t not_below, std::int64_t add,
                             Instant deadline) override;
  Result<bool> HandBack(std::string_view tag, Range tail, Instant deadline) override;
  Result<std::vector<UnreadableRow>> Unreadable(int most, Instant deadline) override;
  void Interrupt() noexcept override { session_.Interrupt(); }

 private:
  std::string Key(std::string_view tag) const { return keys_ + std::string(tag); }
  Result<EtcdKnown> Get(std::string_view tag, Instant deadline);
  /// False: no more.
  using Visitor = std::function<bool(std::string_view tag, const Result<EtcdValue>& value)>;
  /// The keys behind `after`, in their order.
  Result<void> Visit(std::string_view after, std::int64_t page, Instant deadline,
                     const Visitor& visit);
  /// What is to be put in the place of a row; equal to it: nothing is.
  using Change = std::function<Result<EtcdValue>(const EtcdValue&)>;
  Result<EtcdValue> Rewrite(std::string_view tag, const Change& change, Instant deadline);
  Result<bool> Swap(std::string_view tag, const EtcdKnown& from, const EtcdValue& to,
                    Instant deadline);
  Error MovesTooFast(std::string_view tag) const;

  Clock& clock_ = SystemClock();
  const std::string keys_;  ///< "PREFIX/TABLE/"
  const std::shared_ptr<EtcdMemory> memory_;
  EtcdSession session_;
};

Result<StoreInfo> EtcdDriver::Open(Instant deadline) {
  memory_->Saw(session_.revision());
  const std::int64_t known = memory_->latest();
  LEAF_ASSIGN_OR_RETURN(EtcdSession::Facts facts, session_.Open(deadline));
  const int losses = memory_->Belongs(facts.cluster_id, known, facts.revision);
  if (losses > 0) facts.identity += ":restored " + std::to_string(losses);
  return StoreInfo{facts.durability, std::move(facts.identity), std::move(facts.warnings)};
}

void EtcdDriver::Reserve(std::span<const Ask> asks, std::span<Grant> grants) {
  LEAF_ASSERT(asks.size() == grants.size());
  Instant latest = Instant::min();
  for (const Ask& ask : asks) latest = std::max(latest, ask.deadline);
  Result<void> ready = session_.Ready(latest);
  if (ready.ok()) ready = session_.Look(latest);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    grants[i] = {};
    grants[i].flight = asks[i].flight;
    grants[i].outcome = Outcome::kRefused;
    if (!ready.ok()) grants[i].error = ready.error();
  }
  if (!ready.ok()) return;
  EtcdReservation(session_, *memory_, keys_, clock_).Run(asks, grants);
  memory_->Saw(session_.revision());
}

Error EtcdDriver::MovesTooFast(std::string_view tag) const {
  return Unavailable("the row of '" + std::string(tag) +
                     "' moves too fast: other servers changed it " + std::to_string(kTries) +
                     " times meanwhile");
}

Result<EtcdKnown> EtcdDriver::Get(std::string_view tag, Instant deadline) {
  etcdpb::RangeRequest request;
  request.set_key(Key(tag));
  LEAF_ASSIGN_OR_RETURN(const etcdpb::RangeResponse response, session_.Range(request, deadline));
  return KnownFrom(response, tag);
}

Result<std::optional<Row>> EtcdDriver::Find(std::string_view tag, Instant deadline) {
  LEAF_RETURN_IF_ERROR(session_.Ready(deadline));
  const Result<EtcdKnown> known = Get(tag, deadline);
  if (known.ok()) return std::optional(ToRow(tag, known->value));
  if (known.error().code == Code::kNotFound) return std::optional<Row>();
  return known.error();
}

Result<void> EtcdDriver::Visit(std::string_view after, std::int64_t page, Instant deadline,
                               const Visitor& visit) {
  LEAF_RETURN_IF_ERROR(session_.Ready(deadline));
  std::string from = Key(after);
  for (bool more = true; more;) {
    etcdpb::RangeRequest request;
    request.set_key(from + '\0');
    request.set_range_end(PrefixEnd(keys_));
    request.set_limit(page);
    LEAF_ASSIGN_OR_RETURN(const etcdpb::RangeResponse response, session_.Range(request, deadline));
    for (const etcdpb::KeyValue& row : response.kvs()) {
      if (!visit(std::string_view(row.key()).substr(keys_.size()),
                 ParseEtcdValue(row.key(), row.value())))
        return {};
      from = row.key();
    }
    more = response.more() && !response.kvs().empty();
  }
  return {};
}

// A value that is no row is listed with zeros, as NULL is in SQL: the rest of the list is good.
Result<std::vector<Row>> EtcdDriver::List(std::string_view after, int limit, Instant deadline) {
  std::vector<Row> rows;
  const auto add = [&](std::string_view tag, const Result<EtcdValue>& value) {
    rows.push_back(ToRow(tag, value.ok() ? *value : EtcdValue{}));
    return rows.size() < static_cast<std::size_t>(limit);
  };
  LEAF_RETURN_IF_ERROR(Visit(after, std::min<std::int64_t>(kPage, limit), deadline, add));
  return rows;
}

Result<std::vector<UnreadableRow>> EtcdDriver::Unreadable(int most, Instant deadline) {
  std::vector<UnreadableRow> found;
  const auto add = [&](std::string_view tag, const Result<EtcdValue>& value) {
    if (!value.ok()) found.push_back({std::string(tag), false, false, value.error().message});
    return found.size() < static_cast<std::size_t>(most);
  };
  LEAF_RETURN_IF_ERROR(Visit("", kPage, deadline, add));
  return found;
}

Result<Row> EtcdDriver::Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                               Instant deadline) {
  LEAF_RETURN_IF_ERROR(session_.Ready(deadline));
  const EtcdValue value{max_id, step};
  etcdpb::TxnRequest request;
  etcdpb::Compare* const absent = request.add_compare();
  absent->set_target(etcdpb::Compare::VERSION);
  absent->set_key(Key(tag));
  absent->set_version(0);
  AddPut(request, Key(tag), value);
  LEAF_ASSIGN_OR_RETURN(const etcdpb::TxnResponse response, session_.Txn(request, deadline));
  if (!response.succeeded()) return refusal::Exists(tag);
  memory_->Keep(tag, {response.header().revision(), value});
  return ToRow(tag, value);
}

// False: the row is not what it was.
Result<bool> EtcdDriver::Swap(std::string_view tag, const EtcdKnown& from, const EtcdValue& to,
                              Instant deadline) {
  etcdpb::TxnRequest request = IfStill(Key(tag), from);
  AddPut(request, Key(tag), to);
  memory_->Drop(tag);
  LEAF_ASSIGN_OR_RETURN(const etcdpb::TxnResponse response, session_.Txn(request, deadline));
  if (response.succeeded()) memory_->Keep(tag, {response.header().revision(), to});
  memory_->Saw(session_.revision());
  return response.succeeded();
}

Result<EtcdValue> EtcdDriver::Rewrite(std::string_view tag, const Change& change,
                                      Instant deadline) {
  LEAF_RETURN_IF_ERROR(session_.Ready(deadline));
  for (int i = 0; i < kTries; ++i) {
    LEAF_ASSIGN_OR_RETURN(const EtcdKnown known, Get(tag, deadline));
    LEAF_ASSIGN_OR_RETURN(const EtcdValue to, change(known.value));
    if (to == known.value) return to;
    LEAF_ASSIGN_OR_RETURN(const bool done, Swap(tag, known, to, deadline));
    if (done) return to;
  }
  return MovesTooFast(tag);
}

Result<Row> EtcdDriver::SetStep(std::string_view tag, std::int64_t step, Instant deadline) {
  const auto change = [&](const EtcdValue& value) -> Result<EtcdValue> {
    return EtcdValue{value.max_id, step};
  };
  LEAF_ASSIGN_OR_RETURN(const EtcdValue value, Rewrite(tag, change, deadline));
  return ToRow(tag, value);
}

// The row that is returned is the one deleted.
Result<Row> EtcdDriver::Delete(std::string_view tag, Instant deadline) {
  LEAF_RETURN_IF_ERROR(session_.Ready(deadline));
  for (int i = 0; i < kTries; ++i) {
    LEAF_ASSIGN_OR_RETURN(const EtcdKnown known, Get(tag, deadline));
    etcdpb::TxnRequest request = IfStill(Key(tag), known);
    request.add_success()->mutable_request_delete_range()->set_key(Key(tag));
    memory_->Drop(tag);
    LEAF_ASSIGN_OR_RETURN(const etcdpb::TxnResponse response, session_.Txn(request, deadline));
    if (response.succeeded()) return ToRow(tag, known.value);
  }
  return MovesTooFast(tag);
}

Result<std::int64_t> EtcdDriver::Raise(std::string_view tag, std::int64_t not_below,
                                       std::int64_t add, Instant deadline) {
  LEAF_ASSERT(add >= 0);
  const auto change = [&](const EtcdValue& value) -> Result<EtcdValue> {
    const std::int64_t from = std::max(value.max_id, not_below);
    if (from > kMaxEnd - add) return refusal::Exhausted(tag, from, add);
    return EtcdValue{from + add, value.step};
  };
  LEAF_ASSIGN_OR_RETURN(const EtcdValue value, Rewrite(tag, change, deadline));
  return value.max_id;
}

// What is remembered is our own last write. With it the comparison tells a row that has not moved
// from one that moved and came back; only without it the row is read first.
Result<bool> EtcdDriver::HandBack(std::string_view tag, Range tail, Instant deadline) {
  LEAF_ASSERT(tail.first < tail.last);
  LEAF_RETURN_IF_ERROR(session_.Ready(deadline));
  std::optional<EtcdKnown> known = memory_->Find(tag);
  if (!known || known->value.max_id != tail.last) {
    const Result<EtcdKnown> read = Get(tag, deadline);
    if (!read.ok() && read.error().code == Code::kNotFound) return false;
    if (!read.ok()) return read.error();
    known = *read;
  }
  if (known->value.max_id != tail.last) return false;
  return Swap(tag, *known, {tail.first, known->value.step}, deadline);
}

}  // namespace

Result<DriverFactory> MakeEtcdFactory(const StoreOptions& options) {
  LEAF_ASSIGN_OR_RETURN(const EtcdSettings settings,
                        ParseEtcdSettings({options.servers, options.path, options.user,
                                           options.password, options.parameters}));
  const std::string& table = options.table;
  if (table.empty() || table.find('/') != std::string::npos) {
    return Error{Code::kInvalidArgument,
                 "store.table '" + table + "' is empty or holds a slash; it is one part of a key"};
  }
  return DriverFactory([settings, keys = settings.prefix + "/" + table + "/",
                        memory = std::make_shared<EtcdMemory>()] {
    return std::make_unique<EtcdDriver>(settings, keys, memory);
  });
}

}  // namespace leaf
