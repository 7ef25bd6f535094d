#include "snowflake_server.h"

#include <algorithm>
#include <utility>

namespace leaf::sim {

class SnowflakeServer::Journal final : public RightJournal {
 public:
  explicit Journal(SnowflakeServer& server) : server_(server) {}
  Result<std::optional<Found>> Load() override {
    if (!server_.journal_) return std::optional<Found>();
    const bool trusted = server_.same_place_ || server_.setup_.mutant == ServerMutant::kCopyTrusted;
    return std::optional<Found>({*server_.journal_, trusted});
  }
  void Save(RightRecord record, Done<bool> done) override {
    SnowflakeServer& server = server_;
    const SnowflakeSetup& setup = server.setup_;
    const bool fails = server.random_.Chance(setup.save_faults);
    const Duration takes = server.random_.Between(setup.save_min, setup.save_max) *
                           (server.random_.Chance(setup.save_faults) ? 100 : 1);
    free_at_ = std::max(free_at_, server.world_.now()) + takes;
    server.unsynced_ = record;
    server.world_.At(free_at_, server.index_,
                     [this, record = std::move(record), done = std::move(done), fails] {
                       if (fails) {
                         done(Error{Code::kUnavailable, "the disk is full"});
                         return;
                       }
                       if (server_.setup_.mutant != ServerMutant::kJournalLies) {
                         server_.journal_ = record;
                         server_.same_place_ = true;
                       }
                       done(true);
                     });
  }

 private:
  SnowflakeServer& server_;
  Instant free_at_{};
};

class SnowflakeServer::Order final : public OrderWord {
 public:
  Order(std::int64_t last, bool forgotten) : last_(forgotten ? 0 : last), word_(last) {}
  std::optional<std::int64_t> Last() const override {
    if (last_ == 0) return std::nullopt;
    return last_;
  }
  std::atomic<std::int64_t>& word() noexcept override { return word_; }

 private:
  const std::int64_t last_;
  std::atomic<std::int64_t> word_;
};

class SnowflakeServer::Claims final : public HostClaims {
 public:
  explicit Claims(SnowflakeServer& server) : server_(server) {}
  ~Claims() override {
    std::erase_if(server_.host_.claims,
                  [this](const auto& each) { return each.second == server_.index_; });
  }
  bool Take(std::int64_t worker) override {
    if (server_.setup_.mutant == ServerMutant::kHostClaimsIgnored) return true;
    return server_.host_.claims.try_emplace(worker, server_.index_).first->second == server_.index_;
  }
  void Release(std::int64_t worker) noexcept override {
    const auto found = server_.host_.claims.find(worker);
    if (found != server_.host_.claims.end() && found->second == server_.index_)
      server_.host_.claims.erase(found);
  }

 private:
  SnowflakeServer& server_;
};

/// A request: from its arrival to its answer.
struct SnowflakeServer::Client final : public Waiter, private Executor {
  Client(SnowflakeServer& owner, std::uint64_t its_number, std::int64_t wanted,
         std::int64_t largest)
      : Waiter(static_cast<Executor&>(*this)), server(owner), number(its_number), above(largest) {
    count = wanted;
  }
  void Post(Task&) noexcept override {
    posted = true;
    if (result.ok()) server.Claimed(minted);
    server.world_.After(server.random_.Between(Duration(0), server.setup_.post_late), server.index_,
                        [this] { Run(); });
  }
  void Run() override { server.Answered(*this); }

  SnowflakeServer& server;
  const std::uint64_t number;
  const std::int64_t above;  ///< the largest id that had left the server when this came
  bool posted = false;
};

struct SnowflakeServer::Process {
  Process(SnowflakeServer& server, RegistryPort& registry)
      : port(registry),
        journal(server),
        order(server.order_, server.setup_.mutant == ServerMutant::kOrderForgotten),
        claims(server),
        random(server.random_.Fork(server.stats_.starts)),
        engine(server.setup_.options, {registry, &journal, &claims, &order, server.host_, random}) {
  }

