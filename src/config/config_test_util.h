#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"

namespace leaf::config {

using Environment = std::map<std::string, std::string>;
using Flags = std::vector<std::pair<std::string, std::string>>;

/// A configuration as a test gives it: a file in a folder of its own, an environment with
/// nothing in it but a state folder, flags.
class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    std::string name = (std::filesystem::temp_directory_path() / "leafd-config-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder = name;
    environment["STATE_DIRECTORY"] = folder + "/state";
  }
  ~ConfigTest() override { std::filesystem::remove_all(folder); }

  /// Writes the file and makes it the configuration.
  void File(const std::string& name, std::string_view text, mode_t mode = 0600) {
    command_line.config_file = Write(name, text, mode);
  }
  std::string Write(const std::string& name, std::string_view text, mode_t mode = 0600) {
    const std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  void Toml(std::string_view text, mode_t mode = 0600) { File("leafd.toml", text, mode); }
  void Leaf(std::string_view text, mode_t mode = 0600) { File("leaf.properties", text, mode); }

  /// The configuration; fails the test if there is none.
  Config Load() {
    auto config = LoadConfig(command_line, environment);
    EXPECT_TRUE(config.ok()) << config.error().message;
    return config.ok() ? std::move(config).value() : Config();
  }
  /// The findings, with the temporary folder cut out; fails the test if there are none.
  std::string Errors() {
    const auto config = LoadConfig(command_line, environment);
    EXPECT_FALSE(config.ok()) << "no error was found";
    return config.ok() ? "" : Plain(config.error().message);
  }
  std::string Warnings() { return Joined(Load().warnings); }
  std::string Notices() { return Joined(Load().notices); }

  Config::Item Item(const Config& config, std::string_view key) {
    for (const Config::Item& item : config.items) {
      if (item.key == key) return {item.key, Plain(item.value), Plain(item.origin)};
    }
    ADD_FAILURE() << "no item " << key;
    return {};
  }

  std::string Plain(std::string text) const {
    for (;;) {
      const auto at = text.find(folder + "/");
      if (at == std::string::npos) return text;
      text.erase(at, folder.size() + 1);
    }
  }

  std::string folder;
  CommandLine command_line;
  Environment environment;

 private:
  std::string Joined(const std::vector<std::string>& lines) const {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
    return Plain(text);
  }
};

}  // namespace leaf::config
