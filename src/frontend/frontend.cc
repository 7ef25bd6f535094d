#include "frontend/frontend.h"

#include <algorithm>
#include <utility>

#include "frontend/http1_lane.h"

namespace leaf {

Frontend::Frontend(Options options, IdsHandler* ids, std::vector<http1::Service*> services,
                   Engine* engine, const Clock& clock)
    : options_(std::move(options)) {
  const Reactor::Timeouts timeouts{.header = options_.header_timeout,
                                   .idle = options_.idle_timeout};
  const Http1Lanes::Options lanes{
      .ids = ids, .services = std::move(services), .limits = options_.limits};
  std::vector<Reactor*> borrowed;
  for (int i = 0; i < std::max(1, options_.reactors); ++i) {
    reactors_.push_back(std::make_unique<Reactor>(
        clock, engine, timeouts,
        [&lanes](ReactorState& state) { return std::make_unique<Http1Lanes>(state, lanes); },
        [this](const Peer& peer) { acceptor_->Closed(peer); }));
    borrowed.push_back(reactors_.back().get());
  }
  const Acceptor::Limits limits{.max_connections = options_.max_connections,
                                .max_connections_per_ip = options_.max_connections_per_ip};
  acceptor_ = std::make_unique<Acceptor>(limits, std::move(borrowed));
}

Frontend::~Frontend() { reactors_.clear(); }

Result<void> Frontend::Listen() {
  for (const auto& reactor : reactors_) LEAF_RETURN_IF_ERROR(reactor->Ready());
  return acceptor_->Listen(options_.listen);
}

void Frontend::Run(int reactor) {
  Reactor& self = *reactors_[static_cast<std::size_t>(reactor)];
  if (reactor != 0) {
    self.Run([] { return kNever; });
    return;
  }
  acceptor_->Start();
  self.Run([this] { return acceptor_->Turn(); });
}

void Frontend::Drain() noexcept {
  acceptor_->Drain();
  for (const auto& reactor : reactors_) reactor->Drain();
}

bool Frontend::drained() const noexcept { return !acceptor_->listening() && connections() == 0; }

void Frontend::Stop() noexcept {
  for (const auto& reactor : reactors_) reactor->Stop();
}

long Frontend::connections() const noexcept {
  long total = 0;
  for (const auto& reactor : reactors_) total += reactor->load().load(std::memory_order_relaxed);
  return total;
}

}  // namespace leaf
