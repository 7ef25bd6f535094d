#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/snowflake/worker_registry.h"

namespace leaf::fakes {

/// Workers in memory that answers at once. Confined to its test.
class MapRegistry final : public WorkerRegistry {
 public:
  std::map<std::int64_t, WorkerRecord> records;
  RegistryTraits kind;
  std::string down;  ///< not empty: every call fails with it
  std::optional<std::int64_t> clock_ms;

  RegistryTraits traits() const noexcept override { return kind; }

  void Claim(ClaimAsk ask, Done<WorkerRight> done) override {
    if (Fails(done)) return;
    for (std::int64_t worker = 0; worker < ask.workers; ++worker) {
      WorkerRecord& record = records[worker];
      if (record.limit_ms > ask.now_ms) continue;
      const std::int64_t floor = record.limit_ms;
      record = {worker,       record.generation + 1,     ask.owner,
                ask.identity, ask.now_ms + ask.lease_ms, ""};
      done(RightOf(record, floor));
      return;
    }
    done(Error{Code::kUnavailable, "all workers are held"});
  }
  void Extend(WorkerRight right, std::int64_t limit_ms, std::int64_t, Instant,
              Done<WorkerRight> done) override {
    if (Fails(done) || Lost(right, done)) return;
    records[right.worker].limit_ms = limit_ms;
    done(RightOf(records[right.worker], right.floor_ms));
  }
  void Lower(WorkerRight right, std::int64_t limit_ms, Instant, Done<WorkerRight> done) override {
    if (Fails(done) || Lost(right, done)) return;
    records[right.worker].limit_ms = limit_ms;
    done(RightOf(records[right.worker], right.floor_ms));
  }
  void List(Instant, Done<std::vector<WorkerRecord>> done) override {
    if (Fails(done)) return;
    std::vector<WorkerRecord> all;
    for (const auto& [worker, record] : records) all.push_back(record);
    done(std::move(all));
  }
  void Retire(std::int64_t worker, Instant, Done<WorkerRecord> done) override {
    if (Fails(done)) return;
    const auto found = records.find(worker);
    if (found == records.end()) {
      done(Error{Code::kNotFound, "no such worker"});
      return;
    }
    found->second.owner.clear();
    ++found->second.generation;
    done(WorkerRecord(found->second));
  }
  RegistryStatus Status() const override {
    RegistryStatus status;
    status.kind = "map";
    status.up = down.empty();
    status.last_error = down;
    return status;
  }

 private:
  template <typename T>
  bool Fails(const Done<T>& done) const {
    if (down.empty()) return false;
    done(Error{Code::kUnavailable, down});
    return true;
  }
  bool Lost(const WorkerRight& right, const Done<WorkerRight>& done) {
    const WorkerRecord& record = records[right.worker];
    if (record.owner == right.owner && record.generation == right.generation) return false;
    done(Error{Code::kConflict, "the worker is another's now"});
    return true;
  }
  WorkerRight RightOf(const WorkerRecord& record, std::int64_t floor_ms) const {
    WorkerRight right;
    right.worker = record.worker;
    right.generation = record.generation;
    right.owner = record.owner;
    right.floor_ms = floor_ms;
    right.limit_ms = record.limit_ms;
    right.registry_ms = clock_ms;
    return right;
  }
};

}  // namespace leaf::fakes
