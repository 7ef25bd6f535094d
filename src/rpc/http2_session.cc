// nghttp2 keeps the protocol's rules; here is what a call means in it. A request counts as sent
// from the moment that its last byte was taken for the wire: before that no server can have worked
// on it, because a message that is not complete is none.

#include "rpc/http2_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/assert.h"

namespace leaf::rpc {
namespace {

using Exchange = Http2Session::Exchange;

constexpr std::int32_t kWindow = 1 << 20;
constexpr std::size_t kMaxText = 4096;  // of a server's words

Error Unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }

nghttp2_nv Field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {  // nghttp2 copies and does not write
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string_view View(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// At most 8 digits, with the unit that still fits.
std::string TimeoutText(std::int64_t us) {
  constexpr std::int64_t kMost = 99'999'999;
  if (us <= kMost) return std::to_string(us) + "u";
  if (us / 1000 <= kMost) return std::to_string(us / 1000) + "m";
  return std::to_string(std::min(us / 1'000'000, kMost)) + "S";
}

Exchange* Of(nghttp2_session* session, std::int32_t stream) {
  return static_cast<Exchange*>(nghttp2_session_get_stream_user_data(session, stream));
}

void KeepText(std::string& to, std::string_view text) { to.assign(text.substr(0, kMaxText)); }

}  // namespace

struct Http2Session::Callbacks {
  static ssize_t ReadBody(nghttp2_session*, std::int32_t, std::uint8_t* to, std::size_t size,
                          std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& exchange = *static_cast<Exchange*>(source->ptr);
    const std::size_t n = std::min(size, exchange.frame.size() - exchange.offset);
    std::memcpy(to, exchange.frame.data() + exchange.offset, n);
    exchange.offset += n;
    if (exchange.offset == exchange.frame.size()) {
      exchange.whole = true;
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return static_cast<ssize_t>(n);
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame,
                      const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                      std::size_t value_size, std::uint8_t, void*) {
    Exchange* const exchange = Of(session, frame->hd.stream_id);
    if (exchange == nullptr) return 0;
    const std::string_view field = View(name, name_size), text = View(value, value_size);
    if (field == ":status") {
      exchange->http_status = std::atoi(std::string(text.substr(0, 3)).c_str());
    } else if (field == "content-type") {
      KeepText(exchange->content_type, text);
    } else if (field == "grpc-status") {
      exchange->status.emplace(text.substr(0, kMaxText));
    } else if (field == "grpc-message") {
      KeepText(exchange->message, text);
    }
    return 0;
  }

  static int OnData(nghttp2_session* session, std::uint8_t, std::int32_t stream,
                    const std::uint8_t* data, std::size_t size, void* user) {
    auto& self = *static_cast<Http2Session*>(user);
    Exchange* const exchange = Of(session, stream);
    if (exchange == nullptr || !exchange->fault.empty()) return 0;
    if (exchange->body.size() + size > self.max_message_ + kGrpcFrame) {
      exchange->fault = "the answer is larger than " + std::to_string(self.max_message_) + " bytes";
      self.Cancel(*exchange);
      return 0;
    }
    exchange->body += View(data, size);
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& self = *static_cast<Http2Session*>(user);
    const bool ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    if (frame->hd.type == NGHTTP2_SETTINGS && !ack) {
      self.greeted_ = true;
    } else if (frame->hd.type == NGHTTP2_PING && ack) {
      std::memcpy(&self.pings_answered_, frame->ping.opaque_data, sizeof self.pings_answered_);
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
      self.going_away_ = true;
      KeepText(self.farewell_, View(frame->goaway.opaque_data, frame->goaway.opaque_data_len));
    }
    return 0;
  }

  static int OnNotSent(nghttp2_session* session, const nghttp2_frame* frame, int, void*) {
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    Exchange* const exchange = Of(session, frame->hd.stream_id);
    if (exchange != nullptr) exchange->refused = exchange->closed = true;
    return 0;
  }

  static int OnClose(nghttp2_session* session, std::int32_t stream, std::uint32_t code, void*) {
    Exchange* const exchange = Of(session, stream);
    if (exchange == nullptr) return 0;
    exchange->closed = true;
    exchange->reset = code;
    exchange->refused = exchange->refused || code == NGHTTP2_REFUSED_STREAM;
    return 0;
  }
};

Http2Session::Http2Session(std::size_t max_message) : max_message_(max_message) {
  nghttp2_session_callbacks* callbacks = nullptr;
  LEAF_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &Callbacks::OnHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Callbacks::OnData);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Callbacks::OnFrame);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, &Callbacks::OnNotSent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Callbacks::OnClose);
  const int made = nghttp2_session_client_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  LEAF_ASSERT(made == 0);
  const std::array<nghttp2_settings_entry, 3> settings{
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
       {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow},
       {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 16384}}};
  LEAF_ASSERT(
      nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
  LEAF_ASSERT(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindow) == 0);
}

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

