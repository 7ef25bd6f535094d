#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/snowflake/worker_registry.h"

namespace leaf {

/// The last minted time as a word of a memory-mapped file in the state folder: the kernel keeps
/// what a killed process wrote. A power loss may lose it; it serves order only.
class OrderFile final : public OrderWord {
 public:
  /// Makes the file (0600, one block allocated so that no write can fault) or reads it; never
  /// through a symlink. A file that is not ours is an error that names it.
  static Result<std::unique_ptr<OrderFile>> Open(const std::string& path);
  ~OrderFile() override;
  OrderFile(const OrderFile&) = delete;
  OrderFile& operator=(const OrderFile&) = delete;

  std::optional<std::int64_t> Last() const override { return last_; }
  std::atomic<std::int64_t>& word() noexcept override { return *word_; }

 private:
  OrderFile() = default;
  void* page_ = nullptr;
  std::atomic<std::int64_t>* word_ = nullptr;
  std::optional<std::int64_t> last_;
};

}  // namespace leaf
