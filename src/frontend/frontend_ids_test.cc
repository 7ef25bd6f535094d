#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/frontend_test_support.h"
#include "tests/fakes/engine_rig.h"

namespace leaf::test {
namespace {

/// One row a tag, in memory; grants are held back while `held` is set. Thread-safe.
class HeldStore final : public SegmentStore {
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
  std::int64_t reserved_end() const {
    const std::lock_guard lock(mu_);
    return next_;
  }

  void Reserve(std::span<const Ask> asks, GrantSink& sink) override {
    for (const Ask& ask : asks) {
      Call([this, ask, &sink] {
        Grant grant{.flight = ask.flight,
                    .outcome = Outcome::kGranted,
                    .error = {},
                    .range = {},
                    .row_step = 100,
                    .store_id = 1};
        {
          const std::lock_guard lock(mu_);
          grant.range = {next_, next_ + ask.count};
          next_ += ask.count;
        }
        sink.OnGrant(grant);
      });
    }
  }
  void Find(std::string tag, Instant, Done<std::optional<Row>> done) override {
    Call([tag, done] {
      done(tag == "absent" ? std::nullopt : std::optional(Row{tag, 1, 100, ""}));
    });
  }
  void List(std::string, int, Instant, Done<std::vector<Row>> done) override {
    Call([done] { done(std::vector<Row>{Row{"a", 1, 100, ""}}); });
  }
  void Create(std::string, std::int64_t, std::int64_t, Instant, Done<Row>) override {}
  void SetStep(std::string, std::int64_t, Instant, Done<Row>) override {}
  void Delete(std::string, Instant, Done<Row>) override {}
  void Raise(std::string, std::int64_t, std::int64_t, Instant, Done<std::int64_t>) override {}
  void HandBack(std::string, Range, std::uint64_t, Instant, Done<bool> done) override {
    done(true);
  }
  StoreStatus Status() const override { return {}; }
  void Abort() noexcept override {}

 private:
  void Call(std::function<void()> call) {
    {
      const std::lock_guard lock(mu_);
      if (held_) {
        calls_.push_back(std::move(call));
        return;
      }
    }
    call();
  }

  mutable std::mutex mu_;
  bool held_ = false;
  std::int64_t next_ = 1;
  std::deque<std::function<void()>> calls_;
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

/// A Frontend over a real engine whose store can be held back.
class FrontendIdsTest : public testing::Test {
 protected:
  FrontendIdsTest() {
    const Result<void> loaded = engine_.Load();
    EXPECT_TRUE(loaded.ok());
    engine_.SetWake([this] {
      const std::lock_guard lock(mu_);
      woken_ = true;
      wake_.notify_one();
    });
    ticker_ = std::jthread([this](const std::stop_token& stop) { Tick(stop); });
    running_ = std::make_unique<Running>(Loopback(2), &handler_,
                                         std::vector<http1::Service*>{&not_mine_}, &engine_);
  }
  ~FrontendIdsTest() override {
    // The reactors outlive the thread that posts to them.
    running_->Stop();
    ticker_.request_stop();
    ticker_.join();
    std::atomic<bool> closed = false;
    engine_.Close([&] { closed = true; });
    EXPECT_TRUE(Eventually([&] {
      (void)engine_.Tick(SystemClock().Now());
      return closed.load();
    }));
  }

  void Tick(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      (void)engine_.Tick(SystemClock().Now());
      std::unique_lock lock(mu_);
      wake_.wait_for(lock, milliseconds(2), [&] { return woken_; });
      woken_ = false;
    }
  }
  std::int64_t parked() const { return engine_.Sum().parked; }
  static std::string Request(const std::string& more = {}) {
    return "GET /api/segment/get/a HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
  }
  static std::int64_t Id(const Answer& answer) {
    EXPECT_EQ(200, answer.status) << answer.head << answer.body;
    return answer.status == 200 ? std::stoll(answer.body) : -1;
  }

