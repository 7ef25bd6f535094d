#include "rpc/http2_server_testing.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>

#include "rpc/grpc.h"

namespace leaf::rpc {
namespace {

constexpr int kTick = 2;  // ms between looks at the switches

[[noreturn]] void GiveUp(const char* why) {
  std::cerr << "scripted HTTP/2 server: " << why << std::endl;
  std::abort();
}

nghttp2_nv Field(const std::pair<std::string, std::string>& field) {
  const auto bytes = [](const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(field.first), bytes(field.second), field.first.size(), field.second.size(),
          NGHTTP2_NV_FLAG_NONE};
}

std::vector<nghttp2_nv> Raw(const Fields& fields) {
  std::vector<nghttp2_nv> raw;
  for (const auto& field : fields) raw.push_back(Field(field));
  return raw;
}

int ChooseHttp2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char*,
                unsigned, void*) {
  static const unsigned char kName[] = {'h', '2'};
  *out = kName;
  *size = sizeof kName;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

/// One connection, on its own thread.
class ServerConnection {
 public:
  ServerConnection(Http2Server& server, int fd, int number)
      : server_(server), options_(server.options_), fd_(fd), number_(number) {}
  ~ServerConnection() {
    nghttp2_session_del(session_);
    SSL_free(ssl_);
    SSL_CTX_free(tls_);
    close(fd_);
  }

  void Serve(const std::stop_token& stop);

 private:
  struct Stream {
    ServedRequest request;
    ServedAnswer answer;
    std::size_t offset = 0;
  };

  bool StartTls();
  void Begin();
  bool Read();
  bool Write();
  bool Send(std::string_view bytes);
  void Answer(std::int32_t id);
  void Submit(std::int32_t id, Stream& stream);

  static ssize_t ReadBody(nghttp2_session* session, std::int32_t id, std::uint8_t* to,
                          std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                          void* user);
  static ServerConnection& Of(void* user) { return *static_cast<ServerConnection*>(user); }

  Http2Server& server_;
  const Http2Server::Options& options_;
  const int fd_;
  const int number_;
  SSL_CTX* tls_ = nullptr;
  SSL* ssl_ = nullptr;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Stream> streams_;
  bool close_ = false, flood_ = false;
};

bool ServerConnection::StartTls() {
  tls_ = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(tls_, options_.cert.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(tls_, options_.key.c_str(), SSL_FILETYPE_PEM) != 1)
    GiveUp("bad certificate");
  if (options_.alpn) SSL_CTX_set_alpn_select_cb(tls_, &ChooseHttp2, nullptr);
  if (!options_.client_ca.empty()) {
    SSL_CTX_load_verify_locations(tls_, options_.client_ca.c_str(), nullptr);
    SSL_CTX_set_verify(tls_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  ssl_ = SSL_new(tls_);
  SSL_set_fd(ssl_, fd_);
  return SSL_accept(ssl_) == 1;
}

void ServerConnection::Begin() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                    std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                    std::uint8_t, void* user) {
        const std::string key(reinterpret_cast<const char*>(name), name_size);
        Of(user).streams_[frame->hd.stream_id].request.headers[key].assign(
            reinterpret_cast<const char*>(value), value_size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                    std::size_t size, void* user) {
        Of(user).streams_[id].request.body.append(reinterpret_cast<const char*>(data), size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
            (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS))
          Of(user).Answer(frame->hd.stream_id);
        return 0;
      });
  nghttp2_session_server_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  std::vector<nghttp2_settings_entry> settings{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.max_streams}};
  if (options_.window >= 0)
    settings.push_back(
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(options_.window)});
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
}

ssize_t ServerConnection::ReadBody(nghttp2_session* session, std::int32_t id, std::uint8_t* to,
                                   std::size_t size, std::uint32_t* flags,
                                   nghttp2_data_source* source, void* user) {
  Stream& stream = *static_cast<Stream*>(source->ptr);
  const std::string& body = stream.answer.body;
  const std::size_t n = std::min(size, body.size() - stream.offset);
  std::memcpy(to, body.data() + stream.offset, n);
  stream.offset += n;
  if (stream.offset < body.size()) return static_cast<ssize_t>(n);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (stream.answer.kind == ServedAnswer::Kind::kClose) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    Of(user).close_ = true;
  } else if (!stream.answer.trailers.empty()) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    const auto raw = Raw(stream.answer.trailers);
    nghttp2_submit_trailer(session, id, raw.data(), raw.size());
  }
  return static_cast<ssize_t>(n);
}

