#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/frontend_test_support.h"
#include "tests/fakes/engine_rig.h"
#include "tests/fakes/map_registry.h"

namespace leaf::test {
namespace {

/// Workers in memory whose answers are held back while `held` is set. Thread-safe.
class HeldRegistry final : public WorkerRegistry {
 public:
  void Hold(bool hold) {
    std::deque<std::function<void()>> calls;
    {
      const std::lock_guard lock(mu_);
      held_ = hold;
      if (!hold) calls.swap(calls_);
    }
    for (const auto& call : calls) call();
  }

  RegistryTraits traits() const noexcept override { return {}; }
  void Claim(ClaimAsk ask, Done<WorkerRight> done) override {
    Call<WorkerRight>(std::move(done), [this, ask](Done<WorkerRight> keep) {
      workers_.Claim(ask, std::move(keep));
    });
  }
  void Extend(WorkerRight right, std::int64_t limit_ms, std::int64_t lease_ms, Instant deadline,
              Done<WorkerRight> done) override {
    Call<WorkerRight>(std::move(done), [=, this](Done<WorkerRight> keep) {
      workers_.Extend(right, limit_ms, lease_ms, deadline, std::move(keep));
    });
  }
  void Lower(WorkerRight right, std::int64_t limit_ms, Instant deadline,
             Done<WorkerRight> done) override {
    Call<WorkerRight>(std::move(done), [=, this](Done<WorkerRight> keep) {
      workers_.Lower(right, limit_ms, deadline, std::move(keep));
    });
  }
  void List(Instant, Done<std::vector<WorkerRecord>> done) override {
    done(std::vector<WorkerRecord>{});
  }
  void Retire(std::int64_t, Instant, Done<WorkerRecord> done) override {
    done(Error{Code::kNotFound, "no such worker"});
  }
  RegistryStatus Status() const override { return {}; }

 private:
  /// Runs `work` now or when it is let go, and answers outside the lock.
  template <typename T>
  void Call(Done<T> done, std::function<void(Done<T>)> work) {
    const auto call = [this, done = std::move(done), work = std::move(work)] {
      Result<T> answer = Error{Code::kInternal, "not answered"};
      {
        const std::lock_guard lock(mu_);
        work([&answer](Result<T> result) { answer = std::move(result); });
      }
      done(std::move(answer));
    };
    {
      const std::lock_guard lock(mu_);
      if (held_) {
        calls_.emplace_back(call);
        return;
      }
    }
    call();
  }

  std::mutex mu_;
  bool held_ = true;
  std::deque<std::function<void()>> calls_;
  fakes::MapRegistry workers_;
};

class NotMine final : public http1::Service {
 public:
  bool Handle(http1::Exchange& exchange) override {
    http1::Response response;
    response.status = 404;
    exchange.Reply(std::move(response));
    return true;
  }
};

SnowflakeOptions Options() {
  SnowflakeOptions options;
  options.identity = "10.0.0.1:8080";
  options.wait = seconds(8);  // a held answer comes within it
  options.call_timeout = seconds(60);
  return options;
}

/// A Frontend over the real engine of snowflake mode, without segment mode. Until the registry is
/// let go there is no right to mint, and requests wait.
class FrontendSnowflakeTest : public testing::Test {
 protected:
  FrontendSnowflakeTest() {
    EXPECT_TRUE(engine_.Load().ok());
    engine_.SetWake([this] {
      const std::lock_guard lock(mu_);
      woken_ = true;
      wake_.notify_one();
    });
    ticker_ = std::jthread([this](const std::stop_token& stop) { Tick(stop); });
    running_ =
        std::make_unique<Running>(Loopback(2), &handler_, std::vector<http1::Service*>{&not_mine_});
  }
  ~FrontendSnowflakeTest() override {
    // The reactors outlive the thread that posts to them.
    running_->Stop();
    registry_.Hold(false);
    std::atomic<bool> closed = false;
    engine_.Close([&] { closed = true; });
    EXPECT_TRUE(Eventually([&] { return closed.load(); }));
    ticker_.request_stop();
    ticker_.join();
  }

  void Tick(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      (void)engine_.Tick(SystemClock().Now());
      std::unique_lock lock(mu_);
      wake_.wait_for(lock, milliseconds(2), [&] { return woken_; });
      woken_ = false;
    }
  }
  std::int64_t parked() const { return engine_.View().parked; }
  void LetGo() {
    registry_.Hold(false);
    EXPECT_TRUE(Eventually([&] { return engine_.View().serving; }));
  }
  static std::string Request() { return "GET /api/snowflake/get/a HTTP/1.1\r\nHost: a\r\n\r\n"; }
  static std::int64_t Id(const Answer& answer) {
    EXPECT_EQ(200, answer.status) << answer.head << answer.body;
    return answer.status == 200 ? std::stoll(answer.body) : -1;
  }

