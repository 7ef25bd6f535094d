#pragma once

namespace leaf {

/// A unit of work that carries its own link, so that posting it never allocates. It may be posted
/// again only after its Run was entered.
class Task {
 public:
  virtual void Run() = 0;

  Task* next_task = nullptr;  ///< owned by the Executor while queued

 protected:
  ~Task() = default;
};

/// Runs tasks, in the order posted, on one thread. Post is thread-safe and never blocks.
class Executor {
 public:
  virtual void Post(Task& task) noexcept = 0;

 protected:
  ~Executor() = default;
};

}  // namespace leaf
