#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "config/config_keys.h"

namespace leaf::config {
namespace {

using testing::HasSubstr;

/// The cells of a row of a Markdown table.
std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream row(line);
  for (std::string cell; std::getline(row, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos
                        ? ""
                        : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

std::string Unquoted(const std::string& cell) {
  const bool quoted = cell.size() >= 2 && cell.front() == '`' && cell.back() == '`';
  return quoted ? cell.substr(1, cell.size() - 2) : cell;
}

/// docs/configuration.md by key: | key | default | meaning | environment | Leaf |
std::map<std::string, std::vector<std::string>> Rows() {
  std::ifstream file(LEAF_SOURCE_DIR "/docs/configuration.md");
  EXPECT_TRUE(file.good());
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    auto cells = Cells(line);
    if (cells.size() < 6 || cells[1].find('.') == std::string::npos || cells[1].front() != '`')
      continue;
    const std::string key = Unquoted(cells[1]);
    EXPECT_TRUE(rows.emplace(key, std::move(cells)).second) << key << " has two rows";
  }
  return rows;
}

TEST(ConfigDocsTest, EveryKeyHasItsRowAndNoOther) {
  const auto rows = Rows();
  for (const Key& key : Keys()) EXPECT_TRUE(rows.contains(std::string(key.name))) << key.name;
  for (const auto& [name, cells] : rows) EXPECT_NE(FindKey(name), nullptr) << name;
}

TEST(ConfigDocsTest, DefaultsAreThoseOfTheTable) {
  const auto rows = Rows();
  for (const Key& key : Keys()) {
    const auto row = rows.find(std::string(key.name));
    if (row == rows.end()) continue;
    const std::string& cell = row->second[2];
    if (key.availability == Availability::kLater) {
      EXPECT_THAT(cell, HasSubstr("not in this version")) << key.name;
    } else if (!key.dependent) {
      EXPECT_EQ(Unquoted(cell), FormatValue(key.type, Fallback(key))) << key.name;
    }
  }
}

TEST(ConfigDocsTest, VariablesAndLeafsNamesAreThoseOfTheTable) {
  const auto rows = Rows();
  for (const Key& key : Keys()) {
    const auto row = rows.find(std::string(key.name));
    if (row == rows.end()) continue;
    EXPECT_EQ(Unquoted(row->second[4]), EnvironmentName(key));
    std::istringstream names{std::string(key.leaf_names)};
    for (std::string name; names >> name;)
      EXPECT_THAT(row->second[5], HasSubstr("`" + name + "`")) << key.name;
    if (key.leaf_names.empty()) {
      EXPECT_EQ(row->second[5], "") << key.name;
    }
  }
}

TEST(ConfigDocsTest, BoundsAreNamed) {
  const auto rows = Rows();
  for (const Key& key : Keys()) {
    const auto row = rows.find(std::string(key.name));
    if (row == rows.end() || key.availability == Availability::kLater) continue;
    for (std::string_view rest = key.bounds.choices; !rest.empty();) {
      const std::string word(rest.substr(0, rest.find('|')));
      EXPECT_THAT(row->second[3], HasSubstr("`" + word + "`")) << key.name;
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
  }
}

}  // namespace
}  // namespace leaf::config
