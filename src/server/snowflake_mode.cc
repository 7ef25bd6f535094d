#include "server/snowflake_mode.h"

#include <cstdio>
#include <utility>

#include "base/fnv.h"
#include "base/random.h"
#include "server/registries.h"

namespace leaf {
namespace {

/// What a server remembers belongs to one cluster in one place, so that a state folder that is
/// pointed elsewhere begins anew.
std::string FileName(const char* what, const Config& config) {
  const RegistryOptions& registry = config.snowflake.registry;
  std::string place = registry.kind + "\n" + registry.cluster + "\n" + registry.chroot + "\n" +
                      (registry.leaf_layout ? "leaf" : "native") + "\n" + registry.identity;
  if (registry.kind == "store")
    place = registry.kind + "\n" + registry.cluster + "\n" + config.store.kind;
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(Fnv1a(place)));
  return config.server.state_dir + "/" + what + "-" + digits;
}

}  // namespace

Result<std::unique_ptr<SnowflakeMode>> SnowflakeMode::Make(const Config& config, Clock& clock,
                                                           std::function<void()> wake) {
  auto mode = std::unique_ptr<SnowflakeMode>(new SnowflakeMode());
  // One word for all clusters of this server: ids rise whatever the configuration was before.
  LEAF_ASSIGN_OR_RETURN(mode->order_,
                        OrderFile::Open(config.server.state_dir + "/snowflake-order"));
  mode->journal_ = std::make_unique<RightFile>(FileName("snowflake-right", config));
  mode->host_ = std::make_unique<SocketClaims>(config.snowflake.registry.cluster);
  LEAF_ASSIGN_OR_RETURN(mode->registry_, MakeRegistry(config, clock));
  SnowflakeOptions options;
  options.layout = config.snowflake.layout;
  options.identity = config.snowflake.registry.identity;
  options.lease = config.snowflake.lease;
  options.drift = config.snowflake.drift;
  options.wait = config.snowflake.wait;
  options.call_timeout = config.snowflake.registry.timeout;
  options.max_count = config.snowflake.max_count;
  options.max_waiters = config.segment.max_waiters;
  mode->engine_ = std::make_unique<SnowflakeEngine>(
      std::move(options), SnowflakeEngine::Ports{.registry = *mode->registry_,
                                                 .journal = mode->journal_.get(),
                                                 .host = mode->host_.get(),
                                                 .order = mode->order_.get(),
                                                 .clock = clock,
                                                 .random = SystemRandom()});
  mode->engine_->SetWake(std::move(wake));
  LEAF_RETURN_IF_ERROR(mode->engine_->Load());
  return mode;
}

void SnowflakeMode::Close(std::function<void()> wake) {
  engine_->Close([this, wake = std::move(wake)] {
    closed_.store(true);
    wake();
  });
}

}  // namespace leaf
