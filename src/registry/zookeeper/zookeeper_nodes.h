#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/snowflake/worker_registry.h"
#include "leaf/result.h"

namespace leaf {

/// Paths below the chroot.
struct ZkPaths {
  explicit ZkPaths(const std::string& cluster)
      : base("/snowflake/" + cluster), forever(base + "/forever"), workers(base + "/workers") {}
  std::string base;
  std::string forever;  ///< Leaf's nodes
  std::string workers;  ///< the native ones
  std::string NativeNode(std::int64_t worker) const;
};

/// The name of a node below `forever`: IDENTITY-NNNNNNNNNN. The last '-' counts: an identity may
/// have some. nullopt: it has another shape, so no Leaf made it.
struct LeafName {
  std::string identity;
  std::int64_t counter = 0;
};
std::optional<LeafName> ParseLeafName(std::string_view name);

/// The worker of a node below `workers`.
std::optional<std::int64_t> ParseNativeName(std::string_view name);

/// What Leaf writes into its node, byte by byte: the fields ip, port (a string) and timestamp, and
/// no other, because its reader refuses any. The identity is cut at its last ':'.
std::string LeafText(std::string_view identity, std::int64_t timestamp_ms);
/// The timestamp. An error says what is wrong with the text; `node` goes into its message.
Result<std::int64_t> ParseLeafText(std::string_view text, const std::string& node);

/// A native node.
struct NativeRow {
  WorkerRecord record;
  std::string layout;
};
std::string NativeText(const NativeRow& row);
Result<NativeRow> ParseNativeText(std::string_view text, std::int64_t worker,
                                  const std::string& node);

}  // namespace leaf
