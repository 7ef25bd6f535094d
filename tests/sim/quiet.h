#pragma once

#include <cstdint>
#include <string>

namespace leaf::sim {

/// Keeps the engine's log, which a history of faults fills, off the terminal while it lives. When
/// an assertion of the engine ends the program meanwhile, the last lines and `reproduce` are
/// printed. One at a time.
class Quiet {
 public:
  explicit Quiet(const std::string& reproduce);
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int saved_;
  int held_;
};

}  // namespace leaf::sim
