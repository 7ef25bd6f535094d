#include "rpc/grpc.h"

#include <charconv>

namespace leaf::rpc {
namespace {

constexpr int kLastStatus = 16;

std::optional<unsigned char> HexByte(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<unsigned char>(value);
}

}  // namespace

std::optional<GrpcStatus> ParseGrpcStatus(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value > kLastStatus ? GrpcStatus::kUnknown : static_cast<GrpcStatus>(value);
}

std::string DecodeGrpcMessage(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && text.size() - i > 2) {
      if (const auto byte = HexByte(text.substr(i + 1, 2))) {
        out += static_cast<char>(*byte);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

std::string FrameGrpcMessage(std::string_view message) {
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string frame(1, '\0');  // not compressed
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>((size >> shift) & 0xFF);
  frame += message;
  return frame;
}

std::string_view GrpcFrameFault(std::string_view body) {
  if (body.empty()) return "the answer holds no message";
  if (body.size() < kGrpcFrame) return "the answer's message is cut off";
  if (body[0] != 0) return "the answer is compressed, which was not asked for";
  std::size_t size = 0;
  for (std::size_t i = 1; i < kGrpcFrame; ++i)
    size = (size << 8) | static_cast<unsigned char>(body[i]);
  if (body.size() - kGrpcFrame < size) return "the answer's message is cut off";
  if (body.size() - kGrpcFrame > size) return "the answer holds more than one message";
  return "";
}

}  // namespace leaf::rpc
