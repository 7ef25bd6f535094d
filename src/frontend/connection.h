#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/executor.h"
#include "base/time.h"
#include "frontend/event_sink.h"
#include "frontend/lane.h"
#include "frontend/socket.h"

namespace leaf {

class Reactor;

/// One accepted socket: moves bytes between it and its lane. It owns buffers only while a request
/// is incomplete or an answer is not taken. Made by the acceptor, then posted to its reactor and
/// confined to it; the reactor deletes it.
///
/// While an answer is not taken, or a request waits, nothing is read, so that a slow client bounds
/// itself. What it may hold: one request within http1::Limits and one read; 64 KiB of answers and
/// the last one whole.
class Connection final : public Task, public EventSink, public LaneHost {
 public:
  Connection(Reactor& reactor, Fd fd, const Peer& peer);
  ~Connection();

  /// Sends `bytes` and closes; not counted as a connection. Before it is posted.
  void SetRefusal(std::string bytes);

  void Run() override;  ///< arrives at its reactor
  void OnEvents(std::uint32_t events) override;
  void Resume() noexcept override;
  bool peer_is_local() const noexcept override { return peer_.local; }

  /// Takes its turn: sends what is pending, or reads once and answers.
  void Work();
  /// The loop's coarse timer: ends what took too long.
  void CheckDeadline(Instant now);
  /// Closes when idle; otherwise the next answer ends it.
  void Drain();
  void Close() noexcept;

  bool closed() const noexcept { return !fd_; }
  bool counted() const noexcept { return !refused_; }
  const Peer& peer() const noexcept { return peer_; }

 private:
  friend class Reactor;
  enum class Phase : std::uint8_t { kIdle, kRequest, kWrite, kWait, kLinger };

  void Receive(std::string& out);
  void Feed(char* data, std::size_t size, std::string& out);
  void FeedInput(std::string& out);
  void Follow(LaneNext next);
  void Send(std::string_view bytes);
  bool SendPending();
  void Settle();
  void SetPhase(Phase phase);
  void Linger();
  void Discard();
  void Expire();

  Reactor& reactor_;
  Fd fd_;
  const Peer peer_;
  std::unique_ptr<Lane> lane_;  ///< after the first bytes
  std::string input_;           ///< begins where a request begins
  std::string pending_;         ///< answers that the socket did not take
  std::size_t sent_ = 0;        ///< of pending_
  Instant deadline_ = kNever;
  std::uint32_t progress_ = 0;  ///< bytes moved since deadline_ was set
  Phase phase_ = Phase::kIdle;
  bool readable_ = false;   ///< the socket may hold bytes, or its end
  bool peer_done_ = false;  ///< the peer will send no more
  bool eof_ = false;        ///< and all of it was read
  bool backlog_ = false;  ///< input_ holds bytes that the lane should look at before more are read
  bool waiting_ = false, resumed_ = false;
  bool closing_ = false;  ///< close when pending_ is sent
  bool served_ = false, refused_ = false;
  bool queued_ = false;  ///< the reactor holds it for its next turn
  Connection* prev_ = nullptr;
  Connection* next_ = nullptr;
};

}  // namespace leaf
