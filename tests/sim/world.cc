#include "world.h"

#include <algorithm>
#include <utility>

namespace leaf::sim {

void World::At(Instant at, int server, Action action) {
  const std::uint64_t life = server == kWorld ? 0 : Life(server).number;
  queue_.push({std::max(at, now_), ++order_, server, life, std::move(action)});
}

void World::RunUntil(Instant end) {
  while (!queue_.empty() && queue_.top().at <= end) {
    Event event =
        std::move(const_cast<Event&>(queue_.top()));  // the queue only hands out constants
    queue_.pop();
    now_ = event.at;
    if (event.server != kWorld) {
      if (event.life != Life(event.server).number) continue;
      if (Life(event.server).paused_until > now_) {
        event.at = Life(event.server).paused_until;
        queue_.push(std::move(event));  // keeps its order among those put off
        continue;
      }
    }
    ++events_;
    event.action();
  }
  now_ = std::max(now_, end);
}

}  // namespace leaf::sim
