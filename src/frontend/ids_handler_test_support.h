#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "codec/http1/message.h"
#include "core/segment/waiter.h"

namespace leaf::test {

class TestWaiter final : public Waiter {
 public:
  explicit TestWaiter(Executor& executor) : Waiter(executor) {}
  void Run() override { ready = true; }
  bool ready = false;
};

/// A whole response, taken apart.
struct Answer {
  std::string raw;
  int status = 0;
  std::map<std::string, std::string> headers;
  std::string body;
};

inline Answer Split(const std::string& raw) {
  Answer answer;
  answer.raw = raw;
  const std::size_t end = raw.find("\r\n\r\n");
  answer.status = std::atoi(raw.c_str() + 9);
  answer.body = raw.substr(end + 4);
  for (std::size_t at = raw.find("\r\n") + 2; at < end + 2;) {
    const std::size_t line_end = raw.find("\r\n", at);
    const std::string line = raw.substr(at, line_end - at);
    const std::size_t colon = line.find(": ");
    answer.headers[line.substr(0, colon)] = line.substr(colon + 2);
    at = line_end + 2;
  }
  return answer;
}

/// A request to a handler.
struct Ask {
  std::string target;
  std::string accept = {};
  http1::Method method = http1::Method::kGet;
  int minor = 1;
  bool keep_alive = true;
};

/// Views into `ask`.
inline http1::Request RequestOf(const Ask& ask) {
  http1::Request request;
  const std::string_view target = ask.target;
  const std::size_t question = target.find('?');
  request.method = ask.method;
  request.target = target;
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  request.accept = ask.accept;
  request.minor = ask.minor;
  request.keep_alive = ask.keep_alive;
  return request;
}

}  // namespace leaf::test
