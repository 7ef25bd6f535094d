#include "contract/store_contract.h"
#include "store/memory/memory_driver.h"

namespace leaf::contract {
namespace {

class Memory final : public StoreUnderTest {
 public:
  Traits traits() const override {
    Traits traits;
    traits.durability = Durability::kVolatile;
    traits.survives_restart = traits.can_be_read_only = traits.has_locks = traits.row_can_be_odd =
        false;
    return traits;
  }
  std::unique_ptr<SegmentDriver> MakeDriver(int) override { return factory_(); }
  void Put(std::string_view tag, const RawRow& row) override {
    table_->Put(std::string(tag), row.max_id, row.step);
    descriptions_[std::string(tag)] = row.description;
  }
  std::optional<RawRow> Get(std::string_view tag) override {
    const std::optional<Row> row = table_->Get(tag);
    if (!row) return std::nullopt;
    return RawRow{row->max_id, row->step, descriptions_[std::string(tag)]};
  }

 private:
  const std::shared_ptr<MemoryTable> table_ = std::make_shared<MemoryTable>();
  const DriverFactory factory_ = MakeMemoryFactory(table_);
  std::map<std::string, std::string> descriptions_;  // the memory store has no such column
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreContract,
                         testing::Values(Param{"memory",
                                               [] { return std::make_unique<Memory>(); }}));

}  // namespace
}  // namespace leaf::contract
