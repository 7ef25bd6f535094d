#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/segment/segment_store.h"
#include "store/etcd/etcd_memory.h"
#include "store/etcd/etcd_session.h"

namespace leaf {

namespace etcdpb {
class RangeResponse;
class RequestOp;
class TxnRequest;
}  // namespace etcdpb

/// A transaction that holds if `key` is still as it was seen, and otherwise says what it is now.
/// What it does if it holds is still to be added.
etcdpb::TxnRequest IfStill(const std::string& key, const EtcdKnown& known);

/// The one key of `response`; kNotFound (in `tag`'s name) if there is none, kUnavailable if its
/// value is no row.
Result<EtcdKnown> KnownFrom(const etcdpb::RangeResponse& response, std::string_view tag);

/// Answers a batch of asks over one session: in each round every tag that is not done yet travels
/// once, all of them together. A tag not seen before is looked at first; one that others moved
/// meanwhile goes again, with what it is now. Confined to one thread; lives as long as the call.
class EtcdReservation {
 public:
  /// `keys` is "PREFIX/TABLE/". All outlive this. REQUIRES: equal sizes; the session is ready.
  EtcdReservation(EtcdSession& session, EtcdMemory& memory, const std::string& keys, Clock& clock);

  void Run(std::span<const Ask> asks, std::span<Grant> grants);

 private:
  struct Flight {
    const Ask* ask = nullptr;
    Grant* grant = nullptr;
    std::string key;
    std::optional<EtcdKnown> known;
    bool fresh = false;  ///< `known` was read for this ask, and not remembered
    bool reads = false;  ///< the call under way only reads
    int lost = 0;        ///< how often others were faster
    bool done = false;
  };

  std::vector<Flight*> Round();
  EtcdCall CallFor(Flight& flight);
  void Take(Flight& flight, EtcdAnswer& answer);
  void TakeLook(Flight& flight, const etcdpb::RangeResponse& response);
  void Win(Flight& flight, std::int64_t revision);
  static void Refuse(Flight& flight, Error error);

  EtcdSession& session_;
  EtcdMemory& memory_;
  const std::string& keys_;
  Clock& clock_;
  std::vector<Flight> flights_;
};

}  // namespace leaf
