#include "config/config_expand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leaf::config {
namespace {

using testing::HasSubstr;

const std::map<std::string, std::string> kVariables = {
    {"A", "a"}, {"PW", "p@/%"}, {"NESTED", "${A}"}, {"EMPTY", ""}};

std::string Expanded(std::string_view text) {
  const auto result = Expand(text, kVariables);
  EXPECT_TRUE(result.ok()) << text;
  return result.ok() ? *result : "";
}

TEST(ConfigExpandTest, VariablesAreReplaced) {
  EXPECT_EQ(Expanded(""), "");
  EXPECT_EQ(Expanded("$ { } $A {A}"), "$ { } $A {A}");
  EXPECT_EQ(Expanded("${A}"), "a");
  EXPECT_EQ(Expanded("x${A}y${A}z${EMPTY}"), "xayaz");
}

TEST(ConfigExpandTest, AValueIsNotExpandedAgain) { EXPECT_EQ(Expanded("${NESTED}"), "${A}"); }

TEST(ConfigExpandTest, TwoDollarsAreOne) {
  EXPECT_EQ(Expanded("$${A}"), "${A}");
  EXPECT_EQ(Expanded("x$${A}${A}"), "x${A}a");
  EXPECT_EQ(Expanded("$$"), "$$");
}

TEST(ConfigExpandTest, InTheUserInfoOfAUrlAVariableIsTakenAsItIs) {
  EXPECT_EQ(Expanded("mysql://${A}:${PW}@h/d"), "mysql://a:p%40%2F%25@h/d");
  EXPECT_EQ(Expanded("mysql://u@h/${PW}"), "mysql://u@h/p@/%");
  EXPECT_EQ(Expanded("${PW}"), "p@/%");
}

TEST(ConfigExpandTest, WhatCannotBeExpandedIsAnErrorWithTheName) {
  const auto error = [](std::string_view text) { return Expand(text, kVariables).error().message; };
  EXPECT_EQ(error("${NONE}"), "the variable NONE is not set");
  EXPECT_THAT(error("${A"), HasSubstr("has no }"));
  EXPECT_THAT(error("${}"), HasSubstr("needs the name"));
  EXPECT_THAT(error("${A:-b}"), HasSubstr("needs the name"));
  EXPECT_THAT(error("${A B}"), HasSubstr("needs the name"));
}

}  // namespace
}  // namespace leaf::config
