#pragma once

#include <condition_variable>
#include <mutex>

/// Clang's thread-safety annotations; nothing under other compilers. libstdc++'s std::mutex carries
/// none, hence the wrappers below.
#if defined(__clang__)
#define LEAF_ANNOTATE(x) __attribute__((x))
#else
#define LEAF_ANNOTATE(x)
#endif
#define GUARDED_BY(x) LEAF_ANNOTATE(guarded_by(x))
#define REQUIRES_LOCK(...) LEAF_ANNOTATE(requires_capability(__VA_ARGS__))
#define EXCLUDES_LOCK(...) LEAF_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace leaf {

class LEAF_ANNOTATE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() LEAF_ANNOTATE(acquire_capability()) { mu_.lock(); }
  void Unlock() LEAF_ANNOTATE(release_capability()) { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class LEAF_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mu) LEAF_ANNOTATE(acquire_capability(mu)) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() LEAF_ANNOTATE(release_capability()) { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

/// A condition variable for a Mutex. Waits may wake without cause: call them in a loop.
class CondVar {
 public:
  void Wait(Mutex& mu) REQUIRES_LOCK(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  /// False if `timeout` passed first.
  template <typename Rep, typename Period>
  bool WaitFor(Mutex& mu, std::chrono::duration<Rep, Period> timeout) REQUIRES_LOCK(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool signalled = cv_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return signalled;
  }
  void NotifyOne() noexcept { cv_.notify_one(); }
  void NotifyAll() noexcept { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace leaf
