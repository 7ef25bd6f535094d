#include "config/config_files.h"

#include <gmock/gmock.h>

#include "config/config_test_util.h"

namespace leaf::config {
namespace {

using testing::HasSubstr;

using ConfigFilesTest = ConfigTest;

std::string PasswordError(const std::string& path) {
  const auto password = ReadPasswordFile(path);
  EXPECT_FALSE(password.ok());
  return password.ok() ? "" : password.error().message;
}

TEST_F(ConfigFilesTest, APasswordIsOneLine) {
  EXPECT_EQ(*ReadPasswordFile(Write("a", "pw", 0600)), "pw");
  EXPECT_EQ(*ReadPasswordFile(Write("b", "pw\n", 0400)), "pw");
  EXPECT_EQ(*ReadPasswordFile(Write("c", "p w \r\n", 0440)), "p w ");
  EXPECT_THAT(PasswordError(Write("d", "", 0600)), HasSubstr("empty"));
  EXPECT_THAT(PasswordError(Write("e", "\n", 0600)), HasSubstr("empty"));
  EXPECT_THAT(PasswordError(Write("f", "a\nb\n", 0600)), HasSubstr("one line"));
  EXPECT_THAT(PasswordError(Write("g", std::string("a\0b", 3), 0600)), HasSubstr("one line"));
  EXPECT_THAT(PasswordError(Write("h", std::string(5000, 'a'), 0600)), HasSubstr("larger"));
}

TEST_F(ConfigFilesTest, APasswordFileIsForOwnerAndGroupOnly) {
  for (const mode_t mode : {0400U, 0440U, 0600U, 0640U})
    EXPECT_TRUE(ReadPasswordFile(Write("p", "pw", mode)).ok()) << mode;
  for (const mode_t mode : {0644U, 0604U, 0660U, 0666U, 0700U}) {
    EXPECT_THAT(PasswordError(Write("p", "pw", mode)), HasSubstr("0640")) << mode;
  }
}

TEST_F(ConfigFilesTest, APasswordFileIsAFileWithAnAbsolutePath) {
  EXPECT_THAT(PasswordError("password"), HasSubstr("absolute"));
  EXPECT_THAT(PasswordError(folder), HasSubstr("not a file"));
  EXPECT_THAT(PasswordError(folder + "/none"), HasSubstr("No such file"));
}

TEST_F(ConfigFilesTest, TheStateFolderOfSystemdComesFirst) {
  EXPECT_EQ(*DefaultStateDir({{"STATE_DIRECTORY", "/s1:/s2"}, {"HOME", "/h"}}, folder), "/s1");
  EXPECT_FALSE(DefaultStateDir({{"STATE_DIRECTORY", "relative"}, {"HOME", "/h"}}, folder).ok());
}

TEST_F(ConfigFilesTest, TheFolderOfTheSystemIsUsedWhereItIsOrCanBeMade) {
  EXPECT_EQ(*DefaultStateDir({{"HOME", "/h"}}, folder), folder);
  EXPECT_EQ(*DefaultStateDir({{"HOME", "/h"}}, folder + "/leafd"), folder + "/leafd");
}

TEST_F(ConfigFilesTest, OtherwiseTheUsersFolderIsUsed) {
  const std::string unusable = folder + "/none/leafd";
  EXPECT_EQ(*DefaultStateDir({{"XDG_STATE_HOME", "/x"}, {"HOME", "/h"}}, unusable), "/x/leafd");
  EXPECT_EQ(*DefaultStateDir({{"XDG_STATE_HOME", "x"}, {"HOME", "/h"}}, unusable),
            "/h/.local/state/leafd");
  EXPECT_EQ(*DefaultStateDir({{"HOME", "/h"}}, Write("file", "")), "/h/.local/state/leafd");
  EXPECT_FALSE(DefaultStateDir({}, unusable).ok());
}

}  // namespace
}  // namespace leaf::config