  HeldStore store_;
  fakes::NoJournal journal_;
  fakes::CountingRandom random_;
  std::unique_ptr<RefillPolicy> policy_ = MakeFixedPolicy();
  Engine engine_{EngineOptions{}, store_, journal_, *policy_, SystemClock(), random_};
  IdService ids_{&engine_, IdLimits{}};
  IdsHandler handler_{ids_, SystemClock(), {}};
  NotMine not_mine_;
  std::mutex mu_;
  std::condition_variable wake_;
  bool woken_ = false;
  std::jthread ticker_;
  std::unique_ptr<Running> running_;
};

TEST_F(FrontendIdsTest, IdsRiseOnEachConnectionAndNoneIsGivenTwice) {
  std::vector<std::vector<std::int64_t>> taken(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : taken) {
      threads.emplace_back([&] {
        Client client = running_->Connect();
        for (int i = 0; i < 500; ++i) ids.push_back(Id(client.Get("/api/segment/get/a")));
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
}

TEST_F(FrontendIdsTest, ARequestThatParksHoldsBackThoseBehindIt) {
  store_.Hold(true);
  Client client = running_->Connect();
  client.Send(Request() + "GET /other HTTP/1.1\r\nHost: a\r\n\r\n" + Request());
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  store_.Hold(false);
  const std::int64_t first = Id(client.Read());
  EXPECT_EQ(404, client.Read().status);
  EXPECT_GT(Id(client.Read()), first);
}

TEST_F(FrontendIdsTest, AHalfClosedClientGetsTheIdItWaitsFor) {
  store_.Hold(true);
  Client client = running_->Connect();
  client.Send(Request());
  client.HalfClose();
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  EXPECT_EQ(100, client.Read().status);
  store_.Hold(false);
  EXPECT_GT(Id(client.Read()), 0);
  EXPECT_TRUE(client.Ended());
}

TEST_F(FrontendIdsTest, AClientThatLeavesIsTakenOutOfTheQueue) {
  store_.Hold(true);
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
  store_.Hold(false);
  EXPECT_GT(Id(staying.Read()), 0);
}

TEST_F(FrontendIdsTest, ClientsMayLeaveWhileTheirIdsAreOnTheWay) {
  for (int round = 0; round < 30; ++round) {
    store_.Hold(true);
    std::vector<Client> clients;
    for (int i = 0; i < 10; ++i) {
      clients.push_back(running_->Connect());
      // A tag of its own, or the ids that an earlier round left over would serve this one.
      clients.back().Send("GET /api/v1/ranges/t" + std::to_string(round) +
                          "?n=1000 HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    EXPECT_TRUE(Eventually([&] { return parked() == 10; }));
    std::jthread granting([&] { store_.Hold(false); });
    clients.clear();
  }
  EXPECT_TRUE(Eventually([&] { return running_->frontend().connections() == 0; }));
  EXPECT_EQ(0, parked());
  Client client = running_->Connect();
  EXPECT_GT(Id(client.Get("/api/segment/get/a")), 0);
}

TEST_F(FrontendIdsTest, StoppingEndsRequestsThatWait) {
  store_.Hold(true);
  Client client = running_->Connect();
  client.Send(Request());
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  running_->Stop();
  EXPECT_EQ(0, parked());
  EXPECT_TRUE(client.Ended());
  store_.Hold(false);
}

TEST_F(FrontendIdsTest, AnAnswerThatWaitedThroughTheDrainEndsItsConnection) {
  store_.Hold(true);
  Client client = running_->Connect();
  client.Send(Request());
  EXPECT_TRUE(Eventually([&] { return parked() == 1; }));
  running_->frontend().Drain();
  store_.Hold(false);
  const Answer answer = client.Read();
  EXPECT_GT(Id(answer), 0);
  EXPECT_TRUE(answer.Has("Connection: close")) << answer.head;
  EXPECT_TRUE(client.Ended());
}

// F55: what a client did not read is burnt, never given again.
TEST_F(FrontendIdsTest, APipelineCutInTheMiddleBurnsItsIds) {
  std::string thousand;
  for (int i = 0; i < 1000; ++i) thousand += Request();
  std::int64_t highest_read = 0;
  {
    Client client = running_->Connect();
    client.Send(thousand);
    highest_read = Id(client.Read());
    EXPECT_GT(Id(client.Read()), highest_read++);
  }
  EXPECT_TRUE(Eventually([&] { return running_->frontend().connections() == 0; }));
  Client next = running_->Connect();
  EXPECT_GT(Id(next.Get("/api/segment/get/a")), highest_read);
  EXPECT_LE(Id(next.Get("/api/segment/get/a")), store_.reserved_end());
}

TEST_F(FrontendIdsTest, RefusesOutsideTheApiAsLeafDoesAndBelowItWithAProblem) {
  Client leafs = running_->Connect();
  leafs.Send("GET /api/segment/get/a HTTP/1.1\r\n\r\n");
  const Answer bare = leafs.Read();
  EXPECT_EQ(400, bare.status);
  EXPECT_TRUE(bare.Has("Content-Length: 0"));
  EXPECT_TRUE(bare.Has("X-Leafd-Code: invalid_argument"));
  Client ours = running_->Connect();
  ours.Send("GET /api/v1/ids/a HTTP/1.1\r\n\r\n");
  const Answer problem = ours.Read();
  EXPECT_EQ(400, problem.status);
  EXPECT_TRUE(problem.Has("Content-Type: application/problem+json"));
}

TEST_F(FrontendIdsTest, CountsWhatItAnswered) {
  {
    Client client = running_->Connect();
    client.Send(Request() + Request() + Request());
    for (int i = 0; i < 3; ++i) EXPECT_GT(Id(client.Read()), 0);
    EXPECT_EQ(404, client.Get("/other").status);
  }
  const auto sum = [&](auto of) {
    std::uint64_t total = 0;
    for (int i = 0; i < running_->frontend().reactors(); ++i)
      total += of(running_->frontend().stats(i));
    return total;
  };
  EXPECT_EQ(3U, sum([](const RequestStats& s) {
              return s.requests(Protocol::kHttp, RequestStats::kOk);
            }));
  EXPECT_EQ(1U, sum([](const RequestStats& s) {
              return s.requests(Protocol::kHttp, static_cast<int>(Code::kNotFound));
            }));
  EXPECT_EQ(3U, sum([](const RequestStats& s) { return s.ids(); }));
  EXPECT_EQ(4U, sum([](const RequestStats& s) {
              std::uint64_t took = 0;
              for (int i = 0; i <= static_cast<int>(RequestStats::kBounds.size()); ++i)
                took += s.bucket(Protocol::kHttp, i);
              return took;
            }));
}

}  // namespace
}  // namespace leaf::test
