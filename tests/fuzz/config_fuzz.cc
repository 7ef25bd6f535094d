// libFuzzer: whatever a configuration file or a store URL holds, the readers end with a value or a
// finding, and no output shows a password.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/config_jdbc.h"
#include "config/config_toml.h"
#include "config/properties.h"
#include "config/url.h"

namespace {

/// A password as it stands in the source of its URL, hidden in what is shown of it.
void CheckShown(const leaf::Result<leaf::StoreUrl>& url) {
  if (!url.ok() || !url->password || url->password->size() < 8) return;  // shorter: by chance
  const std::string shown = leaf::DisplayUrl(*url);
  const std::string others = url->host + url->database + url->user;
  if (others.find(*url->password) != std::string::npos) return;
  if (shown.find(*url->password) == std::string::npos) return;
  std::fprintf(stderr, "shown: %s\n", shown.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      leaf::ParseProperties(bytes);
      break;
    case 1:
      leaf::config::ParseToml(bytes);
      break;
    case 2:
      CheckShown(leaf::ParseStoreUrl(bytes));
      break;
    default:
      CheckShown(leaf::ParseJdbcUrl("jdbc:" + std::string(bytes)));
  }
  return 0;
}