Result<std::string_view> Http2Session::Produce() {
  const std::uint8_t* data = nullptr;
  const ssize_t size = nghttp2_session_mem_send(session_, &data);
  if (size < 0)
    return Unavailable(std::string("HTTP/2: ") + nghttp2_strerror(static_cast<int>(size)));
  return View(data, static_cast<std::size_t>(size));
}

Result<void> Http2Session::Consume(std::string_view bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken >= 0) return {};
  const std::string why = nghttp2_strerror(static_cast<int>(taken));
  return Unavailable(greeted_ ? "HTTP/2: " + why
                              : "the server does not speak HTTP/2, so it speaks no gRPC: " + why);
}

Result<Exchange*> Http2Session::Begin(const GrpcCall& call, std::string_view authority,
                                      bool encrypted, std::int64_t timeout_us) {
  const std::string timeout = TimeoutText(timeout_us);
  std::vector<nghttp2_nv> fields{Field(":method", "POST"),
                                 Field(":scheme", encrypted ? "https" : "http"),
                                 Field(":path", call.path),
                                 Field(":authority", authority),
                                 Field("te", "trailers"),
                                 Field("content-type", "application/grpc"),
                                 Field("user-agent", "leafd/" LEAFD_VERSION),
                                 Field("grpc-timeout", timeout)};
  for (const auto& [name, value] : call.metadata) fields.push_back(Field(name, value));
  Exchange& exchange = exchanges_.emplace_back();
  exchange.frame = FrameGrpcMessage(call.request);
  nghttp2_data_provider body{};
  body.source.ptr = &exchange;
  body.read_callback = &Callbacks::ReadBody;
  exchange.stream =
      nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(), &body, &exchange);
  if (exchange.stream > 0) return &exchange;
  const std::string why = nghttp2_strerror(exchange.stream);
  exchanges_.pop_back();
  return Unavailable("HTTP/2: " + why);
}

void Http2Session::Cancel(Exchange& exchange) {
  // It fails for want of memory only; then the connection's end tells the server.
  [[maybe_unused]] const int submitted =
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, exchange.stream, NGHTTP2_CANCEL);
}

GrpcReply Http2Session::Conclude(const Exchange& exchange, const std::string& why) {
  GrpcReply reply;
  const bool sent = exchange.whole && !exchange.refused;
  reply.end = sent ? GrpcReply::End::kUnknown : GrpcReply::End::kNotSent;
  const bool reset = exchange.closed && exchange.reset != NGHTTP2_NO_ERROR;
  const std::optional<GrpcStatus> told =
      exchange.status ? ParseGrpcStatus(*exchange.status) : std::nullopt;
  const GrpcStatus status = told.value_or(GrpcStatus::kUnknown);
  if (!exchange.fault.empty()) {
    reply.message = exchange.fault;
  } else if (exchange.refused) {
    reply.message = "the server takes no more calls on this connection";
  } else if (!exchange.closed) {
    reply.message = why;
  } else if (reset) {
    reply.message =
        std::string("the server ended the call: ") + nghttp2_http2_strerror(exchange.reset);
  } else if (exchange.http_status != 200) {
    reply.message =
        "HTTP status " + std::to_string(exchange.http_status) + " instead of an answer of gRPC";
  } else if (!exchange.content_type.starts_with("application/grpc")) {
    reply.message = "the answer is '" + exchange.content_type + "' and not gRPC";
  } else if (!told) {
    reply.message = "the answer has no grpc-status";
  } else if (const std::string_view fault = GrpcFrameFault(exchange.body);
             status == GrpcStatus::kOk && !fault.empty()) {
    reply.message = fault;
  } else {
    reply.end = GrpcReply::End::kAnswered;
    reply.status = status;
    reply.message = DecodeGrpcMessage(exchange.message);
    if (status == GrpcStatus::kOk) reply.body = exchange.body.substr(kGrpcFrame);
  }
  return reply;
}

void Http2Session::SendPing() {
  std::array<std::uint8_t, 8> payload{};
  ++pings_sent_;
  std::memcpy(payload.data(), &pings_sent_, sizeof pings_sent_);
  LEAF_ASSERT(nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, payload.data()) == 0);
}

void Http2Session::SendGoodbye() {
  // Whether it can be said makes no difference to us.
  [[maybe_unused]] const int submitted =
      nghttp2_session_terminate_session(session_, NGHTTP2_NO_ERROR);
}

bool Http2Session::over() const noexcept {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

}  // namespace leaf::rpc
