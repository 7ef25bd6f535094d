#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "external_sort.h"

namespace leaf::tools {

/// Real-time order: an answer that had arrived before a request was sent must lie wholly below what
/// that request got, if both are of one tag (and of one server). Thread-compatible.
class OrderJudge {
 public:
  /// Acknowledged ids, half-open; `position` says where they came from.
  struct Piece {
    std::int64_t first = 0, last = 0;
    std::int64_t sent = 0, received = 0;  ///< ns; received >= sent
    std::uint64_t position = 0;
    std::uint32_t tag = 0;
    std::uint16_t server = 0;
  };
  /// `asked` is not above `answered`, which had arrived before it was sent.
  struct Breach {
    std::uint32_t tag = 0;
    bool one_server = false;  ///< false: of two servers
    std::uint64_t asked = 0, answered = 0;
  };

  OrderJudge(std::size_t memory_bytes, const std::string& folder);

  void Add(const Piece& piece);
  /// Calls `breach` for each piece that is not above an earlier answer of its server, and again for
  /// each that is not above one of any server. Once, at the end. False: error() says why.
  bool Finish(const std::function<void(const Breach&)>& breach);

  bool spilled() const noexcept { return sort_.runs() > 0; }
  const std::string& error() const noexcept { return sort_.error(); }

 private:
  struct Event {
    std::int64_t at;
    std::int64_t edge;  // of a request its first id, of an answer one past its last
    std::uint64_t position;
    std::uint32_t tag;
    std::uint16_t server;
    bool answer;
  };
  struct Less {
    // At one instant requests stand before answers: that answer had not arrived *before* it.
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at < b.at : a.answer < b.answer;
    }
  };
  struct Keep {
    void operator()(std::vector<Event>&) const {}
  };
  /// The highest answer so far.
  struct High {
    std::int64_t edge;
    std::uint64_t position;
    bool any = false;
  };
  struct TagHighs {
    High all;
    std::vector<High> by_server;
  };

  static void Raise(High& high, const Event& event);

  std::vector<TagHighs> tags_;
  ExternalSort<Event, Less, Keep> sort_;
};

}  // namespace leaf::tools
