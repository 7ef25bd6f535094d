#include "base/serial_thread.h"

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace leaf {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);

}  // namespace

struct SerialThread::State {
  Mutex mu;
  CondVar changed;
  std::deque<std::function<void()>> jobs GUARDED_BY(mu);
  bool stop GUARDED_BY(mu) = false, ended GUARDED_BY(mu) = false;

  void Run() {
    for (;;) {
      std::function<void()> job;
      {
        const MutexLock lock(mu);
        while (jobs.empty() && !stop) changed.Wait(mu);
        if (stop) break;
        job = std::move(jobs.front());
        jobs.pop_front();
      }
      job();
    }
    const MutexLock lock(mu);
    ended = true;
    changed.NotifyAll();
  }
};

SerialThread::SerialThread() : state_(std::make_shared<State>()) {
  std::thread([state = state_] { state->Run(); }).detach();
}

SerialThread::~SerialThread() {
  std::deque<std::function<void()>> dropped;
  const MutexLock lock(state_->mu);
  state_->stop = true;
  dropped.swap(state_->jobs);
  state_->changed.NotifyAll();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!state_->ended) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return;
    state_->changed.WaitFor(state_->mu, left);
  }
}

void SerialThread::Post(std::function<void()> job) {
  const MutexLock lock(state_->mu);
  state_->jobs.push_back(std::move(job));
  state_->changed.NotifyAll();
}

}  // namespace leaf
