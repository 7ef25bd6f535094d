#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "codec/http1/parser.h"

namespace leaf {

/// What the parser says to `bytes` when they arrive in pieces: next_piece(left) gives the size of
/// the next one, at least 1. "GET,POST:5,400" as corpus/http1/vectors.txt writes it. Each piece is
/// fed from a buffer of exactly the bytes so far, so that a sanitizer sees every read beyond them.
/// As a connection does, it drops what is consumed and keeps what the parser has rearranged.
template <typename NextPiece>
std::string Http1Verdict(std::string_view bytes, NextPiece next_piece) {
  const http1::Limits limits;
  http1::Parser parser;
  const auto request = std::make_unique<http1::Request>();
  std::string verdict, held;
  const auto add = [&](const std::string& word) { verdict += (verdict.empty() ? "" : ",") + word; };
  while (!bytes.empty()) {
    const std::size_t piece =
        std::min(std::max<std::size_t>(next_piece(bytes.size()), 1), bytes.size());
    held.append(bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    while (!held.empty()) {
      const std::size_t size = held.size();
      const auto exact = std::make_unique<char[]>(size);
      std::memcpy(exact.get(), held.data(), size);
      const http1::Parser::Step step = parser.Parse(exact.get(), size, limits, *request);
      held.assign(exact.get(), size);
      if (step == http1::Parser::Step::kRefused) {
        add(std::to_string(parser.status()));
        return verdict;
      }
      if (step == http1::Parser::Step::kMore) break;
      const std::string size_text =
          request->body.empty() ? "" : ":" + std::to_string(request->body.size());
      add(std::string(request->method_text) + size_text);
      held.erase(0, parser.consumed());
    }
  }
  if (!held.empty()) add("more");
  return verdict.empty() ? "none" : verdict;
}

}  // namespace leaf
