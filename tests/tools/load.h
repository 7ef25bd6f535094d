#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "answer.h"

namespace leaf::tools {

struct LoadOptions {
  std::vector<std::string> targets;  ///< HOST:PORT; connection i asks target i modulo their number
  std::vector<std::string> tags;     ///< taken in turn
  AnswerForm form = AnswerForm::kLeaf;
  bool snowflake = false;  ///< snowflake ids (kLeaf, kIds); a tag is then a key, or a mere name
  int connections = 1;
  int pipeline = 1;           ///< requests under way on a connection
  std::int64_t n = 1;         ///< ids a request, not for kLeaf
  double duration_s = 0;      ///< 0: until `requests` were sent
  std::int64_t requests = 0;  ///< 0: until the duration has passed
  int rounds = 0;  ///< > 0: each connection sends `pipeline` requests a round; the next begins when
                   ///< all are answered
  double rate = 0;       ///< requests/s over all connections; 0: as fast as they are answered
  bool barrier = false;  ///< nothing is sent before every connection stands
  double timeout_s =
      10;  ///< without an answer for so long the connection is cut and the request unsure
  double give_up_s = 30;  ///< without any connection for so long the run ends
  std::string history;    ///< path; empty: none
};

struct LoadReport {
  std::int64_t requests = 0, ok = 0, failed = 0, unsure = 0, ids = 0;
  std::int64_t reconnects = 0;  ///< after a connection that had stood
  std::int64_t connect_failures = 0;
  std::map<int, std::int64_t> by_status;
  std::map<std::string, std::int64_t> by_code;
  std::vector<std::uint32_t> latency_us;  ///< of each answer
  std::int64_t longest_silence_us = 0;    ///< between two successes, whoever got them
  double seconds = 0;
  bool gave_up = false;
  std::string error;  ///< not empty: it could not run, or the history was not written

  std::string Json();
};

/// Asks for ids over HTTP/1.1 until its end, a SIGINT or a SIGTERM. One thread.
LoadReport RunLoad(const LoadOptions& options);

}  // namespace leaf::tools
