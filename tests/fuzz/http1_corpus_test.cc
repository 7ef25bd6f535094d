#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/http1_verdict.h"

namespace leaf {
namespace {

struct Vector {
  int line = 0;
  std::string verdict, bytes;
};

int Hex(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') {
      const std::size_t end = text.find('}', i), star = text.rfind('*', end);
      const bool repeat = end != std::string_view::npos && star != std::string_view::npos &&
                          star > i && star + 1 < end &&
                          text.substr(star + 1, end - star - 1).find_first_not_of("0123456789") ==
                              std::string_view::npos;
      if (repeat) {
        const std::string unit = Unescape(text.substr(i + 1, star - i - 1));
        const int times = std::stoi(std::string(text.substr(star + 1, end - star - 1)));
        for (int n = 0; n < times; ++n) out += unit;
        i = end;
        continue;
      }
    }
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'x') {
      out += static_cast<char>(Hex(text[i + 1]) * 16 + Hex(text[i + 2]));
      i += 2;
    } else {
      out += c == 'r' ? '\r' : c == 'n' ? '\n' : c == 't' ? '\t' : c == '0' ? '\0' : c;
    }
  }
  return out;
}

std::string WithoutZeroSizes(std::string verdict) {
  for (std::size_t at; (at = verdict.find(":0")) != std::string::npos;) verdict.erase(at, 2);
  return verdict;
}

const std::vector<Vector>& Vectors() {
  static const std::vector<Vector> vectors = [] {
    std::vector<Vector> read;
    std::ifstream file(LEAF_HTTP1_VECTORS);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const std::size_t tab = line.find('\t');
      if (line.starts_with('#') || tab == std::string::npos) continue;
      read.push_back(
          {number, WithoutZeroSizes(line.substr(0, tab)), Unescape(line.substr(tab + 1))});
    }
    return read;
  }();
  return vectors;
}

TEST(Http1CorpusTest, HoldsAtLeastThreeHundredVectorsThatAreRefused) {
  int refused = 0;
  for (const Vector& vector : Vectors()) {
    const std::string last = vector.verdict.substr(vector.verdict.rfind(',') + 1);
    refused +=
        last.size() == 3 && last.find_first_not_of("0123456789") == std::string::npos ? 1 : 0;
  }
  EXPECT_GE(refused, 300);
}

TEST(Http1CorpusTest, EachVectorGetsItsVerdictWhenItArrivesWhole) {
  for (const Vector& vector : Vectors()) {
    EXPECT_EQ(vector.verdict, Http1Verdict(vector.bytes, [](std::size_t left) { return left; }))
        << "vectors.txt:" << vector.line;
  }
}

TEST(Http1CorpusTest, TheVerdictIsTheSameByteByByte) {
  for (const Vector& vector : Vectors()) {
    if (vector.bytes.size() > 20'000)
      continue;  // each step copies all bytes so far; the next test has these
    EXPECT_EQ(vector.verdict,
              Http1Verdict(vector.bytes, [](std::size_t) { return std::size_t{1}; }))
        << "vectors.txt:" << vector.line;
  }
}

TEST(Http1CorpusTest, TheVerdictIsTheSameInPiecesOfAnySize) {
  const auto seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (const Vector& vector : Vectors()) {
    const std::size_t most = vector.bytes.size() > 2000 ? 4000 : 20;
    const auto piece = [&](std::size_t) { return 1 + random() % most; };
    EXPECT_EQ(vector.verdict, Http1Verdict(vector.bytes, piece))
        << "vectors.txt:" << vector.line << " seed " << seed;
  }
}

// Changes a byte here and there: whatever comes out must not depend on how the bytes are cut up.
TEST(Http1CorpusTest, DamagedVectorsGetOneVerdictHoweverTheyArrive) {
  const auto seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  constexpr std::string_view kSpice = "\r\n :;,\t0159afGETx%*/\\\"\0\x7f\x80";
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = Vectors()[random() % Vectors().size()].bytes;
    if (bytes.empty() || bytes.size() > 2000) continue;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % bytes.size();
      const char spice = kSpice[random() % kSpice.size()];
      if (random() % 3 == 0) {
        bytes.insert(at, 1, spice);
      } else {
        bytes[at] = spice;
      }
    }
    const std::string whole = Http1Verdict(bytes, [](std::size_t left) { return left; });
    ASSERT_EQ(whole, Http1Verdict(bytes, [](std::size_t) { return std::size_t{1}; }))
        << testing::PrintToString(bytes) << " seed " << seed;
  }
}

}  // namespace
}  // namespace leaf
