// Of servers that compete for a row one wins in each round, and each that lost has the row as it is
// now and goes again at once: to wait first would leave the field to the one that won.
//
// The comparison covers the revision and the value. The revision alone would do, as long as nobody
// restores a backup: then revisions are used again, and one that we remember could come to stand
// for a row that we have never seen.

#include "store/etcd/etcd_reservation.h"

#include <etcd.pb.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/assert.h"
#include "store/refusals.h"

namespace leaf {
namespace {

constexpr int kTries = 256;  // within the deadline

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

}  // namespace

etcdpb::TxnRequest IfStill(const std::string& key, const EtcdKnown& known) {
  etcdpb::TxnRequest request;
  etcdpb::Compare* const revision = request.add_compare();
  revision->set_target(etcdpb::Compare::MOD);
  revision->set_key(key);
  revision->set_mod_revision(known.revision);
  etcdpb::Compare* const value = request.add_compare();
  value->set_target(etcdpb::Compare::VALUE);
  value->set_key(key);
  value->set_value(known.value.Text());
  request.add_failure()->mutable_request_range()->set_key(key);
  return request;
}

Result<EtcdKnown> KnownFrom(const etcdpb::RangeResponse& response, std::string_view tag) {
  if (response.kvs().empty()) return refusal::NoRow(tag);
  const etcdpb::KeyValue& row = response.kvs(0);
  LEAF_ASSIGN_OR_RETURN(const EtcdValue value, ParseEtcdValue(row.key(), row.value()));
  return EtcdKnown{row.mod_revision(), value};
}

EtcdReservation::EtcdReservation(EtcdSession& session, EtcdMemory& memory, const std::string& keys,
                                 Clock& clock)
    : session_(session), memory_(memory), keys_(keys), clock_(clock) {}

void EtcdReservation::Refuse(Flight& flight, Error error) {
  flight.grant->outcome = Outcome::kRefused;
  flight.grant->error = std::move(error);
  flight.done = true;
}

void EtcdReservation::Run(std::span<const Ask> asks, std::span<Grant> grants) {
  LEAF_ASSERT(asks.size() == grants.size());
  flights_.resize(asks.size());
  for (std::size_t i = 0; i < asks.size(); ++i) {
    LEAF_ASSERT(asks[i].count > 0);
    Flight& flight = flights_[i];
    flight.ask = &asks[i];
    flight.grant = &grants[i];
    flight.key = keys_ + std::string(asks[i].tag);
    flight.known = memory_.Find(asks[i].tag);
  }
  std::vector<EtcdCall> calls;
  std::vector<EtcdAnswer> answers;
  for (std::vector<Flight*> round = Round(); !round.empty(); round = Round()) {
    calls.clear();
    for (Flight* flight : round) calls.push_back(CallFor(*flight));
    answers.assign(round.size(), {});
    session_.Run(calls, answers);
    for (std::size_t i = 0; i < round.size(); ++i) Take(*round[i], answers[i]);
  }
}

// Who travels next: each tag once, in the order in which it was asked for.
std::vector<EtcdReservation::Flight*> EtcdReservation::Round() {
  std::vector<Flight*> round;
  std::unordered_set<std::string_view> tags;
  const Instant now = clock_.Now();
  for (Flight& flight : flights_) {
    if (flight.done) continue;
    const std::string lost = std::to_string(flight.lost);
    if (!session_.connected()) {
      Refuse(flight, Unavailable("the session ended before it was sent"));
    } else if (flight.lost >= kTries) {
      Refuse(flight, Unavailable("other servers moved tag '" + std::string(flight.ask->tag) + "' " +
                                 lost + " times meanwhile"));
    } else if (flight.ask->deadline <= now) {
      Error late = refusal::Late("etcd");
      if (flight.lost > 0) late.message += "; other servers moved the row " + lost + " times";
      Refuse(flight, std::move(late));
    } else if (tags.insert(flight.ask->tag).second) {
      round.push_back(&flight);
    }
  }
  return round;
}

EtcdCall EtcdReservation::CallFor(Flight& flight) {
  const auto refused = [&] {
    return refusal::BadRow(flight.ask->tag, flight.known->value.max_id, flight.known->value.step,
                           flight.ask->count);
  };
  // What is remembered is good enough to win with, but not to refuse by.
  flight.reads = !flight.known || (!flight.fresh && refused());
  if (flight.reads) {
    etcdpb::RangeRequest look;
    look.set_key(flight.key);
    return {kEtcdRange, look.SerializeAsString(), flight.ask->deadline};
  }
  EtcdValue value = flight.known->value;
  value.max_id += flight.ask->count;
  etcdpb::TxnRequest request = IfStill(flight.key, *flight.known);
  etcdpb::PutRequest* const put = request.add_success()->mutable_request_put();
  put->set_key(flight.key);
  put->set_value(value.Text());
  return {kEtcdTxn, request.SerializeAsString(), flight.ask->deadline};
}

void EtcdReservation::Take(Flight& flight, EtcdAnswer& answer) {
  etcdpb::RangeResponse look;
  etcdpb::TxnResponse txn;
  if (flight.reads ? session_.Read(answer, look) : session_.Read(answer, txn)) {
    if (flight.reads) {
      TakeLook(flight, look);
    } else if (txn.succeeded()) {
      Win(flight, txn.header().revision());
    } else if (txn.responses_size() == 1 && txn.responses(0).has_response_range()) {
      ++flight.lost;
      TakeLook(flight, txn.responses(0).response_range());
    } else {
      Refuse(flight, Unavailable("etcd's answer does not say what the row is"));
    }
    return;
  }
  // A look that got lost has moved nothing.
  memory_.Drop(flight.ask->tag);
  Refuse(flight, std::move(answer.error));
  if (!flight.reads && answer.end == EtcdAnswer::End::kUnknown)
    flight.grant->outcome = Outcome::kUnknown;
}

void EtcdReservation::TakeLook(Flight& flight, const etcdpb::RangeResponse& response) {
  Result<EtcdKnown> known = KnownFrom(response, flight.ask->tag);
  std::optional<Error> bad;
  if (!known.ok()) {
    bad = known.error();
  } else {
    bad =
        refusal::BadRow(flight.ask->tag, known->value.max_id, known->value.step, flight.ask->count);
  }
  if (bad) {
    memory_.Drop(flight.ask->tag);
    Refuse(flight, std::move(*bad));
    return;
  }
  flight.known = *known;
  flight.fresh = true;
}

void EtcdReservation::Win(Flight& flight, std::int64_t revision) {
  EtcdKnown now{revision, flight.known->value};
  Grant& grant = *flight.grant;
  grant.range.first = now.value.max_id;
  now.value.max_id += flight.ask->count;
  grant.range.last = now.value.max_id;
  grant.row_step = now.value.step;
  grant.outcome = Outcome::kGranted;
  flight.done = true;
  memory_.Keep(flight.ask->tag, now);
  // A later ask of this batch for the same tag goes on from here.
  for (Flight& other : flights_) {
    if (!other.done && other.ask->tag == flight.ask->tag) {
      other.known = now;
      other.fresh = false;
    }
  }
}

}  // namespace leaf