void ServerConnection::Answer(std::int32_t id) {
  Stream& stream = streams_[id];
  stream.request.connection = number_;
  ++server_.requests_;
  stream.answer = options_.script(stream.request);
  switch (stream.answer.kind) {
    case ServedAnswer::Kind::kNothing:
      return;
    case ServedAnswer::Kind::kReset:
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, stream.answer.code);
      return;
    case ServedAnswer::Kind::kRefuse:
      nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, id - 2 < 0 ? 0 : id - 2, NGHTTP2_NO_ERROR,
                            reinterpret_cast<const std::uint8_t*>("leaving"), 7);
      close_ = true;
      return;
    case ServedAnswer::Kind::kFlood:
      flood_ = true;
      return;
    case ServedAnswer::Kind::kClose:
    case ServedAnswer::Kind::kAnswer:
      Submit(id, stream);
  }
}

void ServerConnection::Submit(std::int32_t id, Stream& stream) {
  const auto raw = Raw(stream.answer.headers);
  const bool bodiless = stream.answer.body.empty() && stream.answer.trailers.empty() &&
                        stream.answer.kind == ServedAnswer::Kind::kAnswer;
  nghttp2_data_provider body{};
  body.source.ptr = &stream;
  body.read_callback = &ReadBody;
  nghttp2_submit_response(session_, id, raw.data(), raw.size(), bodiless ? nullptr : &body);
  if (stream.answer.goaway_after)
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR, nullptr, 0);
}

bool ServerConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t n =
        options_.piece > 0 ? std::min(options_.piece, bytes.size()) : bytes.size();
    const ssize_t sent = ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), static_cast<int>(n))
                                         : send(fd_, bytes.data(), n, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (options_.pause.count() > 0) std::this_thread::sleep_for(options_.pause);
  }
  return true;
}

bool ServerConnection::Write() {
  for (;;) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) return false;
    if (size == 0) break;
    if (!Send({reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)})) return false;
  }
  return true;
}

bool ServerConnection::Read() {
  std::array<std::uint8_t, 65536> bytes;
  const ssize_t got = ssl_ != nullptr ? SSL_read(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                                      : recv(fd_, bytes.data(), bytes.size(), 0);
  return got > 0 &&
         nghttp2_session_mem_recv(session_, bytes.data(), static_cast<std::size_t>(got)) >= 0;
}

void ServerConnection::Serve(const std::stop_token& stop) {
  const int on = 1, closings = server_.closings_;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sigset_t pipe;  // OpenSSL writes to connections that are gone; only this thread may
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  const auto alive = [&] { return !stop.stop_requested() && closings == server_.closings_; };
  while (options_.silent && alive()) std::this_thread::sleep_for(std::chrono::milliseconds(kTick));
  if (!options_.cert.empty() && !StartTls()) return;
  if (!options_.greeting.empty()) {
    Send(options_.greeting);
    while (alive()) std::this_thread::sleep_for(std::chrono::milliseconds(kTick));
    return;
  }
  Begin();
  bool go = Write();
  while (go && alive()) {
    pollfd at{fd_, POLLIN, 0};
    const bool readable =
        (ssl_ != nullptr && SSL_pending(ssl_) > 0) || poll(&at, 1, flood_ ? 0 : kTick) > 0;
    if (server_.silenced_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kTick));
      continue;
    }
    if (readable) go = Read();
    if (options_.pings_when_idle && !readable)
      nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    for (int i = 0; flood_ && i < 100; ++i)
      nghttp2_submit_window_update(session_, NGHTTP2_FLAG_NONE, 0, 1);
    go = go && Write() && !close_;
  }
}

ServedAnswer ServedAnswer::Ok(std::string_view message) {
  ServedAnswer answer;
  answer.body = FrameGrpcMessage(message);
  return answer;
}

ServedAnswer ServedAnswer::TrailersOnly(std::string status, std::string message) {
  ServedAnswer answer;
  answer.headers.emplace_back("grpc-status", std::move(status));
  answer.headers.emplace_back("grpc-message", std::move(message));
  answer.trailers.clear();
  return answer;
}

Http2Server::Http2Server(Options options)
    : options_(std::move(options)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 || listen(listener_, 64) != 0)
    GiveUp("no port");
  getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
  port_ = ntohs(at.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { Accept(stop); });
}

Http2Server::~Http2Server() {
  thread_.request_stop();
  thread_.join();
  close(listener_);
}

void Http2Server::CloseAll() {
  ++closings_;
  while (open_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Http2Server::Accept(const std::stop_token& stop) {
  std::vector<std::jthread> threads;
  while (!stop.stop_requested()) {
    pollfd at{listener_, POLLIN, 0};
    if (poll(&at, 1, kTick) <= 0) continue;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    // What a client that is gone does not read must not hold up the end.
    const timeval most{.tv_sec = 1, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    ++open_;
    threads.emplace_back([this, fd, number = ++accepted_, stop] {
      ServerConnection(*this, fd, number).Serve(stop);
      --open_;
    });
  }
}

}  // namespace leaf::rpc
