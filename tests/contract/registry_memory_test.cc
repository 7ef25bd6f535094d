#include "contract/registry_contract.h"
#include "registry/memory/memory_registry.h"

namespace leaf::contract {
namespace {

class Memory final : public RegistryUnderTest {
 public:
  explicit Memory(bool has_clock)
      : has_clock_(has_clock),
        factory_(MakeMemoryRegistry("leaf", has_clock ? &SystemClock() : nullptr)) {}

  Traits traits() const override {
    Traits traits;
    traits.has_clock = has_clock_;
    return traits;
  }
  std::unique_ptr<RegistryDriver> MakeSession(int) override { return factory_(); }

 private:
  const bool has_clock_;
  const RegistryFactory factory_;
};

INSTANTIATE_TEST_SUITE_P(
    Memory, RegistryContract,
    testing::Values(RegistryParam{"plain", [] { return std::make_unique<Memory>(false); }},
                    RegistryParam{"with_clock", [] { return std::make_unique<Memory>(true); }}));

}  // namespace
}  // namespace leaf::contract
