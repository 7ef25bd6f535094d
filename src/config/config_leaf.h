#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_settings.h"

namespace leaf::config {

/// What a leaf.properties says beyond the values of keys.
struct LeafFile {
  /// A value and where it stands.
  struct Text {
    std::string text, origin;
  };
  std::string file;
  std::optional<Text> user, password;  ///< of leaf.jdbc.url
  std::string segment_origin;          ///< of leaf.segment.enable
  std::string snowflake_origin;        ///< of leaf.snowflake.enable
  bool snowflake_on = false;
  bool broken = false;                 ///< entries were lost, so nothing can be called missing
  std::optional<Text> snowflake_port;  ///< the port in this server's node name
  /// What forbids snowflake mode, if it is on and no stronger source gives the key.
  struct Problem {
    std::string key, text;  ///< text: a line, "WHERE: WHAT"
  };
  std::vector<Problem> snowflake_problems;
};

/// Reads Leaf's configuration, with the key names of both its branches, into `settings`: what it
/// says with Rank::kFile, what being Leaf means otherwise with Rank::kBeLeaf.
LeafFile ReadLeafFile(std::string_view file, std::string_view bytes, Settings& settings,
                      Findings& findings);

/// Checks and reports what needs the values of all sources: a mode that is on needs its address.
void FinishLeafFile(const LeafFile& leaf, const Settings& settings, Findings& findings);

}  // namespace leaf::config
