#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "leaf/result.h"

namespace leaf::config {

/// The whole of a configuration file (at most 1 MiB).
struct FileText {
  std::string bytes;
  bool others_can_read = false;  ///< a regular file that users beyond owner and group can read
};
Result<FileText> ReadConfigFile(const std::string& path);

/// A password from a file of mode 0640 or stricter; the newline at its end is cut. The error never
/// holds any of it.
Result<std::string> ReadPasswordFile(const std::string& path);

/// kInvalidArgument unless `path` is a file that this process can read.
Result<void> CheckReadable(const std::string& path);

/// Where state is kept when server.state_dir is not set: $STATE_DIRECTORY, else `system` where it
/// can be written or made, else $XDG_STATE_HOME/leafd, else ~/.local/state/leafd. Makes nothing.
Result<std::string> DefaultStateDir(const std::map<std::string, std::string>& environment,
                                    const std::string& system);

/// This host's name; "localhost" if it has none.
std::string HostName();

/// This host's IPv4 addresses but loopback, in the order of its interfaces: Leaf takes the first.
std::vector<std::string> HostAddresses();

/// The variables of this process.
std::map<std::string, std::string> ProcessEnvironment();

/// How many files the process may hold open.
std::int64_t OpenFileLimit();

}  // namespace leaf::config
