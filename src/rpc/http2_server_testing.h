#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leaf::rpc {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// What the scripted server received.
struct ServedRequest {
  std::map<std::string, std::string> headers;
  std::string body;  ///< with gRPC's five bytes
  int connection = 0;
};

/// What it does about it.
struct ServedAnswer {
  enum class Kind {
    kAnswer,
    kNothing,  ///< never answers
    kReset,    ///< RST_STREAM with `code`
    kRefuse,   ///< GOAWAY that disowns the request, then closes
    kClose,    ///< after the headers and body, without trailers
    kFlood,    ///< talks on and on, and never answers
  };
  Kind kind = Kind::kAnswer;
  Fields headers{{":status", "200"}, {"content-type", "application/grpc"}};
  std::string body;
  Fields trailers{{"grpc-status", "0"}};  ///< empty: the stream ends with the body
  std::uint32_t code = 0;
  bool goaway_after = false;  ///< says that this was the last one

  static ServedAnswer Ok(std::string_view message);
  /// Headers only, as gRPC answers what it does not even begin.
  static ServedAnswer TrailersOnly(std::string status, std::string message);
};

/// An HTTP/2 server on a free port of 127.0.0.1 that does what a test says. Each connection has a
/// thread; `script` is called on it.
class Http2Server {
 public:
  struct Options {
    std::function<ServedAnswer(const ServedRequest&)> script = {};
    std::string cert = {}, key = {};     ///< PEM: TLS
    std::string client_ca = {};          ///< clients must show a certificate of it
    bool alpn = true;                    ///< offers h2 in TLS
    std::size_t piece = 0;               ///< > 0: writes so many bytes at a time
    std::chrono::milliseconds pause{0};  ///< after each piece
    std::string greeting = {};           ///< not empty: this instead of HTTP/2
    bool silent = false;                 ///< accepts and says nothing
    std::uint32_t max_streams = 100;
    std::int32_t window = -1;  ///< >= 0: of each stream, for what clients send
    bool pings_when_idle = false;
  };
  explicit Http2Server(Options options);
  ~Http2Server();
  Http2Server(const Http2Server&) = delete;
  Http2Server& operator=(const Http2Server&) = delete;

  int port() const noexcept { return port_; }
  int accepted() const noexcept { return accepted_; }
  int requests() const noexcept { return requests_; }
  /// No word more, on any connection, until it is called with false.
  void Silence(bool on) noexcept { silenced_ = on; }
  /// Closes every connection; returns when they are closed.
  void CloseAll();

 private:
  friend class ServerConnection;
  void Accept(const std::stop_token& stop);

  const Options options_;
  const int listener_;
  int port_ = 0;
  std::atomic<int> accepted_{0}, requests_{0}, open_{0}, closings_{0};
  std::atomic<bool> silenced_{false};
  std::jthread thread_;
};

}  // namespace leaf::rpc
