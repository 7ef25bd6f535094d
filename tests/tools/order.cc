#include "order.h"

namespace leaf::tools {

OrderJudge::OrderJudge(std::size_t memory_bytes, const std::string& folder)
    : sort_(memory_bytes, folder, Less{}, Keep{}) {}

void OrderJudge::Add(const Piece& piece) {
  if (piece.tag >= tags_.size()) tags_.resize(piece.tag + 1);
  std::vector<High>& servers = tags_[piece.tag].by_server;
  if (piece.server >= servers.size()) servers.resize(piece.server + 1U);
  sort_.Add({piece.sent, piece.first, piece.position, piece.tag, piece.server, false});
  sort_.Add({piece.received, piece.last, piece.position, piece.tag, piece.server, true});
}

void OrderJudge::Raise(High& high, const Event& event) {
  if (!high.any || event.edge > high.edge) high = {event.edge, event.position, true};
}

bool OrderJudge::Finish(const std::function<void(const Breach&)>& breach) {
  return sort_.Drain([&](const Event& event) {
    TagHighs& tag = tags_[event.tag];
    High& server = tag.by_server[event.server];
    if (event.answer) {
      Raise(tag.all, event);
      Raise(server, event);
      return;
    }
    if (server.any && event.edge < server.edge)
      breach({event.tag, true, event.position, server.position});
    if (tag.all.any && event.edge < tag.all.edge)
      breach({event.tag, false, event.position, tag.all.position});
  });
}

}  // namespace leaf::tools
