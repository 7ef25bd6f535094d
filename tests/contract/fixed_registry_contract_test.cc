#include <cstdlib>
#include <filesystem>

#include "contract/registry_contract.h"
#include "registry/fixed/fixed_registry.h"

namespace leaf::contract {
namespace {

constexpr std::int64_t kWorker = 7;

class Fixed final : public RegistryUnderTest {
 public:
  Fixed() {
    std::string folder = testing::TempDir() + "leaf-registry-XXXXXX";
    folder_ = mkdtemp(folder.data());
    RegistryOptions options;
    options.kind = "fixed";
    options.worker = kWorker;
    factory_ = MakeFixedRegistry(options, folder_);
  }
  ~Fixed() override { std::filesystem::remove_all(folder_); }

  Traits traits() const override {
    Traits traits;
    traits.bound = true;
    traits.worker = kWorker;
    traits.lists = false;
    return traits;
  }
  std::unique_ptr<RegistryDriver> MakeSession(int) override { return factory_(); }

 private:
  std::string folder_;
  RegistryFactory factory_;
};

INSTANTIATE_TEST_SUITE_P(Fixed, RegistryContract,
                         testing::Values(RegistryParam{"fixed",
                                                       [] { return std::make_unique<Fixed>(); }}));

}  // namespace
}  // namespace leaf::contract
