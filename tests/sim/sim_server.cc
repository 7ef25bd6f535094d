#include "sim_server.h"

#include <algorithm>
#include <utility>

#include "sim_process.h"

namespace leaf::sim {

SimServer::SimServer(World& world, StoreModel& store, Checker& checker, SimRandom random, int index,
                     int tags, const ServerSetup& setup)
    : world_(world),
      store_(store),
      checker_(checker),
      random_(random),
      index_(index),
      tags_(tags),
      setup_(setup),
      last_served_(static_cast<std::size_t>(tags), Instant::min()) {}

SimServer::~SimServer() {
  if (process_ != nullptr) process_->Die();
}

void SimServer::Start() {
  if (process_ != nullptr) return;
  if (setup_.wipes_journal) journal_.Wipe();
  if (!setup_.wipes_journal) {
    for (const auto& [tag, mark] : journal_.durable()) {
      checker_.Remembers(index_, TagIndex(tag), mark.end);
    }
  }
  world_.Note(What::kStart, index_, -1);
  process_ = std::make_unique<Process>(*this, random_.Fork(1));
  process_->Begin();
}

void SimServer::Kill() {
  if (process_ == nullptr) return;
  process_->CheckLoss();
  world_.Note(What::kKill, index_, -1);
  ++stats_.kills;
  Buried(/*clean=*/false);
}

void SimServer::Stop() {
  if (serving() && awake()) process_->Stop();
}

// The process is gone, one way or the other.
void SimServer::Buried(bool clean) {
  world_.EndLife(index_);
  world_.Pause(index_, Instant{});
  process_->Die();
  for (const std::string& tag : journal_.End(random_)) checker_.Forgets(index_, TagIndex(tag));
  old_ports_.push_back(process_->TakePort());
  process_.reset();
  if (clean) ++stats_.clean_stops;
  if (clean) world_.Note(What::kStopped, index_, -1);
}

void SimServer::Pause(Duration duration) {
  if (process_ == nullptr) return;
  const Instant until = std::max(world_.now() + duration, world_.paused_until(index_));
  world_.Note(What::kPause, index_, -1, until.time_since_epoch().count());
  world_.Pause(index_, until);
  process_->Paused(until);
}

bool SimServer::awake() const noexcept {
  return process_ != nullptr && world_.paused_until(index_) <= world_.now();
}

bool SimServer::serving() const noexcept { return process_ != nullptr && !process_->stopping(); }

void SimServer::Request(const Wish& wish) {
  if (awake()) process_->Take(wish);
}

void SimServer::Resume(int tag, std::int64_t skip) {
  if (!serving() || !awake()) return;
  world_.Note(What::kResume, index_, tag, skip);
  process_->engine().ResumeTag(TagName(tag), skip, [](const Result<std::int64_t>&) {});
}

void SimServer::Drop(int tag) {
  if (!serving() || !awake()) return;
  process_->GivesUp(tag);
  const Result<std::int64_t> dropped = process_->engine().DropTag(TagName(tag));
  world_.Note(What::kDrop, index_, tag, dropped.ok() ? *dropped : -1);
}

void SimServer::PutStep(int tag, std::int64_t step) {
  if (!serving() || !awake() || store_.Find(TagName(tag)) == nullptr) return;
  process_->engine().PutTag(TagName(tag), step, std::nullopt, [](const Result<Engine::Put>&) {});
}

void SimServer::Delete(int tag) {
  if (!serving() || !awake()) return;
  process_->engine().DeleteTag(TagName(tag), [](const Result<Row>&) {});
}

bool SimServer::Stopped(int tag) const {
  if (process_ == nullptr) return false;
  const std::optional<TagView> view = process_->engine().View(TagName(tag));
  return view && view->state == TagState::kRegressed;
}

std::size_t SimServer::open_requests() const {
  return process_ == nullptr ? 0 : process_->open_requests();
}

}  // namespace leaf::sim
