#include "sim_process.h"

#include <algorithm>
#include <utility>

namespace leaf::sim {
namespace {

constexpr Duration kFlush = std::chrono::seconds(1);
constexpr Duration kSlack = std::chrono::milliseconds(2);
constexpr int kSpinLimit = 100;
constexpr std::size_t kServedKept = 50;

}  // namespace

class Process::Request final : public Waiter {
 public:
  Request(Process& process, Executor& executor, std::uint64_t number, const Wish& what, Instant at)
      : Waiter(executor), owner(process), id(number), wish(what), arrived(at) {
    count = wish.count;
    one_piece = wish.one_piece;
  }
  void Run() override { owner.Ended(*this); }

  Process& owner;
  const std::uint64_t id;
  const Wish wish;
  const Instant arrived;  // of the world
  std::int64_t floor = -1;
  std::uint64_t order = 0;  // of parking; 0: was not parked
  bool gone = false;        // its client has left
};

Process::Process(SimServer& server, SimRandom random)
    : server_(server),
      world_(server.world_),
      store_(server.store_),
      checker_(server.checker_),
      setup_(server.setup_),
      random_(random),
      index_(server.index_),
      clock_(server.world_, random_.Between(Duration{}, std::chrono::hours(1000))),
      engine_random_(random_.Next()),
      policy_(setup_.leaf_policy ? MakeLeafPolicy() : MakeFixedPolicy()),
      port_(std::make_unique<StorePort>(world_, store_, *this, index_, clock_.origin())),
      per_tag_(static_cast<std::size_t>(server.tags_)),
      started_(world_.now()) {
  engine_ = std::make_unique<Engine>(setup_.options, *port_, server.journal_, *policy_, clock_,
                                     engine_random_);
  for (int i = 0; i < setup_.readers; ++i) {
    homes_.push_back(
        std::make_unique<SimExecutor>(world_, random_.Fork(7), index_, setup_.post_late));
    readers_.push_back(engine_->AddReader());
    online_.push_back(false);
  }
}

Process::~Process() {
  for (auto& [id, request] : requests_) (void)engine_->Cancel(*request);
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    if (online_[i]) readers_[i]->Offline();
  }
  readers_.clear();
  engine_.reset();
}

void Process::Begin() {
  engine_->SetWake([this] { ScheduleTick(world_.now()); });
  const Result<void> loaded = engine_->Load();
  if (!loaded.ok()) checker_.Fail(Rule::kAnswer, "Load: " + loaded.error().message);
  ScheduleTick(world_.now());
  world_.After(kFlush, index_, [this] { FlushJournal(); });
}

void Process::FlushJournal() {
  server_.journal_.Flush();
  world_.After(kFlush, index_, [this] { FlushJournal(); });
}

// Tick, as a server's timer would call it: when it is due, at times late.

void Process::ScheduleTick(Instant at) {
  if (dead_ || at >= tick_at_) return;
  tick_at_ = at;
  const Instant planned = at == kNever ? at : at + random_.Between(Duration{}, setup_.tick_late);
  world_.At(planned, index_, [this, number = ++tick_number_] {
    if (number == tick_number_) Tick();
  });
}

void Process::Tick() {
  tick_at_ = kNever;
  const Instant due = engine_->Tick(clock_.Now());
  if (due == kNever) return;
  const Instant next = due - clock_.origin();
  idle_ticks_ = next <= world_.now() ? idle_ticks_ + 1 : 0;
  if (idle_ticks_ == kSpinLimit) checker_.Fail(Rule::kSpin, "Tick is always due again at once");
  ScheduleTick(std::max(next, world_.now() + std::chrono::microseconds(1)));
}

// Where flights are fewer than tags, the trouble of one tag is that of all.
Instant Process::HealthySince(int tag) const {
  Instant since = std::max({store_.HealthySince(tag), started_, resumed_});
  if (setup_.options.max_flights >= server_.tags_) return since;
  for (int other = 0; other < server_.tags_; ++other) {
    since = std::max(since, store_.HealthySince(other));
  }
  return since;
}

