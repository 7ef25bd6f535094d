#include "base/serial_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace leaf {
namespace {

TEST(SerialThreadTest, RunsJobsInTheOrderPosted) {
  std::vector<int> seen;
  std::promise<void> done;
  {
    SerialThread thread;
    for (int i = 0; i < 100; ++i) thread.Post([&seen, i] { seen.push_back(i); });
    thread.Post([&done] { done.set_value(); });
    done.get_future().wait();
  }
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(SerialThreadTest, TheEndDropsWhatHasNotBegunAndWaitsForWhatHas) {
  std::atomic<bool> finished{false}, second{false};
  std::promise<void> begun, go;
  std::thread releaser;
  {
    SerialThread thread;
    thread.Post([&] {
      begun.set_value();
      go.get_future().wait();
      finished = true;
    });
    thread.Post([&] { second = true; });
    begun.get_future().wait();
    releaser = std::thread([&go] { go.set_value(); });
  }
  releaser.join();
  EXPECT_TRUE(finished);
}

TEST(SerialThreadTest, AJobThatIsStuckDoesNotHoldTheEnd) {
  auto go = std::make_shared<std::promise<void>>();
  auto ended = std::make_shared<std::promise<void>>();
  {
    SerialThread thread;
    std::promise<void> begun;
    thread.Post([go, ended, &begun] {
      begun.set_value();
      go->get_future().wait();
      ended->set_value();
    });
    begun.get_future().wait();
  }
  go->set_value();
  ended->get_future().wait();
}

}  // namespace
}  // namespace leaf
