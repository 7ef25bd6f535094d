#include <algorithm>
#include <utility>

#include "store_model.h"

// A call leaves the process, reaches the table or not, and its answer reaches the process in time,
// late, as "unknown", or never. Events at the table belong to the world, so that a statement
// outlives the process that sent it; answers belong to the process.

namespace leaf::sim {
namespace {

constexpr Duration kLongest = std::chrono::seconds(5);  // of calls that name no deadline
constexpr const char* kAway = "the store is away";
constexpr const char* kNoAnswer = "no answer from the store";

}  // namespace

Instant StorePort::OfWorld(Instant deadline) const {
  return deadline == kNever ? world_.now() + kLongest : deadline - origin_;
}

Duration StorePort::Latency() {
  return model_.random().Between(model_.setup().latency_min, model_.setup().latency_max);
}

StorePort::Fate StorePort::Draw(int tag) {
  SimRandom& random = model_.random();
  if (model_.outage() == Outage::kRefusing) return Fate::kRefused;
  if (model_.outage() == Outage::kHanging) return Fate::kLost;
  if (!random.Chance(model_.setup().faults)) return Fate::kNormal;
  model_.Fault(tag);
  constexpr Fate kFates[] = {Fate::kRefused, Fate::kLost, Fate::kAnswerLost, Fate::kAnswerLost,
                             Fate::kLate};
  return random.OneOf(kFates);
}

void StorePort::Send(std::shared_ptr<Call> call, Fate fate, Duration latency) {
  if (fate == Fate::kRefused) {
    world_.After(latency, server_, [call] { call->fail(Outcome::kRefused, kAway); });
    return;
  }
  if (fate == Fate::kLost) {
    GiveUp(call);
    return;
  }
  if (fate == Fate::kLate) {  // abandoned on the way, and comes into force after all
    latency = std::max(Duration{}, call->deadline - world_.now()) +
              model_.random().Between(Duration(1), std::chrono::seconds(6));
  }
  world_.After(latency, kWorld, [this, call, fate] { Execute(call, fate); });
  if (fate == Fate::kLate && model_.random().Chance(0.5)) GiveUp(call);
}

// The store said nothing: the driver reports "unknown" when it interrupts the call, or nothing at
// all.
void StorePort::GiveUp(const std::shared_ptr<Call>& call) {
  if (dead_) return;
  if (model_.random().Chance(0.5)) {
    world_.Note(What::kSilence, server_, call->tag);
    call->fail = nullptr;
    return;
  }
  const Duration delay = model_.random().Between(Duration{}, std::chrono::milliseconds(5));
  world_.At(call->deadline + delay, server_, [call] {
    if (call->fail) std::exchange(call->fail, nullptr)(Outcome::kUnknown, kNoAnswer);
  });
  call->answer = nullptr;
}

void StorePort::Execute(const std::shared_ptr<Call>& call, Fate fate) {
  if (model_.outage() != Outage::kNone) {
    model_.Fault(call->tag);
    if (fate != Fate::kLate) GiveUp(call);
    return;
  }
  if (call->tag >= 0 && model_.locked_until(call->tag) > world_.now()) {
    WaitForLock(call);
    return;
  }
  call->execute();
  if (dead_) return;
  if (fate == Fate::kAnswerLost) {
    GiveUp(call);
    return;
  }
  world_.After(Latency(), server_, [this, call] {
    if (call->answer && model_.outage() == Outage::kNone) {
      call->answer();
    } else if (call->answer) {
      model_.Fault(call->tag);
      GiveUp(call);
    }
  });
}

void StorePort::WaitForLock(const std::shared_ptr<Call>& call) {
  if (!dead_) model_.Fault(call->tag);
  const Instant opens = model_.locked_until(call->tag);
  if (model_.setup().statement_timeout && opens > call->deadline) {
    if (dead_) return;
    const Outcome outcome = model_.random().Chance(0.5) ? Outcome::kRefused : Outcome::kUnknown;
    world_.At(call->deadline, server_, [call, outcome] {
      if (call->fail) call->fail(outcome, "lock wait timeout");
    });
    return;
  }
  world_.At(opens, kWorld, [this, call] { Execute(call, Fate::kLate); });
  if (opens > call->deadline && model_.random().Chance(0.7)) GiveUp(call);
}

template <typename T>
void StorePort::Submit(int tag, Instant deadline, std::function<Result<T>()> statement,
                       Done<T> done) {
  if (dead_) return;
  ++calls_;
  auto call = std::make_shared<Call>();
  auto result = std::make_shared<std::optional<Result<T>>>();
  call->tag = tag;
  call->deadline = OfWorld(deadline);
  call->execute = [result, statement = std::move(statement)] { result->emplace(statement()); };
  call->answer = [result, done] { done(std::move(**result)); };
  call->fail = [done = std::move(done)](Outcome, const char* why) {
    done(Error{Code::kUnavailable, why});
  };
  Send(std::move(call), Draw(tag), Latency());
}

void StorePort::Reserve(std::span<const Ask> asks, GrantSink& sink) {
  if (dead_) return;
  Fate fate = Draw(-1);
  Duration latency = Latency();
  for (const Ask& ask : asks) {
    ++calls_;
    const std::string tag(ask.tag);
    if (!model_.setup().batches) {
      fate = Draw(TagIndex(tag));
      latency = Latency();
    }
    world_.Note(What::kAsk, server_, TagIndex(tag), static_cast<std::int64_t>(ask.flight),
                ask.count);
    observer_.OnAsk(ask);
    auto call = std::make_shared<Call>();
    auto grant = std::make_shared<Grant>();
    call->tag = TagIndex(tag);
    call->deadline = OfWorld(ask.deadline);
    const auto deliver = [this, &sink, flight = ask.flight](Grant what) {
      what.flight = flight;
      observer_.Deliver(sink, what);
    };
    call->execute = [this, grant, tag, count = ask.count] {
      *grant = model_.Reserve(server_, tag, count);
      grant->store_turn = static_cast<std::uint32_t>(model_.turn() - first_turn_);
    };
    call->answer = [grant, deliver] { deliver(*grant); };
    call->fail = [deliver](Outcome outcome, const char* why) {
      deliver({.flight = 0,
               .outcome = outcome,
               .error = {Code::kUnavailable, why},
               .range = {},
               .row_step = {}});
    };
    if (fate == Fate::kRefused && model_.setup().inline_refusals) {
      call->fail(Outcome::kRefused, kAway);
    } else {
      Send(std::move(call), fate, latency);
    }
  }
}

void StorePort::Find(std::string tag, Instant deadline, Done<std::optional<Row>> done) {
  const int index = TagIndex(tag);
  Submit<std::optional<Row>>(
      -1, deadline,
      [this, tag = std::move(tag)]() -> Result<std::optional<Row>> {
        const StoreModel::TableRow* row = model_.Find(tag);
        if (row == nullptr) return std::optional<Row>{};
        return std::optional(Row{tag, row->max_id, row->step, ""});
      },
      [this, index, done = std::move(done)](Result<std::optional<Row>> row) {
        world_.Note(row.ok() ? What::kGrant : What::kUnknown, server_, index,
                    row.ok() && *row ? (*row)->max_id : -1);
        done(std::move(row));
      });
}

void StorePort::List(std::string after, int limit, Instant deadline, Done<std::vector<Row>> done) {
  Submit<std::vector<Row>>(
      -1, deadline,
      [this, after = std::move(after), limit]() -> Result<std::vector<Row>> {
        std::vector<Row> rows;
        for (auto at = model_.table().upper_bound(after);
             at != model_.table().end() && static_cast<int>(rows.size()) < limit; ++at) {
          rows.push_back({at->first, at->second.max_id, at->second.step, ""});
        }
        return rows;
      },
      std::move(done));
}

void StorePort::Create(std::string tag, std::int64_t step, std::int64_t max_id, Instant deadline,
                       Done<Row> done) {
  const int index = TagIndex(tag);
  Submit<Row>(
      index, deadline,
      [this, tag = std::move(tag), step, max_id] {
        return model_.Create(server_, tag, step, max_id);
      },
      std::move(done));
}

void StorePort::SetStep(std::string tag, std::int64_t step, Instant deadline, Done<Row> done) {
  const int index = TagIndex(tag);
  Submit<Row>(
      index, deadline, [this, tag = std::move(tag), step] { return model_.SetStep(tag, step); },
      std::move(done));
}

void StorePort::Delete(std::string tag, Instant deadline, Done<Row> done) {
  const int index = TagIndex(tag);
  Submit<Row>(
      index, deadline, [this, tag = std::move(tag)] { return model_.Delete(tag); },
      std::move(done));
}

void StorePort::Raise(std::string tag, std::int64_t not_below, std::int64_t add, Instant deadline,
                      Done<std::int64_t> done) {
  const int index = TagIndex(tag);
  Submit<std::int64_t>(
      index, deadline,
      [this, tag = std::move(tag), not_below, add] {
        return model_.Raise(server_, tag, not_below, add);
      },
      std::move(done));
}

void StorePort::HandBack(std::string tag, Range tail, std::uint64_t store_id, Instant deadline,
                         Done<bool> done) {
  const int index = TagIndex(tag);
  if (model_.setup().mutant == Mutant::kRetryHandBack) {
    const Duration later =
        model_.random().Between(std::chrono::milliseconds(1), std::chrono::seconds(3));
    world_.After(later, kWorld, [this, tag, tail] { model_.HandBack(server_, tag, tail); });
  }
  Submit<bool>(
      index, deadline,
      [this, tag = std::move(tag), tail, store_id]() -> Result<bool> {
        if (store_id != model_.identity()) return Error{Code::kConflict, "another store"};
        return model_.HandBack(server_, tag, tail);
      },
      std::move(done));
}

StoreStatus StorePort::Status() const {
  StoreStatus status;
  status.kind = "model";
  status.up = model_.outage() == Outage::kNone;
  status.durability = Durability::kReplicated;
  status.identity = "model";
  status.calls = calls_;
  return status;
}

}  // namespace leaf::sim