void Process::Take(const Wish& wish) {
  const auto at = static_cast<std::size_t>(random_.Below(readers_.size()));
  const std::uint64_t id = ++next_request_;
  auto owned = std::make_unique<Request>(*this, *homes_[at], id, wish, world_.now());
  Request& request = *owned;
  request.floor = checker_.Floor(index_, wish.tag);
  requests_.emplace(id, std::move(owned));
  ++server_.stats_.requests;
  world_.Note(What::kTake, index_, wish.tag, wish.count, wish.one_piece);

  Reader& reader = *readers_[at];
  if (!online_[at]) reader.Online();
  online_[at] = true;
  const std::string name = TagName(wish.tag);
  Tag* tag = engine_->Find(reader, name);
  Range range;
  if (tag != nullptr && engine_->TryTake(reader, *tag, wish.count, range)) {
    Ranges ids;
    ids.at[0] = range;
    ids.size = 1;
    Took(request, ids);
    Forget(id);
  } else {
    Result<Ranges> result = Ranges{};
    request.order = ++order_;
    if (engine_->TakeOrPark(name, request, clock_.Now(), result)) {
      request.order = 0;
      request.result = std::move(result);
      Ended(request);
    } else {
      ++server_.stats_.parked;
      world_.Note(What::kPark, index_, wish.tag, static_cast<std::int64_t>(request.order));
      WatchDeadline(id, world_.now() + setup_.options.wait);
      if (wish.leaves_after != Duration::max()) {
        world_.After(wish.leaves_after, index_, [this, id] { Leave(id); });
      }
    }
  }
  reader.Quiesce();
  if (random_.Chance(0.2)) {
    reader.Offline();
    online_[at] = false;
  }
}

// I5. The event that looks is itself put off while the server is paused.
void Process::WatchDeadline(std::uint64_t id, Instant due) {
  const Duration late = setup_.tick_late + setup_.post_late + kSlack;
  world_.At(due + late, index_, [this, id, due, late] {
    const auto at = requests_.find(id);
    if (at == requests_.end()) return;
    if (resumed_ > due && world_.now() < resumed_ + late) {
      WatchDeadline(id, resumed_);
      return;
    }
    checker_.Fail(Rule::kDeadline, "t" + std::to_string(at->second->wish.tag) + " server " +
                                       std::to_string(index_) + " request " + std::to_string(id) +
                                       " has not ended");
  });
}

void Process::Leave(std::uint64_t id) {
  const auto at = requests_.find(id);
  if (at == requests_.end()) return;
  Request& request = *at->second;
  request.gone = true;
  if (engine_->Cancel(request)) {
    ++server_.stats_.cancelled;
    world_.Note(What::kCancel, index_, request.wish.tag, static_cast<std::int64_t>(request.order));
    Forget(id);
  }
}

void Process::Forget(std::uint64_t id) { requests_.erase(id); }

void Process::Ended(Request& request) {
  if (request.result.ok()) {
    const Ranges& ids = *request.result;
    if (ids.count() != request.count || (request.one_piece && ids.size != 1)) {
      checker_.Fail(Rule::kAnswer, "t" + std::to_string(request.wish.tag) + " " +
                                       std::to_string(ids.count()) + " ids in " +
                                       std::to_string(ids.size) + " pieces for " +
                                       std::to_string(request.count));
    }
    if (request.order != 0) CheckQueueOrder(request, ids);
    Took(request, ids);
  } else {
    Refused(request, request.result.error());
  }
  Forget(request.id);
}

void Process::Took(Request& request, const Ranges& ids) {
  const int tag = request.wish.tag;
  world_.Note(What::kTaken, index_, tag, ids.at[0].first, ids.count());
  checker_.Issued(index_, tag, ids);
  Of(tag).issued += ids.count();
  CheckPresence(request);
  if (request.gone || random_.Chance(0.02)) {
    engine_->Abandon(TagName(tag), ids);
    ++server_.stats_.abandoned;
    world_.Note(What::kAbandon, index_, tag, ids.at[0].first, ids.count());
    return;
  }
  ++server_.stats_.served;
  server_.last_served_[static_cast<std::size_t>(tag)] = world_.now();
  world_.After(
      random_.Between(Duration{}, setup_.answer_late), index_,
      [this, tag, ids, floor = request.floor] { checker_.Answered(index_, tag, ids, floor); });
}

