#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/http1/service.h"

namespace leaf::fakes {

/// Where an answer lands, at once or later.
struct Landing {
  std::optional<http1::Response> response;
};

class FakeLater final : public http1::Later {
 public:
  explicit FakeLater(std::shared_ptr<Landing> landing) : landing_(std::move(landing)) {}
  void Reply(http1::Response response) override {
    EXPECT_FALSE(landing_->response.has_value()) << "answered twice";
    landing_->response = std::move(response);
  }

 private:
  std::shared_ptr<Landing> landing_;
};

/// What a test asks, with the strings that the request's views point into.
struct Ask {
  http1::Method method = http1::Method::kGet;
  std::string target;
  std::string accept = {};
  std::string body = {};
  std::string content_type = {};
  std::string host = "127.0.0.1:8081";
  bool local = true;
  bool admin_header = false;
};

/// One request before a service. Confined to its test.
class FakeExchange final : public http1::Exchange {
 public:
  explicit FakeExchange(Ask ask) : ask_(std::move(ask)) {
    const std::string_view target = ask_.target;
    const std::size_t question = target.find('?');
    request_.method = ask_.method;
    request_.method_text = "METHOD";
    request_.target = target;
    request_.path = target.substr(0, question);
    if (question != std::string_view::npos) request_.query = target.substr(question + 1);
    request_.accept = ask_.accept;
    request_.body = ask_.body;
    request_.content_type = ask_.content_type;
    request_.host = ask_.host;
    if (ask_.admin_header) request_.headers[0] = {"x-leafd-admin", "1"};
    request_.header_count = ask_.admin_header ? 1 : 0;
  }

  const http1::Request& request() const noexcept override { return request_; }
  bool peer_is_local() const noexcept override { return ask_.local; }
  void Reply(http1::Response response) override {
    EXPECT_FALSE(deferred_ || landing_->response.has_value()) << "answered twice";
    landing_->response = std::move(response);
  }
  std::shared_ptr<http1::Later> Defer() override {
    EXPECT_FALSE(deferred_ || landing_->response.has_value()) << "deferred after an answer";
    deferred_ = true;
    return std::make_shared<FakeLater>(landing_);
  }

  std::shared_ptr<Landing> landing() const { return landing_; }
  bool deferred() const noexcept { return deferred_; }

 private:
  const Ask ask_;
  http1::Request request_;
  std::shared_ptr<Landing> landing_ = std::make_shared<Landing>();
  bool deferred_ = false;
};

}  // namespace leaf::fakes
