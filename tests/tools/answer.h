#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leaf::tools {

/// One answer of an id server over HTTP/1.1.
struct Answer {
  struct Piece {
    std::int64_t first = 0, count = 0;
  };
  int status = 0;
  std::string code;           ///< of a failure: X-Leafd-Code, the problem's code, or empty
  bool close = false;         ///< the server ends the connection after it
  std::vector<Piece> pieces;  ///< of a success, as the server ordered them; neighbours are joined
};

enum class AnswerForm : std::uint8_t { kLeaf, kIds, kRanges };

/// Reads the answer at the front of `bytes` into `out`. The number of bytes it takes; 0: more are
/// needed; -1: that is no answer (or one without Content-Length, or ids that are no numbers).
std::int64_t ReadAnswer(std::string_view bytes, AnswerForm form, Answer& out);

}  // namespace leaf::tools