// A tag that was deleted is served for two passes over the list at most.
void Process::CheckPresence(const Request& request) {
  const int tag = request.wish.tag;
  const Instant gone = store_.AbsentSince(tag);
  if (gone == kNever) return;
  const Instant from = std::max(gone, HealthySince(tag));
  const Duration allowed = 2 * setup_.options.refresh + setup_.options.store_timeout +
                           setup_.options.backoff_max + std::chrono::seconds(1);
  if (request.arrived > from + allowed) {
    checker_.Fail(Rule::kAnswer,
                  "t" + std::to_string(tag) + " is served long after it was deleted");
  }
}

// Parked requests are served in the order in which they were parked. Only one that wants less may
// go before: a grant may be too small for the one and large enough for the other.
void Process::CheckQueueOrder(const Request& request, const Ranges& ids) {
  std::deque<Served>& served = Of(request.wish.tag).served;
  const Served mine{request.order, request.count, request.one_piece, ids.at[0].first};
  for (const Served& other : served) {
    const Served& early = other.order < mine.order ? other : mine;
    const Served& late = other.order < mine.order ? mine : other;
    const bool fits = early.count <= late.count && (!early.one_piece || late.one_piece);
    if (fits && early.first > late.first) {
      checker_.Fail(Rule::kQueue,
                    "t" + std::to_string(request.wish.tag) +
                        " waiters were served out of order: " + std::to_string(late.first) +
                        " went to a later one than " + std::to_string(early.first));
    }
  }
  served.push_back(mine);
  if (served.size() > kServedKept) served.pop_front();
}

void Process::Refused(Request& request, const Error& error) {
  const int tag = request.wish.tag;
  ++server_.stats_.failed;
  world_.Note(What::kFailed, index_, tag, static_cast<std::int64_t>(error.code));
  const EngineOptions& options = setup_.options;
  const Duration memory =
      2 * options.refresh + options.negative_ttl + options.wait + std::chrono::seconds(2);
  const bool present = store_.AbsentSince(tag) == kNever;
  const std::string what = "t" + std::to_string(tag) + " server " + std::to_string(index_) + ": ";
  switch (error.code) {
    case Code::kUnavailable: {
      const Duration settle =
          options.backoff_max + 2 * options.store_timeout + std::chrono::milliseconds(500);
      if (!stopping_ && HealthySince(tag) + settle < request.arrived) {
        checker_.Fail(Rule::kProgress,
                      what + "unavailable though nothing is wrong: " + error.message);
      }
      return;
    }
    case Code::kNotFound:
      if (present && world_.now() > std::max(store_.LastAbsent(tag), resumed_) + memory &&
          HealthySince(tag) + memory < world_.now()) {
        checker_.Fail(Rule::kAnswer, what + "not found though it is there");
      }
      return;
    case Code::kRegressed:
      if (!checker_.may_stop(tag)) checker_.Fail(Rule::kFalseStop, what + error.message);
      return;
    case Code::kExhausted: {
      const StoreModel::TableRow* row = store_.Find(TagName(tag));
      if (row != nullptr && row->max_id < kMaxEnd - 1'000'000'000) {
        checker_.Fail(Rule::kAnswer, what + "exhausted far from the end");
      }
      return;
    }
    case Code::kOverloaded:
      return;  // bounds are small on purpose
    case Code::kInvalidArgument:
    case Code::kUnauthenticated:
    case Code::kPermissionDenied:
    case Code::kConflict:
    case Code::kDisabled:
    case Code::kInternal:
      checker_.Fail(Rule::kAnswer, what + std::string(CodeName(error.code)) + ": " + error.message);
  }
}

// Flights.

void Process::OnAsk(const Ask& ask) {
  const int tag = TagIndex(ask.tag);
  ++server_.stats_.asks;
  std::int64_t parked = 0;
  for (const auto& [id, request] : requests_) {
    if (request->wish.tag == tag && request->order != 0) parked += request->count;
  }
  PerTag& state = Of(tag);
  state.largest_parked = std::max(state.largest_parked, parked);
  // A flight is given up when its tag is dropped, or was away for a while; then another may start.
  const Duration memory = 2 * setup_.options.refresh + setup_.options.store_timeout;
  const bool was_away =
      store_.AbsentSince(tag) != kNever || store_.LastAbsent(tag) + memory > world_.now();
  for (const auto& [flight, flying] : flying_) {
    if (flying.tag == tag && !flying.given_up && !was_away && flying.deadline > clock_.Now()) {
      checker_.Fail(Rule::kAccount, "t" + std::to_string(tag) + " two flights at once");
    }
  }
  GivesUp(tag);  // whatever flew before
  std::erase_if(flying_, [this](const auto& each) {
    return each.second.deadline + std::chrono::seconds(30) < clock_.Now();
  });
  flying_[ask.flight] = {tag, ask.count, ++order_, ask.deadline, ask.count >= parked, false};
}

