#include "store/memory/memory_driver.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/random.h"
#include "store/refusals.h"

namespace leaf {
namespace {

std::string NewIdentity() {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "memory:%016llx",
                static_cast<unsigned long long>(SystemRandom().Next()));
  return text.data();
}

std::string NowText() {
  const std::time_t now = SystemClock().WallMillis() / 1000;
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S.0", &utc);
  return text.data();
}

}  // namespace

MemoryTable::MemoryTable() : identity_(NewIdentity()) {}

void MemoryTable::Put(std::string tag, std::int64_t max_id, std::int64_t step) {
  MutexLock lock(mu_);
  Row row{tag, max_id, step, NowText()};
  rows_.insert_or_assign(std::move(tag), std::move(row));
}

std::optional<Row> MemoryTable::Get(std::string_view tag) {
  MutexLock lock(mu_);
  const auto it = rows_.find(tag);
  if (it == rows_.end()) return std::nullopt;
  return it->second;
}

class MemoryDriver final : public SegmentDriver {
 public:
  explicit MemoryDriver(std::shared_ptr<MemoryTable> table) : table_(std::move(table)) {}

  Result<StoreInfo> Open(Instant) override {
    open_ = true;
    return StoreInfo{Durability::kVolatile, table_->identity(), {}};
  }
  bool connected() const noexcept override { return open_; }
  void Close() noexcept override { open_ = false; }
  void Interrupt() noexcept override {}

  int batch_limit() const noexcept override { return 64; }

  void Reserve(std::span<const Ask> asks, std::span<Grant> grants) override {
    MutexLock lock(table_->mu_);
    for (std::size_t i = 0; i < asks.size(); ++i) grants[i] = ReserveOne(asks[i]);
  }

  Result<std::optional<Row>> Find(std::string_view tag, Instant deadline) override {
    if (Late(deadline)) return LateError();
    MutexLock lock(table_->mu_);
    const auto it = table_->rows_.find(tag);
    if (it == table_->rows_.end()) return std::optional<Row>();
    return std::optional<Row>(it->second);
  }

  Result<std::vector<Row>> List(std::string_view after, int limit, Instant deadline) override {
    if (Late(deadline)) return LateError();
    MutexLock lock(table_->mu_);
    std::vector<Row> rows;
    for (auto it = table_->rows_.upper_bound(after);
         it != table_->rows_.end() && static_cast<int>(rows.size()) < limit; ++it) {
      rows.push_back(it->second);
    }
    return rows;
  }

  Result<Row> Create(std::string_view tag, std::int64_t step, std::int64_t max_id,
                     Instant deadline) override {
    if (Late(deadline)) return LateError();
    MutexLock lock(table_->mu_);
    const auto [it, fresh] =
        table_->rows_.try_emplace(std::string(tag), Row{std::string(tag), max_id, step, NowText()});
    if (!fresh) return refusal::Exists(tag);
    return it->second;
  }

  Result<Row> SetStep(std::string_view tag, std::int64_t step, Instant deadline) override {
    return Change<Row>(tag, deadline, [&](Row& row) -> Result<Row> {
      row.step = step;
      row.updated = NowText();
      return row;
    });
  }

  Result<Row> Delete(std::string_view tag, Instant deadline) override {
    if (Late(deadline)) return LateError();
    MutexLock lock(table_->mu_);
    const auto it = table_->rows_.find(tag);
    if (it == table_->rows_.end()) return refusal::NoRow(tag);
    Row row = std::move(it->second);
    table_->rows_.erase(it);
    return row;
  }

  Result<std::int64_t> Raise(std::string_view tag, std::int64_t not_below, std::int64_t add,
                             Instant deadline) override {
    return Change<std::int64_t>(tag, deadline, [&](Row& row) -> Result<std::int64_t> {
      const std::int64_t from = std::max(row.max_id, not_below);
      if (from > kMaxEnd - add) return refusal::Exhausted(tag, row.max_id, add);
      row.max_id = from + add;
      row.updated = NowText();
      return row.max_id;
    });
  }

  Result<bool> HandBack(std::string_view tag, Range tail, Instant deadline) override {
    if (Late(deadline)) return LateError();
    MutexLock lock(table_->mu_);
    const auto it = table_->rows_.find(tag);
    if (it == table_->rows_.end() || it->second.max_id != tail.last) return false;
    it->second.max_id = tail.first;
    it->second.updated = NowText();
    return true;
  }

 private:
  static bool Late(Instant deadline) { return SystemClock().Now() >= deadline; }
  static Error LateError() { return refusal::Late("memory"); }

  template <typename T, typename F>
  Result<T> Change(std::string_view tag, Instant deadline, F change) {
    if (Late(deadline)) return LateError();
    MutexLock lock(table_->mu_);
    const auto it = table_->rows_.find(tag);
    if (it == table_->rows_.end()) return refusal::NoRow(tag);
    return change(it->second);
  }

  Grant ReserveOne(const Ask& ask) REQUIRES_LOCK(table_->mu_) {
    Grant grant;
    grant.flight = ask.flight;
    grant.outcome = Outcome::kRefused;
    const auto it = table_->rows_.find(ask.tag);
    if (Late(ask.deadline)) {
      grant.error = LateError();
    } else if (it == table_->rows_.end()) {
      grant.error = refusal::NoRow(ask.tag);
    } else if (auto error =
                   refusal::BadRow(ask.tag, it->second.max_id, it->second.step, ask.count)) {
      grant.error = std::move(*error);
    } else {
      Row& row = it->second;
      grant.outcome = Outcome::kGranted;
      grant.range = {row.max_id, row.max_id + ask.count};
      grant.row_step = row.step;
      row.max_id = grant.range.last;
      row.updated = NowText();
    }
    return grant;
  }

  const std::shared_ptr<MemoryTable> table_;
  bool open_ = false;
};

DriverFactory MakeMemoryFactory(std::shared_ptr<MemoryTable> table) {
  return [table = std::move(table)] { return std::make_unique<MemoryDriver>(table); };
}

Result<DriverFactory> MakeMemoryFactory(const StoreOptions&) {
  return MakeMemoryFactory(std::make_shared<MemoryTable>());
}

}  // namespace leaf
