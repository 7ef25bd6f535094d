#pragma once

#include <cstdint>

namespace leaf {

/// What an epoll registration points to. Confined to its reactor.
class EventSink {
 public:
  virtual void OnEvents(std::uint32_t events) = 0;

 protected:
  ~EventSink() = default;
};

}  // namespace leaf