void Process::Deliver(GrantSink& sink, const Grant& grant) {
  const auto at = flying_.find(grant.flight);
  if (at == flying_.end()) return;
  const Flying flying = at->second;
  flying_.erase(at);
  const std::uint64_t stale = engine_->Sum().stale_grants;
  const auto thrown_away = [&](Discard reason) {
    const auto view = engine_->View(TagName(flying.tag));
    return view ? view->discarded[static_cast<std::size_t>(reason)] : 0;
  };
  const std::uint64_t burnt = thrown_away(Discard::kBurnt);
  const std::uint64_t moved = thrown_away(Discard::kFailover);
  const What what = grant.outcome == Outcome::kGranted   ? What::kGrant
                    : grant.outcome == Outcome::kRefused ? What::kRefused
                                                         : What::kUnknown;
  world_.Note(what, index_, flying.tag, grant.range.first, grant.range.last);
  sink.OnGrant(grant);
  if (engine_->Sum().stale_grants != stale) {
    ++server_.stats_.stale;
    world_.Note(What::kStale, index_, flying.tag);
    return;
  }
  if (grant.outcome != Outcome::kGranted) return;
  if (thrown_away(Discard::kBurnt) != burnt) return;  // of a store that is left
  ++server_.stats_.grants;
  Of(flying.tag).accepted += grant.range.size();
  const bool shows_only = thrown_away(Discard::kFailover) != moved;
  Of(flying.tag).store_id = shows_only ? 0 : grant.store_id;
  if (shows_only) {
    ++server_.stats_.moves;  // it only showed where the row is
  } else {
    CheckNobodyPassedOver(flying);
  }
}

void Process::GivesUp(int tag) {
  for (auto& [flight, flying] : flying_) {
    if (flying.tag == tag) flying.given_up = true;
  }
}

// A grant is for those first who waited when it was asked for.
void Process::CheckNobodyPassedOver(const Flying& flying) {
  if (!flying.for_all) return;  // the row had not enough left
  for (const auto& [id, request] : requests_) {
    const bool waited =
        request->wish.tag == flying.tag && request->order != 0 && request->order < flying.order;
    if (waited && request->parking.place.load() != nullptr) {
      checker_.Fail(Rule::kQueue, "t" + std::to_string(flying.tag) + " request " +
                                      std::to_string(id) +
                                      " is still parked after the grant that was asked for it");
    }
  }
}

// I4.
void Process::CheckLoss() {
  for (int tag = 0; tag < server_.tags_; ++tag) {
    const std::optional<TagView> view = engine_->View(TagName(tag));
    if (!view) continue;
    std::int64_t at_stake = view->remaining;
    for (const auto& [flight, flying] : flying_) {
      const bool counts = !flying.given_up && flying.deadline > clock_.Now();
      if (flying.tag == tag && counts) at_stake += flying.count;
    }
    const PerTag& state = Of(tag);
    const std::int64_t allowed =
        std::max(setup_.options.waste, 2 * store_.LargestStep(tag)) + 2 * state.largest_parked;
    if (at_stake > allowed) {
      checker_.Fail(Rule::kLoss, "t" + std::to_string(tag) + " a crash loses " +
                                     std::to_string(at_stake) + " ids, allowed are " +
                                     std::to_string(allowed));
    }
  }
}

