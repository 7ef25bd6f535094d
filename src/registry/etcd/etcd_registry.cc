#include "registry/etcd/etcd_registry.h"

#include <etcd.pb.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "registry/etcd/worker_value.h"
#include "registry/row_registry.h"
#include "store/etcd/etcd_session.h"
#include "store/etcd/etcd_settings.h"
#include "store/etcd/etcd_value.h"
#include "store/refusals.h"

namespace leaf {
namespace {

constexpr std::int64_t kPage = 1000;

/// The number at the end of a worker's key; nullopt: that is none.
std::optional<std::int64_t> WorkerOf(std::string_view text) {
  std::int64_t worker = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, worker);
  if (error != std::errc() || end != last || worker < 0 || std::to_string(worker) != text)
    return std::nullopt;
  return worker;
}

class EtcdRegistry final : public RowRegistry {
 public:
  EtcdRegistry(const EtcdSettings& settings, std::string where, std::string keys,
               Durability demanded)
      : where_(std::move(where)),
        keys_(std::move(keys)),
        demanded_(demanded),
        session_(settings, keys_, SystemClock()) {}

  Result<void> Open(Instant deadline, std::vector<std::string>& warnings) override;
  bool connected() const noexcept override { return session_.connected(); }
  void Close() noexcept override { session_.Close(); }
  void Interrupt() noexcept override { session_.Interrupt(); }

 protected:
  Result<Snapshot> Read(std::optional<std::int64_t> worker, Instant deadline) override;
  Result<bool> Insert(const WorkerRow& row, Instant deadline) override;
  Result<bool> Replace(const WorkerRecord& from, const WorkerRow& to, Instant deadline) override;
  std::string Where() const override { return where_; }

 private:
  /// A row as read last, with the revision of its key.
  struct Seen {
    WorkerRecord record;
    std::int64_t revision = 0;
  };

  std::string Key(std::int64_t worker) const { return keys_ + std::to_string(worker); }
  Result<void> Ready(Instant deadline);
  Result<void> Take(const etcdpb::RangeResponse& response, Snapshot& to);
  Result<bool> Write(std::int64_t revision, const WorkerRow& row, Instant deadline);

  const std::string where_;
  const std::string keys_;  ///< "PREFIX/worker/CLUSTER/"
  const Durability demanded_;
  EtcdSession session_;
  std::map<std::int64_t, Seen> seen_;
};

Result<void> EtcdRegistry::Open(Instant deadline, std::vector<std::string>& warnings) {
  seen_.clear();
  LEAF_ASSIGN_OR_RETURN(EtcdSession::Facts facts, session_.Open(deadline));
  for (std::string& warning : facts.warnings) warnings.push_back(std::move(warning));
  if (facts.durability >= demanded_) return {};
  Close();
  return refusal::TooWeak("etcd", facts.durability, demanded_);
}

// What fails here was not sent; a connection that the member closed meanwhile is opened again.
Result<void> EtcdRegistry::Ready(Instant deadline) {
  const Result<void> ready = session_.Ready(deadline);
  if (ready.ok() || SystemClock().Now() >= deadline) return ready;
  std::vector<std::string> known;
  return Open(deadline, known);
}

Result<RowRegistry::Snapshot> EtcdRegistry::Read(std::optional<std::int64_t> worker,
                                                 Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  Snapshot snapshot;
  seen_.clear();
  std::string from = worker ? Key(*worker) : keys_;
  for (bool more = true; more;) {
    etcdpb::RangeRequest request;
    request.set_key(from);
    if (!worker) request.set_range_end(PrefixEnd(keys_));
    request.set_limit(kPage);
    LEAF_ASSIGN_OR_RETURN(const etcdpb::RangeResponse response, session_.Range(request, deadline));
    LEAF_RETURN_IF_ERROR(Take(response, snapshot));
    more = response.more() && !response.kvs().empty();
    if (more) from = response.kvs().rbegin()->key() + '\0';
  }
  std::sort(snapshot.rows.begin(), snapshot.rows.end(), [](const WorkerRow& a, const WorkerRow& b) {
    return a.record.worker < b.record.worker;
  });
  return snapshot;
}

Result<void> EtcdRegistry::Take(const etcdpb::RangeResponse& response, Snapshot& to) {
  for (const etcdpb::KeyValue& row : response.kvs()) {
    const auto worker = WorkerOf(std::string_view(row.key()).substr(keys_.size()));
    if (!worker) {
      return Error{Code::kUnavailable, Where() + ": the key " + ShownBytes(row.key()) +
                                           " is none of a worker, and nothing else belongs there; "
                                           "remove it (etcdctl del)"};
    }
    Result<WorkerRow> read = ParseWorker(row.key(), *worker, row.value());
    if (!read.ok()) {
      return Error{Code::kUnavailable, Where() + ": the row of worker " + std::to_string(*worker) +
                                           " is broken: " + read.error().message};
    }
    LEAF_RETURN_IF_ERROR(CheckRow(read->record, Where()));
    seen_[*worker] = {read->record, row.mod_revision()};
    to.rows.push_back(std::move(*read));
  }
  return {};
}

// A key that does not exist has the revision 0.
Result<bool> EtcdRegistry::Write(std::int64_t revision, const WorkerRow& row, Instant deadline) {
  LEAF_RETURN_IF_ERROR(Ready(deadline));
  LEAF_RETURN_IF_ERROR(session_.Look(deadline));
  const std::string key = Key(row.record.worker);
  etcdpb::TxnRequest request;
  etcdpb::Compare* const same = request.add_compare();
  same->set_target(etcdpb::Compare::MOD);
  same->set_key(key);
  same->set_mod_revision(revision);
  etcdpb::PutRequest* const put = request.add_success()->mutable_request_put();
  put->set_key(key);
  put->set_value(WorkerText(row));
  LEAF_ASSIGN_OR_RETURN(const etcdpb::TxnResponse response, session_.Txn(request, deadline));
  return response.succeeded();
}

Result<bool> EtcdRegistry::Insert(const WorkerRow& row, Instant deadline) {
  return Write(0, row, deadline);
}

// The comparison is with the revision of the key when `from` was read: that covers the whole row.
Result<bool> EtcdRegistry::Replace(const WorkerRecord& from, const WorkerRow& to,
                                   Instant deadline) {
  const auto at = seen_.find(from.worker);
  if (at == seen_.end()) return false;
  const auto& [record, revision] = at->second;
  if (record.owner != from.owner || record.generation != from.generation ||
      record.limit_ms != from.limit_ms)
    return false;
  return Write(revision, to, deadline);
}

}  // namespace

Result<RegistryFactory> MakeEtcdRegistry(const RegistryOptions& options, Durability demanded) {
  LEAF_ASSIGN_OR_RETURN(EtcdSettings settings,
                        ParseEtcdSettings({options.servers, options.chroot, options.user,
                                           options.password, options.parameters}));
  if (options.cluster.empty() || options.cluster.find('/') != std::string::npos) {
    return Error{Code::kInvalidArgument,
                 "snowflake.name '" + options.cluster + "' is empty or holds a slash"};
  }
  std::string keys = settings.prefix + "/worker/" + options.cluster + "/";
  std::string where = "etcd " + options.servers + ", keys " + ShownBytes(keys);
  return RegistryFactory([settings = std::move(settings), where = std::move(where),
                          keys = std::move(keys), demanded]() -> std::unique_ptr<RegistryDriver> {
    return std::make_unique<EtcdRegistry>(settings, where, keys, demanded);
  });
}

}  // namespace leaf
