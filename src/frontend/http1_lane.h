#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "codec/http1/message.h"
#include "codec/http1/parser.h"
#include "codec/http1/service.h"
#include "codec/http1/writer.h"
#include "frontend/ids_handler.h"
#include "frontend/lane.h"
#include "frontend/reactor_state.h"

namespace leaf {

class Http1Exchange;
class Http1Lane;
class Http1Lanes;
class ReplyTask;

/// A request that waits for ids. It belongs to its lane; if the connection ends while the ids are
/// on their way it belongs to nobody, and Run gives them up. Confined to the reactor.
class ParkedIds final : public Waiter {
 public:
  explicit ParkedIds(Http1Lanes& lanes);
  void Run() override;

  Http1Lane* lane = nullptr;
  IdReply reply;

 private:
  Http1Lanes& lanes_;
};

/// Where late answers of services go. Thread-safe; outlives the reactor.
class Mailbox {
 public:
  explicit Mailbox(Executor& home) : home_(&home) {}
  /// False: the reactor is gone; the task was not taken.
  bool Post(Task& task) noexcept EXCLUDES_LOCK(mu_);
  void Close() noexcept EXCLUDES_LOCK(mu_);

 private:
  Mutex mu_;
  Executor* home_ GUARDED_BY(mu_);
};

/// The place that a service's late answer comes to. Confined to the reactor.
struct DeferredSlot {
  Http1Lane* lane = nullptr;  ///< nullptr: the client has left
};

/// What the HTTP/1 lanes of one reactor share. Confined to the reactor.
class Http1Lanes final : public Lanes {
 public:
  struct Options {
    IdsHandler* ids = nullptr;  ///< nullptr: the admin listener, where every error is a problem
    std::vector<http1::Service*> services;  ///< in order; the last answers everything
    http1::Limits limits;
  };
  /// `state` outlives it.
  Http1Lanes(ReactorState& state, Options options);
  ~Http1Lanes() override;

  std::unique_ptr<Lane> Open(std::string_view first_bytes, LaneHost& host) override;
  std::string Refusal(std::string_view reason) override;
  int waiting() const noexcept override { return waiting_; }

 private:
  friend class Http1Exchange;
  friend class Http1Lane;
  friend class ParkedIds;

  std::unique_ptr<ParkedIds> TakeParked();
  void GiveParked(std::unique_ptr<ParkedIds> parked);
  void GiveUp(ParkedIds& parked) noexcept;

  ReactorState& state_;
  const Options options_;
  const std::shared_ptr<Mailbox> mailbox_;
  http1::Request request_;  ///< the one being read; 8 KiB that no connection needs while idle
  std::vector<std::unique_ptr<ParkedIds>> spare_;
  std::unique_ptr<ParkedIds> next_parked_;  ///< lent to each id request; taken by one that parks
  int waiting_ = 0;
};

/// HTTP/1.0 and 1.1. Requests are answered in order; one that waits holds those behind it back.
class Http1Lane final : public Lane {
 public:
  Http1Lane(Http1Lanes& lanes, LaneHost& host);
  ~Http1Lane() override;

  LaneProgress Read(char* data, std::size_t size, std::string& out) override;
  LaneNext Resume(std::string& out) override;
  bool in_body() const noexcept override { return parser_.in_body(); }
  void TimedOut(std::string& out) override;
  void HalfClosed(std::string& out) override;

 private:
  friend class ParkedIds;
  friend class Http1Exchange;
  friend class ReplyTask;

  LaneProgress ReadBatch(char* data, std::size_t size, std::string& out, std::uint64_t& answered);
  LaneNext Answer(http1::Request& request, std::string& out);
  LaneNext AskServices(const http1::Request& request, std::string& out);
  void Refuse(int status, std::string_view reason, bool below_api, std::string& out);
  void Write(const http1::Response& response, std::string& out);
  void Deliver(http1::Response response);
  ReactorTurn Turn() const noexcept;

  Http1Lanes& lanes_;
  LaneHost& host_;
  http1::Parser parser_;
  std::unique_ptr<ParkedIds> parked_;      ///< a request that waits for ids
  std::shared_ptr<DeferredSlot> slot_;     ///< a request that waits for a service
  std::unique_ptr<http1::Response> late_;  ///< what the service answered
  Instant started_{};
  bool ready_ = false;  ///< parked_ has its result
  bool keep_alive_ = true, head_ = false, half_closed_ = false;
  int minor_ = 1;
};

}  // namespace leaf
