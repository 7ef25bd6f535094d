#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "codec/http1/message.h"
#include "core/id_service.h"
#include "core/request_stats.h"
#include "core/segment/waiter.h"

namespace leaf {

/// What a reactor lends to the handler for one turn of its loop.
struct ReactorTurn {
  Reader& reader;
  RequestStats& stats;
  Instant now;            ///< read once a batch
  std::string_view date;  ///< a whole line, "Date: ...\r\n", or empty
};

/// The form of the answer to an id request.
struct IdForm {
  enum class Body : std::uint8_t { kLeaf, kIdsJson, kIdsText, kRanges };
  Body body = Body::kLeaf;
  bool snowflake = false;   ///< the ids are Waiter::minted
  bool head = false;        ///< HEAD: headers only
  bool keep_alive = true;   ///< may be cleared before Finish (drain)
  bool html_error = false;  ///< Leaf's error as a page
  int minor = 1;
  std::string_view content_type;  ///< of a Leaf answer; static storage
};

/// How an id request is to be answered once its ids are there: what has to outlive the request's
/// bytes while it waits. Reused by its connection; only a request that parks fills it.
struct IdReply : IdForm {
  std::string tag;   ///< decoded: what Engine::Abandon needs when the client has left
  std::string path;  ///< raw, for Leaf's error body
  Instant started;
};

/// Leaf's two id paths and those of /api/v1 on the main listener: from a parsed request to the
/// bytes of the answer. Each answer is whole, framed by Content-Length, and says `Connection:
/// close` if the request's keep_alive was false. Thread-safe.
class IdsHandler {
 public:
  struct Options {
    bool leaf_cut_after_dot = false;    ///< compat.cut_after_dot
    bool reject_encoded_slash = false;  ///< compat.leaf: %2F and %5C are 400 on Leaf's path
    bool disabled_returns_zero = false;
  };
  /// `ids` and `clock` outlive the handler; the clock stamps error bodies only.
  IdsHandler(IdService& ids, const Clock& clock, Options options)
      : ids_(ids), clock_(clock), options_(options) {}

  enum class Next : std::uint8_t {
    kAnswered,  ///< a whole response was appended to `out`
    kParked,    ///< `waiter` is parked, `reply` is filled; Finish when it is posted
    kNotMine,   ///< not an id path, or a method that takes no id there; nothing happened
  };
  /// No allocation when the tag is known and holds the ids (`out` has room). Counts the request and
  /// its ids in turn.stats when it is answered; the duration of a batch is the reactor's to count.
  Next Handle(const http1::Request& request, const ReactorTurn& turn, Waiter& waiter,
              IdReply& reply, std::string& out);
  /// Appends the response for waiter.result, and counts the request, its ids and its duration.
  void Finish(const IdReply& reply, Waiter& waiter, const ReactorTurn& turn, std::string& out);
  /// For a parked request whose client has left. True: the waiter is out and will not be posted.
  [[nodiscard]] bool Cancel(const IdReply& reply, Waiter& waiter) noexcept;
  /// The ids that came for it all the same become a gap.
  void GiveUp(const IdReply& reply, const Waiter& waiter) noexcept;

 private:
  struct Shape;
  static Shape ApiShape(const http1::Request& request);
  Next HandleLeaf(const http1::Request& request, std::string_view key, bool snowflake,
                  const ReactorTurn& turn, Waiter& waiter, IdReply& reply, std::string& out);
  Next HandleApi(const http1::Request& request, std::string_view key, bool ranges,
                 const ReactorTurn& turn, Waiter& waiter, IdReply& reply, std::string& out);
  Next HandleSnowflake(const http1::Request& request, const ReactorTurn& turn, Waiter& waiter,
                       IdReply& reply, std::string& out);
  /// The count of a request of /api/v1 that takes ids, or nothing: then it is refused already.
  std::optional<std::int64_t> Admit(const http1::Request& request, const Shape& shape,
                                    std::int64_t max, std::string_view key, const ReactorTurn& turn,
                                    std::string& out) const;
  Next Take(const Shape& shape, const ReactorTurn& turn, Waiter& waiter, IdReply& reply,
            std::string& out);
  Next Mint(const Shape& shape, const ReactorTurn& turn, Waiter& waiter, IdReply& reply,
            std::string& out);
  static Next Park(const Shape& shape, const ReactorTurn& turn, IdReply& reply);
  void Answer(const Shape& shape, const Result<Ranges>& result, const ReactorTurn& turn,
              std::string& out) const;
  void Answer(const Shape& shape, const Result<Minted>& result, const ReactorTurn& turn,
              std::string& out) const;
  void Refuse(const Shape& shape, const Error& error, const ReactorTurn& turn,
              std::string& out) const;
  void Send(const Shape& shape, std::string_view body, std::string_view content_type,
            std::int64_t ids, const ReactorTurn& turn, std::string& out) const;
  http1::Response ErrorAnswer(const Shape& shape, const Error& error) const;

  IdService& ids_;
  const Clock& clock_;
  Options options_;
};

}  // namespace leaf