  HeldRegistry registry_;
  fakes::CountingRandom random_;
  SnowflakeEngine engine_{Options(),
                          {.registry = registry_, .clock = SystemClock(), .random = random_}};
  IdService ids_{nullptr, IdLimits{}, &engine_};
  IdsHandler handler_{ids_, SystemClock(), {}};
  NotMine not_mine_;
  std::mutex mu_;
  std::condition_variable wake_;
  bool woken_ = false;
  std::jthread ticker_;
  std::unique_ptr<Running> running_;
};

TEST_F(FrontendSnowflakeTest, IdsRiseOnEachConnectionAndNoneIsGivenTwice) {
  LetGo();
  std::vector<std::vector<std::int64_t>> taken(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : taken) {
      threads.emplace_back([&] {
        Client client = running_->Connect();
        for (int i = 0; i < 500; ++i) ids.push_back(Id(client.Get("/api/snowflake/get/a")));
      });
    }
  }
  std::vector<std::int64_t> all;
  for (const auto& ids : taken) {
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.end(), std::adjacent_find(all.begin(), all.end()));
  EXPECT_EQ(all.size(), 2000U);
}

TEST_F(FrontendSnowflakeTest, ARequestThatParksHoldsBackThoseBehindIt) {
  Client client = running_->Connect();
  client.Send(Request() + "GET /other HTTP/1.1\r\nHost: a\r\n\r\n" + Request());
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  LetGo();
  const std::int64_t first = Id(client.Read());
  EXPECT_EQ(404, client.Read().status);
  EXPECT_GT(Id(client.Read()), first);
}

TEST_F(FrontendSnowflakeTest, ManyThatWaitAreAllServed) {
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(running_->Connect());
    clients.back().Send("GET /api/v1/snowflake?n=3 HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  EXPECT_TRUE(Eventually([&] { return parked() == 20; }));
  LetGo();
  std::vector<std::string> bodies;
  for (Client& client : clients) {
    const Answer answer = client.Read();
    EXPECT_EQ(200, answer.status) << answer.body;
    EXPECT_TRUE(answer.Has("Cache-Control: no-store"));
    bodies.push_back(answer.body);
  }
  std::sort(bodies.begin(), bodies.end());
  EXPECT_EQ(bodies.end(), std::adjacent_find(bodies.begin(), bodies.end()));
  EXPECT_EQ(engine_.View().issued, 60U);
}

TEST_F(FrontendSnowflakeTest, AHalfClosedClientGetsTheIdItWaitsFor) {
  Client client = running_->Connect();
  client.Send(Request());
  client.HalfClose();
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  EXPECT_EQ(100, client.Read().status);
  LetGo();
  EXPECT_GT(Id(client.Read()), 0);
  EXPECT_TRUE(client.Ended());
}

TEST_F(FrontendSnowflakeTest, AClientThatLeavesIsTakenOutOfTheQueue) {
  std::vector<Client> leaving;
  for (int i = 0; i < 20; ++i) {
    leaving.push_back(running_->Connect());
    leaving.back().Send(Request());
  }
  Client staying = running_->Connect();
  staying.Send(Request());
  EXPECT_TRUE(Eventually([&] { return parked() == 21; }));
  leaving.clear();
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  EXPECT_TRUE(Eventually([&] { return running_->frontend().connections() == 1; }));
  LetGo();
  EXPECT_GT(Id(staying.Read()), 0);
  EXPECT_EQ(engine_.View().issued, 1U) << "those that left took none";
}

TEST_F(FrontendSnowflakeTest, ClientsMayLeaveWhileTheirIdsAreOnTheWay) {
  std::vector<Client> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(running_->Connect());
    clients.back().Send(Request());
  }
  EXPECT_TRUE(Eventually([&] { return parked() == 50; }));
  {
    const std::jthread granting([&] { registry_.Hold(false); });
    clients.clear();
  }
  EXPECT_TRUE(Eventually([&] { return running_->frontend().connections() == 0; }));
  EXPECT_EQ(0, parked());
  Client client = running_->Connect();
  EXPECT_GT(Id(client.Get("/api/snowflake/get/a")), 0);
}

TEST_F(FrontendSnowflakeTest, StoppingEndsRequestsThatWait) {
  Client client = running_->Connect();
  client.Send(Request());
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  running_->Stop();
  EXPECT_EQ(0, parked());
  EXPECT_TRUE(client.Ended());
}

TEST_F(FrontendSnowflakeTest, AnAnswerThatWaitedThroughTheDrainEndsItsConnection) {
  Client client = running_->Connect();
  client.Send(Request());
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  running_->frontend().Drain();
  LetGo();
  const Answer answer = client.Read();
  EXPECT_GT(Id(answer), 0);
  EXPECT_TRUE(answer.Has("Connection: close")) << answer.head;
  EXPECT_TRUE(client.Ended());
}

TEST_F(FrontendSnowflakeTest, WithoutSegmentModeItsPathsSaySo) {
  Client client = running_->Connect();
  const Answer leaf = client.Get("/api/segment/get/a");
  EXPECT_EQ(500, leaf.status);
  EXPECT_TRUE(leaf.Has("X-Leafd-Code: disabled")) << leaf.head;
  EXPECT_EQ(409, client.Get("/api/v1/ids/a").status);
}

}  // namespace
}  // namespace leaf::test