  RegistryPort& port;
  Journal journal;
  Order order;
  Claims claims;
  SimRandom random;
  std::map<std::uint64_t, std::unique_ptr<Client>> clients;  ///< by number
  SnowflakeEngine engine;
  std::string owner;
  std::uint64_t requests = 0;
  std::uint64_t ticks = 0;  ///< planned so far: only the last one runs
  Instant tick_at = kNever;
  bool ready = false;  ///< has served once
  bool closing = false;
};

SnowflakeServer::SnowflakeServer(int index, SnowflakeSetup setup, World& world,
                                 SnowflakeChecker& checker, RegistryModel& registry,
                                 SnowflakeHost& host, SimRandom random)
    : index_(index),
      setup_(std::move(setup)),
      world_(world),
      checker_(checker),
      registry_(registry),
      host_(host),
      random_(random) {}

SnowflakeServer::~SnowflakeServer() {
  if (alive()) End();
}

bool SnowflakeServer::bound() const noexcept {
  const RegistryKind kind = registry_.setup().kind;
  return kind == RegistryKind::kNodes || kind == RegistryKind::kFixed;
}

void SnowflakeServer::Start() {
  if (alive()) return;
  ++stats_.starts;
  world_.Note(What::kStart, index_, -1);
  ports_.push_back(
      std::make_unique<RegistryPort>(registry_, host_, index_, setup_.options.identity, index_));
  process_ = std::make_unique<Process>(*this, *ports_.back());
  SnowflakeEngine& engine = process_->engine;
  engine.SetWake([this] { PlanTick(world_.now()); });
  const auto loaded = engine.Load();
  if (!loaded.ok()) std::abort();  // the journal above never fails to be read
  process_->owner = bound() ? setup_.options.identity : engine.View().owner;
  PlanTick(world_.now());
}

void SnowflakeServer::PlanTick(Instant at) {
  Process& process = *process_;
  at = std::max(at, world_.now());
  if (process.tick_at <= at) return;
  process.tick_at = at;
  world_.At(at + random_.Between(Duration(1), setup_.tick_late), index_,
            [this, number = ++process.ticks] {
              if (number == process_->ticks) RunTick();
            });
}

void SnowflakeServer::RunTick() {
  process_->tick_at = kNever;
  const Instant due = process_->engine.Tick(host_.Now());
  PlanTick(host_.InWorld(due));
}

void SnowflakeServer::Claimed(const Minted& minted) {
  Process& process = *process_;
  process.ready = true;
  checker_.Claimed(world_.now(), process.owner, minted);
  world_.Note(What::kTaken, index_, -1, minted.worker, minted.At(setup_.options.layout, 0));
  if (process.closing ||
      (registry_.setup().kind == RegistryKind::kNodes && process.port.disowned()))
    checker_.Violate(world_.now(), SnowflakeRule::kEnded,
                     "server " + std::to_string(index_) +
                         (process.closing ? " minted after Close" : " minted by another's node"));
  if (!bound()) return;
  const std::int64_t last =
      Decode(setup_.options.layout, minted.At(setup_.options.layout, minted.count - 1)).time_ms;
  if (!journal_ || journal_->worker != minted.worker || journal_->short_ms <= last)
    checker_.Violate(world_.now(), SnowflakeRule::kJournal,
                     "server " + std::to_string(index_) + " minted " + std::to_string(last) +
                         ", its journal ends at " +
                         std::to_string(journal_ ? journal_->short_ms : 0));
}

void SnowflakeServer::Request(std::int64_t count, std::optional<Duration> patience) {
  if (!alive()) return;
  Process& process = *process_;
  Instant now = host_.Now();
  if (setup_.stale > Duration::zero() && random_.Chance(0.05))
    now -= random_.Between(Duration(0), setup_.stale);
  const std::int64_t above = checker_.Largest(index_);
  Minted minted;
  if (process.engine.TryMint(count, now, minted)) {
    ++stats_.answers;
    Claimed(minted);
    checker_.Sent(world_.now(), index_, above, minted);
    return;
  }
  // In a calm history the load begins when the server is ready.
  if (setup_.calm && (!process.ready || process.closing)) return;
  auto client = std::make_unique<Client>(*this, ++process.requests, count, above);
  Result<Minted> out = Minted{};
  if (process.engine.MintOrPark(*client, now, out)) {
    if (!out.ok()) return Fail(out.error());
    ++stats_.answers;
    Claimed(*out);
    checker_.Sent(world_.now(), index_, above, *out);
    return;
  }
  ++stats_.parked;
  world_.Note(What::kPark, index_, -1, count);
  const std::uint64_t number = client->number;
  process.clients[number] = std::move(client);
  if (!patience) return;
  world_.After(*patience, index_, [this, number] {
    const auto found = process_->clients.find(number);
    if (found == process_->clients.end() || !process_->engine.Cancel(*found->second)) return;
    ++stats_.cancelled;
    process_->clients.erase(found);
  });
}

void SnowflakeServer::Answered(Client& client) {
  if (client.result.ok()) {
    ++stats_.answers;
    ++stats_.served;
    world_.Note(What::kServed, index_, -1, client.count);
    checker_.Sent(world_.now(), index_, client.above, client.minted);
  } else {
    Fail(client.result.error());
  }
  process_->clients.erase(client.number);
}

void SnowflakeServer::Fail(const Error& error) {
  ++stats_.failed;
  world_.Note(What::kFailed, index_, -1, static_cast<std::int64_t>(error.code));
  if (setup_.calm && !process_->closing)
    checker_.Violate(world_.now(), SnowflakeRule::kServed,
                     "server " + std::to_string(index_) + ": " + error.message);
}

void SnowflakeServer::Retire(std::int64_t worker) {
  if (alive()) process_->engine.Retire(worker, [](const Result<WorkerRecord>&) {});
}

void SnowflakeServer::End() {
  order_ = process_->order.word().load();
  process_->port.End();
  world_.EndLife(index_);
  world_.Pause(index_, world_.now());
  for (auto& [number, client] : process_->clients) {
    if (!client->posted) static_cast<void>(process_->engine.Cancel(*client));
  }
  process_.reset();
}

void SnowflakeServer::Kill() {
  if (!alive()) return;
  ++stats_.kills;
  world_.Note(What::kKill, index_, -1);
  // What was being written may have reached the disk all the same.
  if (unsynced_ && journal_ != unsynced_) {
    ++stats_.unsynced;
    if (random_.Chance(0.5) && setup_.mutant != ServerMutant::kJournalLies) {
      journal_ = unsynced_;
      same_place_ = true;
    }
  }
  unsynced_.reset();
  End();
}

void SnowflakeServer::Stop() {
  if (!alive() || process_->closing) return;
  ++stats_.stops;
  world_.Note(What::kStop, index_, -1);
  process_->closing = true;
  process_->engine.Close([this] {
    world_.Note(What::kStopped, index_, -1);
    // Not within the engine's own call.
    world_.After(Duration(1), index_, [this] {
      unsynced_.reset();
      End();
    });
  });
}

void SnowflakeServer::LoseOrder() {
  order_ = 0;
  checker_.Forget(index_);
}

void SnowflakeServer::CopyFrom(const SnowflakeServer& other) {
  ++stats_.copies;
  journal_ = other.journal_;
  same_place_ = false;
  LoseOrder();
}

}  // namespace leaf::sim