void Process::CheckAccounts() {
  for (int tag = 0; tag < server_.tags_; ++tag) {
    const std::optional<TagView> view = engine_->View(TagName(tag));
    if (!view) continue;
    std::int64_t discarded = 0;
    for (const Discard reason : {Discard::kSkipped, Discard::kDeleted, Discard::kDropped,
                                 Discard::kRegressed, Discard::kFailover}) {
      discarded += static_cast<std::int64_t>(view->discarded[static_cast<std::size_t>(reason)]);
    }
    std::int64_t on_their_way = 0;  // posted, and not run yet
    for (const auto& [id, request] : requests_) {
      const bool posted = request->order != 0 && request->parking.place.load() == nullptr;
      if (posted && request->wish.tag == tag && request->result.ok())
        on_their_way += request->count;
    }
    const std::int64_t explained = Of(tag).issued + on_their_way + view->remaining + discarded;
    if (explained != Of(tag).accepted) {
      checker_.Fail(Rule::kAccount, "t" + std::to_string(tag) + " server " +
                                        std::to_string(index_) + " leased " +
                                        std::to_string(Of(tag).accepted) + " ids, explains " +
                                        std::to_string(explained));
    }
  }
}

// The clean stop.

std::vector<Process::Owed> Process::WhatStopOwes() {
  std::vector<Owed> owed;
  for (int tag = 0; tag < server_.tags_; ++tag) {
    const std::optional<TagView> view = engine_->View(TagName(tag));
    const StoreModel::TableRow* row = store_.Find(TagName(tag));
    if (!view || row == nullptr || view->state != TagState::kActive || view->segments.empty())
      continue;
    const bool flying = std::any_of(flying_.begin(), flying_.end(),
                                    [tag](const auto& each) { return each.second.tag == tag; });
    if (flying || view->segments.back().range.last != row->max_id) continue;
    if (Of(tag).store_id != store_.identity()) continue;  // equal by chance
    std::int64_t floor = row->max_id;
    for (auto piece = view->segments.rbegin(); piece != view->segments.rend(); ++piece) {
      if (piece->range.last != floor) break;
      floor = piece->next;
      if (piece->next != piece->range.first) break;
    }
    if (floor < row->max_id) owed.push_back({tag, row->max_id, floor, row->version});
  }
  return owed;
}

void Process::Stop() {
  CheckLoss();
  CheckAccounts();
  stopping_ = true;
  world_.Note(What::kStop, index_, -1);
  const Instant began = world_.now();
  const std::vector<Owed> owed = WhatStopOwes();
  engine_->Close([this, owed, began] {
    world_.After(Duration{}, index_, [this, owed, began] { Stopped(owed, began); });
  });
  const Duration allowed = 3 * setup_.options.store_timeout + std::chrono::seconds(1);
  world_.After(allowed, index_, [this, began, allowed] {
    if (resumed_ <= began + allowed) checker_.Fail(Rule::kStop, "a clean stop does not end");
  });
}

void Process::Stopped(const std::vector<Owed>& owed, Instant began) {
  // One call of the store that fails ends the giving back, so all must be well.
  bool calm = resumed_ < began && !server_.journal_.fails_sync();
  for (int tag = 0; tag < server_.tags_; ++tag) calm = calm && store_.HealthySince(tag) < began;
  for (const Owed& each : owed) {
    const StoreModel::TableRow* row = store_.Find(TagName(each.tag));
    const StoreModel::GivenBack& given = store_.LastGivenBack(each.tag);
    const bool ours = given.server == index_ && given.at >= began;
    const bool untouched = row != nullptr && row->version == each.version;
    if (!calm || (!ours && !untouched)) continue;  // something else came first
    if (!ours || given.ids != Range{each.floor, each.top}) {
      checker_.Fail(Rule::kStop,
                    "t" + std::to_string(each.tag) + " server " + std::to_string(index_) +
                        " gave back " +
                        (ours ? "from " + std::to_string(given.ids.first) : "nothing") +
                        " and not from " + std::to_string(each.floor));
    }
    ++server_.stats_.full_hand_backs;
  }
  if (!requests_.empty()) {
    const bool parked = std::any_of(requests_.begin(), requests_.end(), [](const auto& each) {
      return each.second->parking.place.load() != nullptr;
    });
    if (parked) checker_.Fail(Rule::kStop, "requests are still parked after a clean stop");
  }
  server_.Buried(/*clean=*/true);
}

void Process::Die() {
  dead_ = true;
  port_->Die();
}

}  // namespace leaf::sim
